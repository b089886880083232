"""An EN that takes HTTP requests as well, and has the HTTP services of its SNs answer them."""

import math
from typing import Any

from aiohttp import web

from cosmo.live.config import NodeConfig, Peer
from cosmo.live.http_en.core_http import HttpEnCore
from cosmo.live.http_en.forwarding import Forwarder
from cosmo.live.http_en.services import HttpCall
from cosmo.live.http_en.taking import TakesHttp
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.picker.endpoints import Endpoint, Place
from cosmo.live.picker.ext_proc import asked
from cosmo.live.realtime import RealClock
from cosmo.live.serve_en import EnServer
from cosmo.live.tasks import Fate, Item
from cosmo.node import Method
from cosmo.scenario.fields import MOST_AMOUNT

_LONGEST_MS = 900_000.0  # of a deadline


def _endpoint(peer: Peer) -> Endpoint:
    return Endpoint(peer.http, peer, peer.up_mbps, peer.down_mbps)


def _raw(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


class HttpEnServer(TakesHttp, EnServer):
    """The transport of tasks and of requests."""

    core: HttpEnCore
    make_core = HttpEnCore

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        super().__init__(config, method, clock, log, boot)
        peers = config.peers
        self.core.settle([Place(_endpoint(peer), bool(peer.http)) for peer in peers])
        self.core.daemons = frozenset(k for k, peer in enumerate(peers) if peer.address)
        for column, peer in enumerate(peers):
            self.core.caches[column].silent = not peer.address or self.core.caches[column].silent
        self._cycles_per_ms = sum(peer.cycles_per_ms for peer in peers) / len(peers)
        self.forwarder = Forwarder(self)

    def _take_behaviour(self, config: NodeConfig) -> None:
        super()._take_behaviour(config)
        self.core.shed = config.http.shed

    # Clients.

    async def serve_http(self, call: HttpCall) -> web.StreamResponse:
        """Have a service answer."""
        item = self._requested(call)
        try:
            return await self.forwarder.forward(call, item)
        finally:
            if not item.ended:
                self.core.cancel(item)

    def _requested(self, call: HttpCall) -> Item:
        headers = call.request.headers
        told = asked({_raw(name.lower()): _raw(value) for name, value in headers.items()})
        if told.odd:
            self.counters.add("odd_headers_total")
        deadline_ms = told.deadline_ms
        if math.isnan(deadline_ms):
            deadline_ms = self.config.http.deadline_ms
        demand = told.demand * self._cycles_per_ms
        cycles = self.estimates.of(told.kind) if math.isnan(demand) else demand
        return Item(
            number=self.core.next_number(),
            generated_ms=self.clock.now(),
            deadline_ms=min(deadline_ms, _LONGEST_MS),
            input_bytes=1.0 if math.isnan(told.size) else told.size,
            cycles=min(cycles, MOST_AMOUNT),
            residual_ms=self.config.expected.residual_ms,
            kind=told.kind,
            remote=True,
            context=call,
        )

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        """A request is sent by whoever has asked; tasks as those of any EN."""
        if not item.remote:
            super().offload(sn, item, arrival_ms)
            return
        item.context.alone = self.core.open[sn] <= self.core.places[sn].endpoint.node.slots

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        """Tell the client; answers of services are passed on as they come."""
        if not item.remote:
            super().answer(item, fate, output)
        elif fate == Fate.REJECTED:
            ready = self.core.least_busy(1)
            shed = (429, "too busy to be in time") if ready else (503, "no service is ready")
            self.counters.add("turned_away_total", status=str(shed[0]))
            item.context.answer(*shed)
        elif fate == Fate.EXPIRED:
            item.context.answer(504, "the deadline has passed")

    def recall(self, sn: int, item: Item) -> None:
        """The connection to a service ends with the request."""
        if not item.remote:
            super().recall(sn, item)

    # For people.

    def _ended(self, item: Item, fate: Fate) -> None:
        super()._ended(item, fate)
        if item.remote and item.context.alone and fate in (Fate.DONE, Fate.LATE):
            rate = self.config.peers[item.action - 1].cycles_per_ms
            self.estimates.learn(item.kind, (self.clock.now() - item.generated_ms) * rate)

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        found: list[Any] = [("redirected_total", {}, float(self.core.redirected))]
        for column, peer in enumerate(self.config.peers):
            found.append(("requests_in_flight", {"sn": peer.name}, float(self.core.open[column])))
        return [*super().measured(now), *found]

    async def close(self) -> None:
        """Leave services and SNs."""
        await self.forwarder.close()
        await super().close()
