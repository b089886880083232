"""An agent beside a service that knows nothing of this package: an SN that runs no task itself.

Its state is what the service's own metrics say, or what `http_en.counting` counts. When to tell
which picker, and what, its method's updater decides, over the protocol that SNs have.
"""

import time
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.config import NodeConfig, Peer
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.peers import client_ssl, names_of
from cosmo.live.readings.metering import Meter, Reading
from cosmo.live.readings.metric_names import load_names
from cosmo.live.readings.pages import Page
from cosmo.live.readings.scraper import MOST_BYTES, READ, Scraper
from cosmo.live.readings.states import state_of
from cosmo.live.realtime import RealClock
from cosmo.live.serve_sn import SnServer
from cosmo.live.station import Station
from cosmo.live.tasks import Item
from cosmo.live.updater_runner import GuardedUpdaterRunner
from cosmo.node import NOTHING, REQUESTS, Method, Site, UpdateObservation

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class ServiceStation(Station):
    """The slots, queue and storage of a service, as they were last read."""

    def __init__(self, site: Site) -> None:
        super().__init__(site.sn, 0, site.reservation_floor_bytes, 1.0, _never)
        self._seen = state_of(Reading(running=0.0), site, 0)  # no picker receives it

    def note(self, state: Floats) -> None:
        """Take over what has been read."""
        self._seen = state

    @property
    def requests(self) -> int:
        """Waiting and running requests."""
        return int(self._seen[REQUESTS])

    def state(self, now: float) -> list[float]:
        """Return the service's state, [field] of `cosmo.node.observation`."""
        return [float(each) for each in self._seen]


def _never(slot: int, item: Item, finish_ms: float) -> None:
    raise AssertionError("an agent runs no task")


class AgentRunner(GuardedUpdaterRunner):
    """Asks an updater not more often than there is something new to decide on."""

    def __init__(self, method: Method, site: Site, least_ms: float) -> None:
        super().__init__(method, site)
        self._least_ms = least_ms

    def decide(self, seen: UpdateObservation, ens: int) -> tuple[Bools, float, Floats]:
        """Return the updater's decision, the next one not before the next reading."""
        send, interval_ms, numbers = super().decide(seen, ens)
        return send, max(interval_ms, self._least_ms), numbers


class AgentServer(SnServer):
    """Reads the metrics of one service, and sends statuses to the pickers that watch it."""

    kind = "agent"

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        super().__init__(_as_sn(config), method, clock, log, boot)
        self._station = self.core.station = ServiceStation(self.site)
        self._readable = False  # whether the state is that of the service
        self._read_s = time.monotonic()
        self._scraper = self._made_scraper(config) if config.agent.url else None
        self._begun, self._result = False, ""

    def _made_scraper(self, config: NodeConfig) -> Scraper:
        agent = config.agent
        encrypted = client_ssl(config.tls) if agent.url.startswith("https:") else None
        page = Page(agent.url, MOST_BYTES, encrypted)
        meter = Meter(load_names(agent.metrics), agent.labels, config.node.slots)
        return Scraper(page, meter, self.clock, agent.read_ms, config.behaviour.silent_ms)

    def _runner(self, method: Method) -> GuardedUpdaterRunner:
        use = self.config.method.use
        if method.carries == NOTHING:
            raise InputError(f"method.use = {use!r}: sends no statuses, for which an agent is")
        made = AgentRunner(method, self.site, self.config.agent.read_ms)
        if made.rides:
            raise InputError(
                f"method.use = {use!r}: its statuses ride on results, which no agent sees"
            )
        made.report = lambda why: self.log.warning("updater failed", why=why)
        return made

    def reload(self, config: NodeConfig, method: Method) -> None:
        """Take over what may change while a node runs; all of it has been validated."""
        super().reload(_as_sn(config), method)

    @property
    def in_flight(self) -> int:
        """Nothing is waited for: the service ends its requests itself."""
        return 0

    def begin(self) -> None:
        """Start reading; decisions begin with the first reading."""
        assert self._scraper is not None
        self._scraper.begin(self._heard, self._told, self._silent)

    def handlers(self) -> list[Any]:
        """For a gRPC server: there is nothing to execute here."""
        watch = grpc.stream_stream_rpc_method_handler(
            self.watch, wire.reader(wire.FromEn), wire.FromSn.SerializeToString
        )
        return [grpc.method_handlers_generic_handler(f"{wire.PACKAGE}.Sn", {"Watch": watch})]

    async def close(self) -> None:
        """Stop reading metrics and close all connections."""
        if self._scraper is not None:
            await self._scraper.close()
        await super().close()

    # The service.

    def _heard(self, reading: Reading, made_ms: float) -> None:
        self._station.note(state_of(reading, self.site, 0))
        self._read_s = time.monotonic() - (self.clock.now() - made_ms) * self.clock.scale / 1000.0
        self._readable = True
        if not self._begun:
            self._begun = True
            self.core.begin()

    def _told(self, result: str, why: str) -> None:
        self.counters.add("metric_reads_total", result=result)
        if result != self._result:
            self._result = result
            say = self.log.info if result == READ else self.log.warning
            say("metrics of the service", result=result, why=why)

    def _silent(self) -> None:
        """Pickers are better off without a status than with one that nobody can renew."""
        if self._readable:
            self._readable = False
            self._hang_up()

    # Pickers.

    def _closed(self) -> str:
        return super()._closed() or ("" if self._readable else "nothing is known of the service")

    def _en_of(self, name: str, context: Any) -> int | None:
        """Pickers come by any name that they have a certificate for, up to `agent.pickers`."""
        known = super()._en_of(name, context)
        certified = not self.config.tls.certificate or name in names_of(context)
        if known is not None or not certified or not 0 < len(name) <= 60 or not name.isprintable():
            return known
        free = (en for en, state in enumerate(self._states) if state.out is None)
        place = next(free, None)
        if place is not None:
            self.counters.forget(self._en_names[place])
            self._en_names[place] = name
        return place

    def _made_s(self) -> float:
        return self._read_s

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        age_s = time.monotonic() - self._made_s()
        return [*super().measured(now), ("reading_age_seconds", {}, age_s)]


def _as_sn(config: NodeConfig) -> NodeConfig:
    """The configuration of the SN that an agent is, with a peer for each picker there may be."""
    picker = config.node.model_dump() | {"slots": 1, "storage_bytes": 1.0, "queue_capacity": 1}
    links = {"up_mbps": config.picker.link_mbps, "down_mbps": config.picker.link_mbps}
    peers = [Peer(name=f"place{k}", **picker, **links) for k in range(config.agent.pickers)]
    return config.model_copy(update={"role": "sn", "peers": tuple(peers)})
