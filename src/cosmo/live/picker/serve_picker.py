"""A picker behind Envoy's external processing: one gRPC stream for each HTTP request."""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from cosmo.live.config import NodeConfig
from cosmo.live.core_en import EnRules
from cosmo.live.deciding import DecidingServer
from cosmo.live.link import Link
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.picker import ext_proc, grpc_calls
from cosmo.live.picker.core_picker import PickerCore
from cosmo.live.picker.endpoints import Endpoint, Place, arranged
from cosmo.live.picker.grpc_calls import Budget, Call
from cosmo.live.picker.http2_sending import Stream
from cosmo.live.picker.inputs import Inputs, wanted
from cosmo.live.picker.sources import endpoint, source_of
from cosmo.live.realtime import RealClock
from cosmo.live.shadow import Shadow
from cosmo.live.sites import site_of_node
from cosmo.live.tasks import Fate, Item
from cosmo.node import NOTHING, Method

_SHED = 429, "too busy to be in time"
_NONE = 503, "no endpoint is ready"


class PickerCall(Call):
    """One HTTP request of the proxy's, from its headers to the end of its answer."""

    __slots__ = ("_item", "_modes", "_server", "alone", "answer", "silent")

    def __init__(self, stream: Stream, server: "PickerServer") -> None:
        super().__init__(stream, server.config.limits.input_bytes, server.budget)
        self._server = server
        self._item: Item | None = None
        self._modes = 0, 0  # of the bodies of request and answer: whether they come here, and how
        self.silent = False  # the proxy only shows what happens, and wants no answers
        self.answer = b""  # to the request's headers
        self.alone = False  # no request of this picker waits for the same slot

    def message(self, content: bytes) -> None:
        """A phase of the request; each is answered once, in order."""
        asking = ext_proc.read(content)
        phase = None if asking is None else asking.WhichOneof("request")
        if phase is None:
            self.finish(grpc_calls.INVALID_ARGUMENT, "not a ProcessingRequest")
        elif len(content) > ext_proc.SURELY_SHORT and ext_proc.is_too_long(asking, phase):
            self.finish(grpc_calls.INVALID_ARGUMENT, "too many headers or entries")
        elif phase == "request_headers":
            self._decide(asking)
        elif phase == "response_headers":
            self._note_answer(asking)
            self._say(ext_proc.GO_ON[phase])
        elif phase.endswith("body"):
            self._pass_on(phase, getattr(asking, phase))
        else:
            if phase == "response_trailers":
                self._end()
            self._say(ext_proc.GO_ON[phase])

    def _say(self, answer: bytes) -> None:
        if not self.silent:
            self.send(answer)

    def _decide(self, asking: Any) -> None:
        if self._item is not None:
            self.finish(grpc_calls.INVALID_ARGUMENT, "a stream is for one request")
            return
        self.silent = asking.observability_mode
        modes = asking.protocol_config
        self._modes = modes.request_body_mode, modes.response_body_mode
        self._item = self._server.decide(self, asking)
        self._say(self.answer)

    def _pass_on(self, phase: str, part: Any) -> None:
        answers = phase == "response_body"
        if answers and (part.end_of_stream or part.end_of_stream_without_message):
            self._end()
        # A full-duplex stream gets its bytes back, any other a word.
        duplex = self._modes[answers] in ext_proc.DUPLEX
        self._say(ext_proc.sent_on(phase, part) if duplex else ext_proc.GO_ON[phase])

    def _note_answer(self, asking: Any) -> None:
        item = self._item
        if item is not None and not item.ended:
            more = self._modes[1] != 0 and not asking.response_headers.end_of_stream
            self._server.answered(item, asking, more)

    def _end(self) -> None:
        if self._item is not None and not self._item.ended:
            self._server.core.result(self._item, b"")

    def finish(self, code: int, why: str = "") -> None:
        """No more is heard of the request: one that was not answered by now never is."""
        self._give_up()
        super().finish(code, why)

    def closed(self) -> None:
        """The stream is over."""
        super().closed()
        self._give_up()

    def _give_up(self) -> None:
        if self._item is not None and not self._item.ended:
            self._server.counters.add("cancelled_total")
            self._server.core.cancel(self._item)


