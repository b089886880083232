"""How daemons bear what goes wrong: ten times the load, slow clients, a partition, a kill.

Times are of the wall and of this machine: with other work beside it they are longer. What must hold
whatever the machine is is in tests/live; this says how fast.

python benchmarks/faults.py [--small] [--fifo]

`--fifo` gives the daemons and the load real-time priority (chrt), which needs the right to do so.
"""

import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import numpy as np

from cosmo.live import wire
from cosmo.live.client import AsyncClient
from cosmo.live.config import NodeConfig, changed_config, load_config
from cosmo.live.processes import Running
from cosmo.live.tasks import Fate
from measured import sized
from partition import Proxy
from raw_http2 import DATA, PREFACE, Raw, frame, headers, message, settings

SECONDS = sized(8.0, 1.0)
CUT_S = sized(5.0, 1.0)
USUAL_PER_S, TIMES = 150.0, 10
SLOW_CLIENTS = sized(200, 50)
STEP_S = 0.002
FIFO = ("chrt", "-f", "10") if "--fifo" in sys.argv[1:] else ()
USUAL: dict[str, object] = {
    "listen": "127.0.0.1:0", "limits.calls_per_s": 1e6, "limits.burst": 10**6,
}  # fmt: skip


def config(role: str, **fields: object) -> NodeConfig:
    """A daemon's, of one machine."""
    return changed_config(load_config(role), {**USUAL, **fields})


def begun_en(folder: Path, method: str, sn: str) -> Running:
    """An EN that has met the SN at an address."""
    peer = {**load_config("en").peers[0].model_dump(), "address": sn}
    found = Running(config("en", **{"method.use": method, "peers": [peer]}), folder, FIFO)
    found.wait_for("sn connected")
    return found


@contextmanager
def pair(method: str) -> Iterator[tuple[Running, Running]]:
    """An EN and its SN, which have met."""
    with TemporaryDirectory() as name, ExitStack() as all_:
        sn = Running(config("sn", **{"method.use": method}), Path(name), FIFO)
        all_.callback(sn.end)
        en = begun_en(Path(name), method, sn.address)
        all_.callback(en.end)
        yield en, sn


def p99(samples: list[float]) -> float:
    """In the unit of the samples; NaN if there are none."""
    return float(np.quantile(samples, 0.99)) if samples else float("nan")


class Load:
    """Tasks as in the paper, at an even pace, until it is over."""

    def __init__(self, client: AsyncClient, per_s: float, input_bytes: int = 2000) -> None:
        self._client, self._per_s, self._content = client, per_s, bytes(input_bytes)
        self.ends: Counter[str] = Counter()
        self.took_ms: dict[str, list[float]] = {}
        self.when: list[tuple[float, str]] = []  # monotonic seconds, and where

    async def run(self, seconds: float) -> "Load":
        """All answers are there when this is over."""
        draw, calls = random.Random(1), []
        start = time.monotonic()
        for number in range(int(seconds * self._per_s)):
            due = start + number / self._per_s
            if (wait := due - time.monotonic()) > 0.0:
                await asyncio.sleep(wait)
            task = draw.uniform(60.0, 220.0), draw.uniform(1e5, 1.2e6)
            calls.append(asyncio.create_task(self._call(*task)))
        await asyncio.gather(*calls)
        return self

    async def _call(self, deadline_ms: float, cycles: float) -> None:
        began = time.monotonic()
        try:
            answer = await self._client.submit(
                self._content, deadline_ms=deadline_ms, cycles=cycles
            )
            end, where = answer.fate.name, answer.where
        except grpc.aio.AioRpcError as error:
            end, where = error.code().name, ""
        self.ends[end] += 1
        self.took_ms.setdefault(end, []).append((time.monotonic() - began) * 1000.0)
        self.when.append((time.monotonic(), where))

    @property
    def all_ms(self) -> list[float]:
        """How long calls took, whatever their end."""
        return [each for took in self.took_ms.values() for each in took]

    @property
    def success(self) -> float:
        """Share of the tasks that were accepted."""
        refused = ("REJECTED", "RESOURCE_EXHAUSTED")
        accepted = sum(count for end, count in self.ends.items() if end not in refused)
        return self.ends[Fate.DONE.name] / max(accepted, 1)


def resident_mb(process: Running) -> float:
    """Memory of a daemon."""
    text = Path(f"/proc/{process.process.pid}/status").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1000.0


