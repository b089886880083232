"""Live tasks while nodes, networks and peers fail at random moments: one answer each, in time.

    PYTHONPATH=benchmarks python campaigns/live_faults.py --tasks 3000 --faults 10
    make live-faults TASKS=100000 FAULTS=200              half an hour

Two ENs and three SNs are daemons of this machine; a fourth SN is nowhere, or lies. Tasks come at an
even pace. Faults: an SN is killed (-9) and started again, stopped and continued, told to drain, or
cut off from an EN; the second EN is killed and started again; a peer lies; hundreds of connections
are held; messages that are none are sent.

What must hold: every task has exactly one answer, by its deadline and a grace (UNAVAILABLE is one,
if the EN itself was killed); in the end nothing is left in any node, its storage is free, and the
EN that was there all the time has not grown. Other work on the machine makes every process late:
`wakeups` measures by how much, and how long an EN had no processor, while a task was in flight;
only what is later counts.
"""

import argparse
import asyncio
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import numpy as np
from wakeups import Waits, Wakeups

from cosmo import load
from cosmo.live import wire
from cosmo.live.client import AsyncClient
from cosmo.live.config import NodeConfig, changed_config, load_config
from cosmo.live.processes import Running
from cosmo.live.scenario_files import configs_of
from cosmo.live.top import scraped
from cosmo.node import NOTHING
from cosmo.policy.registry import method
from partition import Proxy

SCENARIO = load("campus", ["en.count=2", "sn.count=4"])
CLIENT = 2  # after the ENs, among processes that may wait for a processor
LIAR = 3  # this one of the SNs is no daemon
MOST_GROWN_MB = 10.0
ODD = (0.0, -1.0, 1.0, 1e15, 1e308, math.nan, math.inf, -math.inf)


class Liar:
    """An SN that says what cannot be true, for as long as it listens."""

    def __init__(self, carries: int) -> None:
        self._carries, self._server, self.address = carries, grpc.aio.server(), ""
        self._port = 0

    async def lie(self, seconds: float) -> None:
        """Listen, and stop again; the first time finds the port."""
        server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        calls = {
            "Execute": grpc.unary_unary_rpc_method_handler(
                self._execute, wire.Task.FromString, wire.Result.SerializeToString
            ),
            "Watch": grpc.stream_stream_rpc_method_handler(
                self._watch, wire.FromEn.FromString, wire.FromSn.SerializeToString
            ),
        }
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(f"{wire.PACKAGE}.Sn", calls)]
        )
        self._port = server.add_insecure_port(f"127.0.0.1:{self._port}")
        self.address = f"127.0.0.1:{self._port}"
        await server.start()
        await asyncio.sleep(seconds)
        await server.stop(0.1)

    async def _execute(self, task: wire.Task, context: object) -> wire.Result:
        await asyncio.sleep(random.uniform(0.0, 0.1))
        held_us, fate = random.choice((0, 1000, 2**63)), random.choice((0, 1, 2, 3, 6, 99))
        return wire.Result(id=random.choice((task.id, 7)), fate=fate, held_us=held_us)

    async def _watch(self, requests: object, context: object):  # type: ignore[no-untyped-def]
        work = random.choice(ODD)
        yield wire.FromSn(welcome=wire.Welcome(boot=random.getrandbits(60), work_cycles=work))
        while True:
            numbers = [random.choice(ODD) for _ in range(random.choice((self._carries, 1, 50)))]
            held_us = random.choice((0, 2**63))
            yield wire.FromSn(status=wire.Status(sequence=1, held_us=held_us, numbers=numbers))
            yield wire.FromSn(heartbeat=wire.Heartbeat(echo=random.getrandbits(64)))
            await asyncio.sleep(0.05)


