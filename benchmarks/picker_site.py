"""A site of Envoys, pickers and HTTP services whose times nobody knows, and what fails in it."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.live.config import changed_config, load_config
from cosmo.live.picker import envoy_config
from cosmo.live.processes import Running
from partition import Proxy
from picker_success import DEADLINE_S, MEAN_S, SLOTS, SPREAD, Service
from picker_success import _envoy as envoy_process
from picker_success import _port_of as port_of

Floats = NDArray[np.float64]

_PATIENCE_S = 60.0  # for Envoys to start


class FaultyService(Service):
    """A service that can slow down, die with all its connections, and come back."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self._slots, self.speed, self.served = slots, 1.0, 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._held: set[object] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> asyncio.Server:
        port = int(self.address.rpartition(":")[2] or 0)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self._server

    async def work(self, seconds: float) -> None:
        held, mark = self._held, object()
        held.add(mark)
        self.served += 1
        try:
            await super().work(seconds / self.speed)
        finally:
            held.discard(mark)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await super()._serve(reader, writer)
        finally:
            self._writers.discard(writer)

    def die(self) -> int:
        """Requests that it takes along."""
        lost = len(self._held)
        self._held, self._free = set(), asyncio.Semaphore(self._slots)
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        return lost


class Record(NamedTuple):
    """What became of a request."""

    due_s: float  # from the first on
    took_s: float
    work_s: float
    status: int  # 0: the connection broke

    @property
    def in_time(self) -> bool:
        return self.status == 200 and self.took_s <= DEADLINE_S


@dataclass
class Site:
    """What stands, and how to ask it."""

    services: list[FaultyService]
    pickers: list[Running] = field(default_factory=list)
    networks: list[Proxy] = field(default_factory=list)  # between each Envoy and its picker
    ports: list[int] = field(default_factory=list)
    folder: Path = Path()
    records: list[Record] = field(default_factory=list)
    headers: str = ""  # lines that clients add

    async def play(self, rate: float, seconds: float, seed: int = 1) -> list[Record]:
        """Send requests by an open loop, the same ones for the same seed; their records."""
        random = np.random.default_rng(seed)
        count = max(int(rate * seconds), 1)
        due = np.cumsum(random.exponential(1.0 / rate, count))
        works = MEAN_S * np.exp(SPREAD * random.normal(size=count) - SPREAD**2 / 2)
        loop = asyncio.get_running_loop()
        start, found = loop.time(), len(self.records)
        async with asyncio.TaskGroup() as group:
            for number, (at, work) in enumerate(zip(due.tolist(), works.tolist(), strict=True)):
                await asyncio.sleep(max(start + at - loop.time(), 0.0))
                port = self.ports[number % len(self.ports)]
                group.create_task(self._send(port, work, at, start + at))
        return sorted(self.records[found:])

    async def _send(self, port: int, work_s: float, due_s: float, due_at: float) -> None:
        """A request over a connection of its own: what broke one must not hurt the next."""
        loop, status, writer = asyncio.get_running_loop(), 0, None
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = f"GET / HTTP/1.1\r\nhost: x\r\nx-bench-s: {work_s:.6f}\r\n{self.headers}\r\n"
            writer.write(head.encode())
            told = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _PATIENCE_S)
            status = int(told.split(maxsplit=2)[1])
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            if writer is not None:
                writer.close()
        self.records.append(Record(due_s, loop.time() - due_at, work_s, status))


@asynccontextmanager
async def standing(
    program: Path,
    method: str = "",
    envoys: int = 2,
    slots: tuple[int, ...] = SLOTS,
    rate: float = 50.0,
    timeout_s: float = 0.25,
    told: Mapping[str, object] | None = None,
) -> AsyncIterator[Site]:
    """A site whose Envoys take requests; without a method they choose by LEAST_REQUEST."""
    site = Site([FaultyService(each) for each in slots])
    for service in site.services:
        await service.start()
    addresses = [each.address for each in site.services]
    with ExitStack() as stack:
        site.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        listed = [f"{a} slots={s}" for a, s in zip(addresses, slots, strict=True)]
        (site.folder / "endpoints").write_text("\n".join(listed))
        for number in range(envoys):
            clusters, filters = [envoy_config.services(addresses)], []
            if method:
                site.pickers.append(
                    _picker(site, method, rate / envoys, number, envoys, told or {})
                )
                stack.callback(site.pickers[-1].end)
                network = await Proxy(site.pickers[-1].address).__aenter__()
                site.networks.append(network)
                clusters.append(envoy_config.picker_cluster(network.address))
                filters.append(envoy_config.ask_picker(timeout_s))
            document = envoy_config.bootstrap("127.0.0.1:0", "127.0.0.1:0", clusters, filters)
            stack.enter_context(envoy_process(program, site.folder / f"envoy{number}", document))
        async with asyncio.timeout(_PATIENCE_S):
            for number in range(envoys):
                admin = site.folder / f"envoy{number}" / "admin"
                while (port := await asyncio.to_thread(port_of, admin)) is None:
                    await asyncio.sleep(0.05)
                site.ports.append(port)
        try:
            yield site
        finally:
            for each in site.networks:
                await each.__aexit__()
            for service in site.services:
                service.die()


def _picker(
    site: Site, method: str, rate: float, number: int, envoys: int, more: Mapping[str, object]
) -> Running:
    told: dict[str, object] = {
        "name": f"picker{number}",
        "number": number,
        "neighbours": envoys - 1,
        "listen": "127.0.0.1:0",
        "method.use": method,
        "method.slow_ms": 50.0,
        "picker.endpoints": f"file:{site.folder / 'endpoints'}",
        "picker.every_s": 0.2,
        "picker.deadline_ms": 1000.0 * DEADLINE_S,
        "expected.cycles": [1.0, 2000.0 * MEAN_S - 1.0],
        "expected.deadline_ms": [1000.0 * DEADLINE_S, 1000.0 * DEADLINE_S],
        "expected.rate": rate,
        **more,
    }
    return Running(changed_config(load_config("picker"), told), site.folder)