async def overload(en: Running) -> None:
    """Ten times the usual load."""
    async with AsyncClient(en.address) as client:
        usual = await Load(client, USUAL_PER_S).run(SECONDS)
        before = resident_mb(en)
        loaded = await Load(client, TIMES * USUAL_PER_S).run(SECONDS)
    rejected = loaded.took_ms.get("REJECTED", []) + loaded.took_ms.get("RESOURCE_EXHAUSTED", [])
    print(
        f"{TIMES} times {USUAL_PER_S:g} tasks/s: accepted tasks in time {usual.success:.3f} →"
        f" {loaded.success:.3f}; {len(rejected)} rejections, p50 {np.median(rejected):.1f} ms, p99"
        f" {p99(rejected):.1f} ms; {before:.0f} → {resident_mb(en):.0f} MB; {dict(loaded.ends)}"
    )


async def slow_clients(en: Running) -> None:
    """Connections that never finish what they began to say."""
    task = message(wire.Task(cycles=1.0, deadline_us=10**8, input=bytes(900)).SerializeToString())
    alone, beside = [], []
    async with AsyncClient(en.address) as client:
        for _ in range(3):  # by turns: what else the machine does is the same for both
            load = await Load(client, USUAL_PER_S).run(SECONDS / 3.0)
            alone += load.all_ms
            async with AsyncExitStack() as all_:
                for _ in range(SLOW_CLIENTS):
                    raw = await all_.enter_async_context(Raw(en.address))
                    await raw.send(PREFACE, settings(), headers(1, wire.SUBMIT))
                    await raw.send(frame(DATA, 0, 1, task[:-1]))
                load = await Load(client, USUAL_PER_S).run(SECONDS / 3.0)
                beside += load.all_ms
    print(
        f"{SLOW_CLIENTS} slow clients: p99 of healthy ones {p99(alone):.1f} → {p99(beside):.1f} ms,"
        f" ratio {p99(beside) / p99(alone):.2f}"
    )


async def since(moment: float, state: Callable[[], bool]) -> float:
    """Seconds from a moment until a state."""
    while not state():
        await asyncio.sleep(STEP_S)
    return time.monotonic() - moment


async def partition() -> None:
    """Nothing passes between EN and SN for a while, though no connection breaks."""
    with TemporaryDirectory() as name:
        sn = Running(config("sn", **{"method.use": "all-offload"}), Path(name), FIFO)
        try:
            async with Proxy(sn.address) as network:
                await _cut_and_heal(network, Path(name))
        finally:
            sn.end()


async def _cut_and_heal(network: Proxy, folder: Path) -> None:
    en = await asyncio.to_thread(begun_en, folder, "all-offload", network.address)
    try:
        async with AsyncClient(en.address) as client:
            load = Load(client, 50.0)
            running = asyncio.create_task(load.run(CUT_S + 4.0))
            await since(0.0, lambda: any(where == "sn0" for _, where in load.when))
            network.cut()
            cut = time.monotonic()
            noticed = await since(cut, lambda: bool(en.said("sn lost")))
            first = await since(cut, lambda: load.when[-1][1] == "local")
            await asyncio.sleep(max(CUT_S - (time.monotonic() - cut), 0.0))
            network.heal()
            healed = time.monotonic()
            met = await since(healed, lambda: len(en.said("sn connected")) > 1)
            used = await since(healed, lambda: load.when[-1][1] == "sn0")
            await running
        print(
            f"a partition of {CUT_S:g} s: noticed after {noticed:.2f} s, an answer without the SN"
            f" after {first:.2f} s, met again {met:.2f} s after it healed, used after {used:.2f} s;"
            f" {dict(load.ends)}"
        )
    finally:
        en.end()


async def kill(en: Running, sn: Running) -> None:
    """An SN killed with -9 under load, and started again."""
    address = sn.address
    async with AsyncClient(en.address) as client:
        load = Load(client, 50.0)
        running = asyncio.create_task(load.run(SECONDS + 4.0))
        await since(0.0, lambda: any(where == "sn0" for _, where in load.when))
        sn.process.kill()
        killed, count = time.monotonic(), len(load.when)
        first = await since(killed, lambda: any(w == "local" for _, w in load.when[count:]))
        sn.process.wait()
        again = Running(changed_config(sn.config, {"listen": address}), sn.file.parent, FIFO)
        try:
            await asyncio.to_thread(again.wait_for, "serving", 2)  # the log is the same
            there, count = time.monotonic(), len(load.when)
            used = await since(there, lambda: any(w == "sn0" for _, w in load.when[count:]))
            await running
        finally:
            again.end()
    print(
        f"an SN killed: first answer without it after {first:.3f} s, used again {used:.2f} s after"
        f" it listened; {dict(load.ends)}"
    )


def main() -> None:
    """Measure and print."""
    if FIFO:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    with pair("priced-books") as (en, _):
        asyncio.run(overload(en))
        asyncio.run(slow_clients(en))
    asyncio.run(partition())
    with pair("all-offload") as (en, sn):
        asyncio.run(kill(en, sn))


if __name__ == "__main__":
    main()