class Nodes:
    """The daemons, and everything that is done to them."""

    def __init__(self, folder: Path, spec: str) -> None:
        self._folder = folder
        fields: dict[str, object] = {
            "method.use": spec, "admin": "127.0.0.1:0", "limits.calls_per_s": 1e6,
            "limits.burst": 10**6,
        }  # fmt: skip
        bases = (changed_config(load_config(role), fields) for role in ("en", "sn"))
        self._en_files, self._sn_files = configs_of(SCENARIO, *bases)
        self.liar = Liar(method(spec).carries if method(spec).carries != NOTHING else 0)
        self.sns: list[Running] = []
        self.ens: list[Running] = []
        self._networks: list[list[Proxy]] = []  # [EN][SN]
        self.used = [asyncio.Lock() for _ in range(LIAR + 2)]  # SNs, and the second EN
        self.ended_at = 0.0  # when the second EN last was not there

    async def begin(self, opened: AsyncExitStack) -> None:
        """Start all; they have met."""
        await self.liar.lie(0.0)
        opened.callback(self.end)
        for config in self._sn_files[:LIAR]:
            self.sns.append(await self._started(config, {"listen": "127.0.0.1:0"}))
        for config in self._en_files:
            networks = [await opened.enter_async_context(Proxy(sn.address)) for sn in self.sns]
            self._networks.append(networks)
            addresses = [*(each.address for each in networks), self.liar.address]
            peers = [
                {**peer.model_dump(), "address": address}
                for peer, address in zip(config.peers, addresses, strict=True)
            ]
            fields: dict[str, object] = {"listen": "127.0.0.1:0", "peers": peers}
            self.ens.append(await self._started(config, fields))
        for en in self.ens:
            await asyncio.to_thread(en.wait_for, "sn connected", LIAR)

    async def _started(self, config: NodeConfig, fields: dict[str, object]) -> Running:
        made = Running(changed_config(config, fields), self._folder)
        before = len(made.said("serving"))
        await asyncio.to_thread(made.wait_for, "serving", before + 1)
        return made

    def end(self) -> None:
        """All of them."""
        for each in (*self.ens, *self.sns):
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)
            each.end()

    async def again(self, each: Running, end: Callable[[Running], object]) -> Running:
        """End a daemon, and start one like it on its port."""
        address = each.address
        await asyncio.to_thread(end, each)
        await asyncio.sleep(random.uniform(0.0, 1.0))
        return await self._started(each.config, {"listen": address})

    # Faults.

    async def killed_sn(self, sn: int) -> None:
        """Gone at once, and back after a while."""
        self.sns[sn] = await self.again(self.sns[sn], _kill)

    async def drained_sn(self, sn: int) -> None:
        """Stopped by its operator, and back."""
        self.sns[sn] = await self.again(self.sns[sn], Running.end)

    async def stopped_sn(self, sn: int) -> None:
        """Held up: by its machine, say."""
        process = self.sns[sn].process
        process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(random.uniform(0.05, 3.0))
        process.send_signal(signal.SIGCONT)

    async def partition(self, sn: int) -> None:
        """Nothing passes between an SN and one EN, or both."""
        cut = [networks[sn] for networks in random.choice((self._networks, self._networks[:1]))]
        for each in cut:
            each.cut()
        await asyncio.sleep(random.uniform(0.05, 3.0))
        for each in cut:
            each.heal()

    async def killed_en(self, _: int) -> None:
        """The second EN; its clients hear that it is unavailable."""
        async with self.used[LIAR + 1]:
            self.ended_at = math.inf
            self.ens[1] = await self.again(self.ens[1], _kill)
            self.ended_at = time.monotonic()

    async def lies(self, _: int) -> None:
        """A peer that nobody should believe."""
        async with self.used[LIAR]:
            await self.liar.lie(random.uniform(0.5, 3.0))

    async def flood(self, sn: int) -> None:
        """Connections that are held and say nothing, from an address of their own."""
        port = random.choice((self.ens[0], self.sns[sn])).port
        async with AsyncExitStack() as opened:
            for _ in range(300):
                try:
                    where = asyncio.open_connection("127.0.0.1", port, local_addr=("127.0.0.9", 0))
                    _, writer = await asyncio.wait_for(where, 1.0)
                except (OSError, TimeoutError):
                    break
                opened.callback(writer.close)
            await asyncio.sleep(random.uniform(0.2, 2.0))

    async def nonsense(self, sn: int) -> None:
        """Tasks that are none, at an EN and, in its name, at an SN."""
        metadata = (("cosmo-en", "en0"),)
        for address, path in (
            (self.ens[0].address, wire.SUBMIT),
            (self.sns[sn].address, wire.EXECUTE),
        ):
            async with grpc.aio.insecure_channel(address) as channel:
                call = channel.unary_unary(path, lambda raw: raw, lambda raw: raw)
                sent = [self._odd() for _ in range(30)]
                await asyncio.gather(
                    *(call(raw, timeout=1.0, metadata=metadata) for raw in sent),
                    return_exceptions=True,
                )

    def _odd(self) -> bytes:
        if random.random() < 0.3:
            return random.randbytes(random.randrange(60))
        task = wire.Task(
            id=random.getrandbits(64), cycles=random.choice(ODD), boot=random.getrandbits(64),
            deadline_us=random.choice((0, 1, 50_000, 2**64 - 1)),
            elapsed_us=random.choice((0, 10**6, 2**64 - 1)),
        )  # fmt: skip
        return bytes(task.SerializeToString())