class PickerServer(DecidingServer):
    """The transport of a picker's core."""

    kind = "picker"
    core: PickerCore

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        vacant = Place(endpoint("0.0.0.0:1", config.picker), False)  # a site has an SN
        self._source = source_of(config.picker, config.tls)
        peers = [vacant.endpoint]
        super().__init__(config, method, clock, log, boot, peers, PickerCore)
        self.budget = Budget(64 * config.limits.input_bytes)
        self.synced = False  # whether the endpoints are known
        self._columns: dict[str, int] = {}  # of endpoints that are there
        self._names: list[str] = []
        self._watching: asyncio.Task[None] | None = None
        self.inputs = Inputs(self, method)
        self._settle([vacant])

    def _rules(self, config: NodeConfig) -> EnRules:
        behaviour = config.behaviour
        return EnRules(expires=behaviour.lost == "expire", fresh_ms=behaviour.fresh_ms)

    def _take_behaviour(self, config: NodeConfig) -> None:
        super()._take_behaviour(config)
        self.core.shed = config.picker.shed

    def take(self, client: str) -> bool:
        """Whether a further call of a client is within the limits."""
        return self.in_flight < self.config.limits.calls and self._buckets.take(client)

    @property
    def in_flight(self) -> int:
        """Requests that have been decided on and have not ended."""
        return self.core.in_flight

    def begin(self) -> None:
        """Decide once for practice, then watch the source of endpoints."""
        self._warm_up()
        self._look()

    def _look(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        self._watching = self._loop.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching the source of endpoints, and end all inputs."""
        if self._watching is not None:
            self._watching.cancel()
        await self.inputs.close()
        await super().close()

    def reload(self, config: NodeConfig, method: Method) -> None:
        """Take over what may change, also where endpoints are listed and what is asked of them."""
        if config.picker == self.config.picker:
            super().reload(config, method)
            return
        source, inputs = source_of(config.picker, config.tls), wanted(config, method)
        super().reload(config, method)
        self.inputs.change(inputs)
        self._source = source
        self._look()

    def _check_reload(self, config: NodeConfig, carries: int) -> None:
        """A picker that went by no statuses has agreed with nobody on their length."""
        super()._check_reload(config, carries if self._carries != NOTHING else NOTHING)

    def _expect(self, method: Method) -> None:
        if self._carries == NOTHING:
            self._carries = method.carries
            self.core.expect(method.carries)
        self.inputs.expect(method)

    # Endpoints.

    async def _watch(self) -> None:
        async for found in self._source:
            if isinstance(found, str):
                self.log.warning("endpoints are not known", why=found)
                continue
            try:
                self.take_endpoints(found)
            except Exception as error:  # of a method, say: the next ones are taken again
                self.log.warning(
                    "endpoints cannot be taken", why=f"{type(error).__name__}: {error}"
                )

    def take_endpoints(self, endpoints: list[Endpoint]) -> None:
        """These are all there are from now on."""
        core = self.core
        busy = {column for column, count in enumerate(core.open) if count}
        # The first ones make the site as it is meant; nothing has been learned before.
        known = core.places if self.synced else []
        places, same = arranged(known, busy, endpoints)
        same = same and self.synced
        places = places or core.places  # a site has an SN, even if nobody has its place
        if not same or len(places) > core.sns:
            self._rebuild(places, same)
        self._settle(places)
        self.synced = True
        self.log.info("endpoints", count=len(endpoints), places=len(places))

    def _settle(self, places: list[Place]) -> None:
        self.core.settle(places)
        before = set(self._columns)
        self._columns = {each.endpoint.address: k for k, each in enumerate(places) if each.present}
        for address in before - self._columns.keys():
            self.counters.forget(address)
        self._names = [each.endpoint.address for each in places]
        self.inputs.settle(places)

    def _rebuild(self, places: list[Place], same: bool) -> None:
        """A site of another size; what methods know of columns that stay is kept if it can be."""
        self.site = site_of_node(self.config, [place.endpoint for place in places])
        links = [Link(self.site.links, self.config.number, k, up=True) for k in range(len(places))]
        self.core.resize(self.site, links, same)
        if self.shadow is not None:
            self.shadow = Shadow.of(self.config.method.shadow, self.site, self.config.number)

    @property
    def ready(self) -> bool:
        """Whether there is anything to choose from, and requests are taken."""
        return self.synced and bool(self._columns) and not self.draining

    def health(self) -> dict[str, int]:
        """The serving status of each service that health checks may name."""
        ready = grpc_calls.SERVING if self.ready else grpc_calls.NOT_SERVING
        alive = grpc_calls.SERVING
        return {"": ready, "liveness": alive, "readiness": ready, ext_proc.SERVICE: ready}

    # Requests.

    def decide(self, call: PickerCall, asking: Any) -> Item:
        """Choose for a request; the call's answer is filled in."""
        told = ext_proc.asked(ext_proc.headers_of(asking.request_headers))
        if told.odd:
            self.counters.add("odd_headers_total")
        now, config = self.clock.now(), self.config
        item = Item(
            number=self.core.next_number(),
            generated_ms=now,
            deadline_ms=min(told.deadline_ms, 900_000.0)
            if told.deadline_ms == told.deadline_ms
            else config.picker.deadline_ms,
            input_bytes=1.0 if math.isnan(told.size) else told.size,
            cycles=self.estimates.of(told.kind) if math.isnan(told.demand) else told.demand,
            residual_ms=config.expected.residual_ms,
            kind=told.kind,
            context=call,
        )
        subset = ext_proc.subset_of(asking)
        allowed = None
        if subset is not None:
            allowed = frozenset(self._columns[each] for each in subset if each in self._columns)
        try:
            self.core.pick(item, allowed)
        except Exception:  # whatever fails after admission gives the place back
            self.core.cancel(item)
            raise
        return item

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        """Name the endpoint that was chosen, and others in case it cannot be reached."""
        names, core = self._names, self.core
        item.context.alone = core.open[sn] <= core.places[sn].endpoint.node.slots
        others = core.least_busy(self.config.picker.ranked - 1, but=sn)
        ranked = ",".join([names[sn], *(names[k] for k in others)]) if others else names[sn]
        item.context.answer = ext_proc.picked(ranked)

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        """Of a request that is sent nowhere; all others are answered by their endpoint."""
        if fate == Fate.REJECTED:
            status = _SHED if self.core.least_busy(1) else _NONE
            self.counters.add("turned_away_total", status=str(status[0]))
            item.context.answer = ext_proc.turned_away(*status)

    def answered(self, item: Item, asking: Any, more: bool) -> None:
        """The headers of a request's answer have come; `more`: the rest of it is heard of, too."""
        headers = ext_proc.headers_of(asking.response_headers)
        status = headers.get(ext_proc.STATUS, b"")
        address, details = ext_proc.served_by(asking)
        core, sn = self.core, item.action - 1
        if not 0 <= sn < core.sns:
            return
        if item.context.silent:
            self._note_shown(item, self._columns.get(address), headers, more)
        elif address and address != self._names[sn]:
            self.counters.add("served_elsewhere_total")
            core.broke(sn, True)
            other = self._columns.get(address)
            if other is not None and status < b"500":
                core.worked(other)
            core.refused(item)
        elif status >= b"500":
            core.broke(sn, "connection" in details)
            core.failed(item, Fate.FAILED, f"status {status[:3].decode('ascii', 'replace')}")
        else:
            core.worked(sn)
            self.inputs.take_report(sn, headers)
            if not more:
                core.result(item, b"")

    def _note_shown(
        self, item: Item, served: int | None, headers: Mapping[bytes, bytes], more: bool
    ) -> None:
        """The answer of a proxy that only shows its requests: where one went, if that is known at
        all, says nothing of the endpoint that the picker chose, and for its method the request has
        ended.
        """
        core = self.core
        if served is not None and headers.get(ext_proc.STATUS, b"") >= b"500":
            core.broke(served, False)
        elif served is not None:
            core.worked(served)
            self.inputs.take_report(served, headers)
        if not more:
            core.result(item, b"")

    def recall(self, sn: int, item: Item) -> None:
        """The proxy ends its requests itself."""

    def acknowledge(self, sn: int, sequence: int, arrival_ms: float) -> None:
        """To the agent whose status has come."""
        self.inputs.acknowledge(sn, sequence)

    def abandon(self, sn: int) -> None:
        """An agent is gone; requests are the proxy's, and go on."""

    # For people.

    def _name_of(self, action: int) -> str:
        return self._names[action - 1] if 0 < action <= self.core.sns else "reject"

    def _ended(self, item: Item, fate: Fate) -> None:
        super()._ended(item, fate)
        if fate in (Fate.DONE, Fate.LATE) and item.context.alone:
            spent_ms = self.clock.now() - item.generated_ms
            rate = self.config.picker.endpoint.cycles_per_ms
            self.estimates.learn(item.kind, spent_ms * rate)

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        found = [*super().measured(now), ("endpoints", {}, float(len(self._columns)))]
        found += [("redirected_total", {}, float(self.core.redirected))]
        for address, column in self._columns.items():
            sn = {"sn": address}
            found += [
                ("requests_in_flight", sn, float(self.core.open[column])),
                ("sn_silent", sn, float(not self.core.is_reachable(column))),
            ]
            age_ms = now - self.core.caches[column].source_ms
            if age_ms == age_ms:
                found.append(("status_age_seconds", sn, age_ms / 1000.0))
        return found