def _kill(each: Running) -> None:
    os.kill(each.process.pid, signal.SIGCONT)
    each.process.kill()
    each.process.wait()


class Load:
    """Tasks to both ENs by turns, and what became of each."""

    def __init__(self, nodes: Nodes, grace_ms: float) -> None:
        self._nodes, self._grace_ms = nodes, grace_ms
        self.ends: Counter[str] = Counter()
        self.late_ms: list[float] = []
        self.wrong: list[str] = []
        self._late: list[tuple[int, str, float, float, float]] = []  # by more than the grace

    def later_than(self, machine: Wakeups, waits: Waits) -> list[str]:
        """Answers that are late by more than the grace and what the machine was late meanwhile."""
        found = []
        for en, end, began, answered, late_ms in self._late:
            waited_ms = sum(waits.waited_ms(place, began, answered) for place in (en, CLIENT))
            stalled_ms = machine.stalled_ms(began, answered)
            if late_ms - max(waited_ms, stalled_ms) > self._grace_ms:
                told = f"plain timers {stalled_ms:.0f} ms late, no processor for {waited_ms:.0f} ms"
                found.append(f"en{en}: {end} {late_ms:.0f} ms after the deadline ({told})")
        return found

    async def run(self, tasks: int, per_s: float) -> None:
        """All answers are there when this is over."""
        start, calls = time.monotonic(), set[asyncio.Task[None]]()
        async with AsyncExitStack() as opened:
            clients = [
                await opened.enter_async_context(AsyncClient(en.address)) for en in self._nodes.ens
            ]
            for number in range(tasks):
                wait = start + number / per_s - time.monotonic()
                if wait > 0.0:
                    await asyncio.sleep(wait)
                call = asyncio.create_task(self._one(clients[number % 2], number % 2))
                calls.add(call)
                call.add_done_callback(calls.discard)
            await asyncio.gather(*calls)

    async def _one(self, client: AsyncClient, en: int) -> None:
        deadline_ms, began = random.uniform(60.0, 220.0), time.monotonic()
        try:
            answer = await client.submit(
                bytes(2000), deadline_ms=deadline_ms, cycles=random.uniform(1e5, 1.2e6)
            )
            end = answer.fate.name
        except grpc.aio.AioRpcError as error:
            end = error.code().name
            gone = en == 1 and began - 2.0 < self._nodes.ended_at
            if not gone:
                self.wrong.append(f"en{en} was there and answered {end}: {error.details()}")
        answered = time.monotonic()
        late_ms = (answered - began) * 1000.0 - deadline_ms
        self.ends[end] += 1
        if end != "UNAVAILABLE":
            self.late_ms.append(late_ms)
            if late_ms > self._grace_ms:
                self._late.append((en, end, began, answered, late_ms))


async def faults(nodes: Nodes, count: int, seconds: float, done: Counter[str]) -> None:
    """So many at random moments, some at the same time."""
    kinds: list[Callable[[int], Awaitable[None]]] = [
        nodes.killed_sn, nodes.drained_sn, nodes.stopped_sn, nodes.partition, nodes.killed_en,
        nodes.lies, nodes.flood, nodes.nonsense,
    ]  # fmt: skip

    async def one(moment_s: float) -> None:
        await asyncio.sleep(moment_s)
        kind, sn = random.choice(kinds), random.randrange(LIAR)
        async with nodes.used[sn]:  # one thing at a time is done to an SN
            await kind(sn)
        done[getattr(kind, "__name__", "")] += 1

    await asyncio.gather(*(one(random.uniform(0.0, seconds)) for _ in range(count)))


def measured(each: Running) -> dict[str, float]:
    """The metrics of a daemon by name; empty if it does not answer."""
    port = each.said("serving")[-1]["admin"]
    return {sample.name: sample.value for sample in scraped(f"127.0.0.1:{port}")}


def left_behind(each: Running) -> str:
    """What is left in a node that has nothing to do any more; empty if nothing."""
    told = measured(each)
    if not told:
        return f"{each.config.name} does not answer"
    held = told["cosmo_tasks_in_node"] + told.get("cosmo_calls", 0.0)
    free = told["cosmo_free_bytes"]
    if held or free != each.config.node.storage_bytes:
        return f"{each.config.name}: {held:g} tasks and calls left, {free:g} bytes free"
    return ""


def resident_mb(each: Running) -> float:
    """Memory of a daemon."""
    pages = int(Path(f"/proc/{each.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def campaign(chosen: argparse.Namespace, folder: Path) -> list[str]:
    """Play it; what is wrong, a line each."""
    async with AsyncExitStack() as opened:
        nodes = Nodes(folder, chosen.method)
        await nodes.begin(opened)
        load, done = Load(nodes, chosen.grace_ms), Counter[str]()
        machine = await opened.enter_async_context(Wakeups())
        waits = Waits(lambda: [*(each.process.pid for each in nodes.ens), os.getpid()])
        watching = asyncio.create_task(waits.watch())
        opened.callback(watching.cancel)
        await load.run(int(20 * chosen.per_s), chosen.per_s)  # until all is warm
        before_mb, began = resident_mb(nodes.ens[0]), time.monotonic()
        seconds = chosen.tasks / chosen.per_s
        await asyncio.gather(
            load.run(chosen.tasks, chosen.per_s), faults(nodes, chosen.faults, seconds, done)
        )
        await asyncio.sleep(3.0)
        own = load.later_than(machine, waits)
        wrong = load.wrong + own
        wrong += [line for each in (*nodes.ens, *nodes.sns) if (line := left_behind(each))]
        after_mb = resident_mb(nodes.ens[0])
        if after_mb > before_mb + MOST_GROWN_MB:
            wrong.append(f"en0 has grown from {before_mb:.1f} to {after_mb:.1f} MB")
        late, plain = np.array(load.late_ms), np.array(machine.late_ms)
        print(
            f"{sum(load.ends.values())} tasks in {time.monotonic() - began:.0f} s:"
            f" {dict(load.ends)}\n{sum(done.values())} faults: {dict(done)}\n"
            f"after deadlines: p99 {np.quantile(late, 0.99):.0f} ms, most {late.max():.0f} ms,"
            f" {(late > chosen.grace_ms).sum()} answers more than {chosen.grace_ms:g} ms,"
            f" {len(own)} of them beyond what the machine was late meanwhile\n"
            f"the machine: plain timers p99 {np.quantile(plain, 0.99):.0f} ms late, most"
            f" {plain.max():.0f} ms; timers of en0 up to"
            f" {1000.0 * measured(nodes.ens[0])['cosmo_timer_late_max_seconds']:.0f} ms;"
            f" en0 {before_mb:.1f} to {after_mb:.1f} MB"
        )
        return wrong


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--tasks", type=int, default=3000)
    options.add_argument("--faults", type=int, default=10)
    options.add_argument("--per-s", type=float, default=100.0, help="tasks a second")
    options.add_argument("--grace-ms", type=float, default=100.0, help="after the deadline")
    options.add_argument("--method", default="cosmo-next")
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    random.seed(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="cosmo-faults-") as name:
        wrong = asyncio.run(campaign(chosen, Path(name)))
    for line, count in Counter(wrong).most_common(20):
        print(f"WRONG {line}" + (f" ({count} times)" if count > 1 else ""))
    print(f"wrong: {len(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
