"""An SN behind gRPC: Execute for tasks, Watch for statuses."""

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from cosmo.live import wire
from cosmo.live.clock import DELIVERY
from cosmo.live.config import NodeConfig
from cosmo.live.core_sn import SnCore, SnRules
from cosmo.live.emulation import handler_of
from cosmo.live.limits import limit_of_stream, span_of
from cosmo.live.link import Link
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.orca import Orca
from cosmo.live.peers import check_caller, names_of
from cosmo.live.realtime import RealClock
from cosmo.live.server import NodeServer
from cosmo.live.tasks import Fate, Item
from cosmo.live.updater_runner import GuardedUpdaterRunner
from cosmo.node import NO_NODE, NOTHING, Method

_SEEN = 4096  # tasks of an EN that are remembered, so that none is done twice
_QUEUE = 256  # messages to an EN that is slow to read
_MOST_ROUND_TRIP_US = 60_000_000  # an EN that waits for longer has hung up
_HELLO_S = 10.0  # for an EN to say who it is


class _Call:
    """A task of an EN, from its arrival to its answer."""

    __slots__ = ("answer", "received_ms")

    def __init__(self, received_ms: float, answer: "asyncio.Future[Any]") -> None:
        self.received_ms, self.answer = received_ms, answer


class _En:
    """What the SN keeps of one EN."""

    def __init__(self) -> None:
        self.accused = False  # of saying what cannot be true; that is logged once
        self.transit_ms = 0.0  # of a small message one way, as the EN has found
        # (boot, number) of tasks, of all starts of the EN: numbers of before may come again.
        self.seen: set[tuple[int, int]] = set()
        self.order: deque[tuple[int, int]] = deque()
        self.out: asyncio.Queue[Any] | None = None  # of its Watch stream
        self.boot = 0  # of who has that stream
        # Boots whose stream another one replaced: one that comes back shares its name with others.
        self.replaced: deque[int] = deque(maxlen=8)
        self.shared = False

    def found_shared(self, boot: int) -> bool:
        """A stream begins; whether it is the first to show that several nodes have its name."""
        if self.out is not None and self.boot != boot:
            self.replaced.append(self.boot)
        self.boot, before = boot, self.shared
        self.shared = before or boot in self.replaced
        return self.shared and not before

    def fresh(self, boot: int, number: int) -> bool:
        """Whether this task has not been seen before."""
        task = boot, number
        if task in self.seen:
            return False
        self.seen.add(task)
        self.order.append(task)
        if len(self.order) > _SEEN:
            self.seen.discard(self.order.popleft())
        return True


class SnServer(NodeServer):
    """The transport of an SN's core, and the handlers of its service."""

    kind = "SN"
    core: SnCore

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        super().__init__(config, method, clock, log, boot)
        self._en_names = [peer.name for peer in config.peers]
        self._states = [_En() for _ in config.peers]
        ens, columns = (table[config.number] for table in self.site.links.reached_by)
        self.core = SnCore(
            self.site,
            config.number,
            self._runner(method),
            clock,
            self.worker,
            self,
            [
                Link(self.site.links, en, column, up=False, carried=not config.links.emulate_rate)
                for en, column in zip(ens.tolist(), columns.tolist(), strict=True)
                if en != NO_NODE
            ],
            _rules(config),
        )
        for en in range(len(config.peers)):
            self.core.met(en, False)
        self.core.on_end = self._count
        self.orca: Orca | None = None
        if config.orca:
            self.orca = Orca(self.core.station, config.node.storage_bytes, clock, config.tls)

    def _runner(self, method: Method) -> GuardedUpdaterRunner | None:
        if method.carries == NOTHING:
            return None
        made = GuardedUpdaterRunner(method, self.site)
        made.report = lambda why: self.log.warning("updater failed", why=why)
        made.remarks.tell = lambda line: self.log.warning("outside of its training", what=line)
        return made

    def reload(self, config: NodeConfig, method: Method) -> None:
        """Take over what may change while a node runs; all of it has been validated."""
        self._check_reload(config, method.carries)
        self.core.take_over(self._runner(method))
        self._take_limits(config)
        self.core.rules = _rules(config)

    def _count(self, item: Item, fate: Fate) -> None:
        self.counters.add("tasks_total", fate=fate.name)
        if self.orca is not None:
            self.orca.count(item, fate)

    @property
    def in_flight(self) -> int:
        """Tasks in the node."""
        return self.core.station.requests

    def begin(self) -> None:
        """Start to decide about statuses."""
        self.core.begin()

    def handlers(self) -> list[Any]:
        """For a gRPC server."""
        calls = {
            "Execute": self._unary(self.execute, wire.Task, wire.Result),
            "Watch": grpc.stream_stream_rpc_method_handler(
                self.watch, wire.reader(wire.FromEn), wire.FromSn.SerializeToString
            ),
        }
        own = grpc.method_handlers_generic_handler(f"{wire.PACKAGE}.Sn", calls)
        more = [] if self.orca is None else self.orca.handlers()
        if self.config.handler.kind == "testbed":
            more.append(handler_of(self.core.change_speed, self._take_tenant))
        return [own, *more]

    # Tasks.

    def _take_tenant(self, size: float, cycles: float, true_cycles: float) -> None:
        """A task that comes from elsewhere: takes room, and sends nothing (R39)."""
        now = self.clock.now()
        item = Item(-1, now, math.inf, size, cycles, true_cycles=true_cycles)
        self.core.arrive(item, None)

    def _en_of(self, name: str, context: Any) -> int | None:
        """The number of the EN that calls by this name; None if it may not."""
        if self.config.tls.certificate and name not in names_of(context):
            return None
        return self._en_names.index(name) if name in self._en_names else None

    async def execute(self, task: Any, context: Any) -> Any:
        """A task of an EN."""
        now = self.clock.now()
        told = dict(context.invocation_metadata() or ())
        name = str(told.get("cosmo-en", ""))
        en = self._en_of(name, context)
        if en is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"no EN of name {name!r} here")
        await self._check(task, context, cycles_needed=True)
        assert en is not None
        if not self._states[en].fresh(task.boot, task.id):
            await context.abort(grpc.StatusCode.ALREADY_EXISTS, f"task {task.id} was here before")
        elapsed_ms, deadline_ms = span_of(task, self.site.tasks.deadline_ms[1])
        item = Item(
            number=task.id,
            generated_ms=now - elapsed_ms,
            deadline_ms=deadline_ms,
            input_bytes=float(max(len(task.input), 1)),
            cycles=task.cycles,
            kind=task.kind,
            input=task.input,
            true_cycles=self._true_cycles(task.input),
            context=_Call(now, self._loop.create_future()),
        )
        answer = item.context.answer
        try:
            self.core.arrive(item, en)
            result = await answer
            if self.orca is not None:
                context.set_trailing_metadata(self.orca.trailer())
            return result
        except BaseException:  # cancelled, or failed here: the slot and its storage are free again
            self.core.drop(item)
            raise

    def answer(
        self,
        en: int,
        item: Item,
        fate: Fate,
        output: bytes,
        arrival_ms: float,
        rider: tuple[int, NDArray[np.float64]] | None,
    ) -> None:
        """A result or a notice, at once or when an emulated link has brought it there."""
        reply = partial(self._reply, item, fate, output, rider, self.clock.now())
        if self.config.links.emulate:
            self.clock.at(arrival_ms - self._states[en].transit_ms, DELIVERY, reply)
        else:
            reply()

    def _reply(
        self,
        item: Item,
        fate: Fate,
        output: bytes,
        rider: tuple[int, NDArray[np.float64]] | None,
        made_ms: float,
    ) -> None:
        call = item.context[1]
        if not call.answer.done():
            held_us = int((self.clock.now() - call.received_ms) * 1000.0)
            reason = output.decode(errors="replace")[:200]
            told = {"output": output} if fate == Fate.DONE else {"reason": reason}
            if rider is not None:
                waited_us = int((self.clock.now() - made_ms) * 1000.0)
                told["status"] = wire.Status(
                    sequence=rider[0], held_us=waited_us, numbers=rider[1].tolist()
                )
            call.answer.set_result(
                wire.Result(id=item.number, fate=int(fate), held_us=held_us, **told)
            )

    # Statuses.

    async def watch(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """One EN's stream, until it ends."""
        await check_caller(context, self.config.tls)
        try:
            async with asyncio.timeout(_HELLO_S):
                first = await anext(aiter(requests), None)
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "no hello")
        hello = (first or wire.FromEn()).hello  # empty if that was something else
        name = hello.name
        en = self._en_of(name, context)
        if en is None:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, f"no EN of name {name!r} here")
        assert en is not None
        if closed := self._closed():
            await context.abort(grpc.StatusCode.UNAVAILABLE, closed)
        carries = self._carries
        if hello.version != wire.VERSION or hello.carries != carries:
            await context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                f"the EN has version {hello.version} and statuses of"
                f" {hello.carries} numbers, this SN {wire.VERSION} and {carries}",
            )
        if self._states[en].found_shared(hello.boot):
            self.log.warning("several nodes have one name, and take turns here", en=name)
        out: asyncio.Queue[Any] = asyncio.Queue(_QUEUE)
        _end(self._states[en].out)  # its stream of before, if that still seems to be there
        self._states[en].out = out
        self.core.met(en, True)
        self.log.info("en connected", en=name, boot=hello.boot)
        reading = self._loop.create_task(self._read(en, requests, out))
        try:
            with self.callers.busy(context):
                yield wire.FromSn(welcome=self._welcome(carries))
                while (message := await out.get()) is not None:
                    yield message
        finally:
            reading.cancel()
            if self._states[en].out is out:  # it may have come back by another stream
                self._states[en].out = None
                self.core.met(en, False)
            self.log.info("en gone", en=name)

    def _closed(self) -> str:
        """Why no EN may watch this node at the moment; empty if they may."""
        return f"the {self.kind} is about to stop" if self.draining else ""

    def _welcome(self, carries: int) -> Any:
        node = self.config.node
        return wire.Welcome(
            boot=self.boot,
            version=wire.VERSION,
            carries=carries,
            slots=node.slots,
            cycles_per_ms=node.cycles_per_ms,
            work_cycles=float(self.core.station.state(self.clock.now())[2]),
        )

    async def _read(self, en: int, requests: AsyncIterator[Any], out: "asyncio.Queue[Any]") -> None:
        limit = limit_of_stream(self.config.behaviour.most_updates_per_s, self.clock.scale)
        try:
            async for message in requests:
                if message is None:
                    return  # not of this protocol: hang up
                if not limit.take(""):
                    self._distrust(en, "more messages than an EN may send")
                    return
                took_us = message.heartbeat.round_trip_us
                if took_us > _MOST_ROUND_TRIP_US:
                    most = f"must be at most {_MOST_ROUND_TRIP_US}"
                    self._distrust(en, f"round_trip_us = {took_us}: {most}")
                    return
                if message.HasField("ack"):
                    self.core.acknowledged(en, message.ack.sequence)
                elif message.HasField("heartbeat") and not out.full():
                    self._states[en].transit_ms = 0.5 * took_us / 1000.0 / self.clock.scale
                    beat = wire.Heartbeat(echo=message.heartbeat.stamp)
                    out.put_nowait(wire.FromSn(heartbeat=beat))
        except grpc.aio.BaseError:
            pass  # the call is over: who writes will notice
        finally:
            _end(out)

    def _distrust(self, en: int, why: str) -> None:
        """Count an implausible message of an EN, and log the first; its stream ends."""
        name, state = self._en_names[en], self._states[en]
        self.counters.add("implausible_messages_total", en=name)
        if not state.accused:
            state.accused = True
            self.log.warning("en not believed", en=name, why=why)

    def status(self, en: int, sequence: int, numbers: NDArray[np.float64], at_ms: float) -> None:
        """To an EN that is connected, at once or when an emulated link has brought it there."""
        send = partial(self._send_status, en, sequence, numbers, self._made_s())
        self.counters.add("updates_total", en=self._en_names[en])
        if self.config.links.emulate:
            self.clock.at(at_ms - self._states[en].transit_ms, DELIVERY, send)
        else:
            send()

    def _made_s(self) -> float:
        """When the state was seen that a status tells of now, on the monotonic clock."""
        return time.monotonic()

    def _send_status(self, en: int, sequence: int, numbers: Any, made_s: float) -> None:
        out = self._states[en].out
        if out is None or out.full():
            return
        held_us = int((time.monotonic() - made_s) * 1e6 / self.clock.scale)
        told = wire.Status(sequence=sequence, held_us=held_us, numbers=numbers.tolist())
        out.put_nowait(wire.FromSn(status=told))

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        return [
            *super().measured(now),
            ("update_decisions_total", {}, float(self.core.decisions)),
            ("updates_suppressed_total", {}, float(self.core.suppressed)),
        ]

    def facts(self) -> dict[str, float]:
        """How it went so far: also how many statuses were decided on and sent."""
        core = self.core
        sent = {"updates": core.updates, "updates_suppressed": core.suppressed}
        return {**super().facts(), **sent, "update_decisions": core.decisions}

    def drain(self) -> None:
        """Take nothing more; the end of their streams informs the ENs."""
        self.draining = True
        if self.orca is not None:
            self.orca.close()
        self._hang_up()

    def _hang_up(self) -> None:
        """End the streams of all ENs."""
        for state in self._states:
            _end(state.out)


def _rules(config: NodeConfig) -> SnRules:
    behaviour = config.behaviour
    return SnRules(
        drop_late=behaviour.late == "drop",
        least_gap_ms=1000.0 / behaviour.most_updates_per_s,
        refresh_ms=behaviour.refresh_ms,
        per_task=behaviour.updates_per_task,
        idle_ms=behaviour.idle_ms,
        burst=behaviour.update_burst,
    )


def _end(out: "asyncio.Queue[Any] | None") -> None:
    """Have a stream end after what is queued; a full queue gives up a message for that."""
    if out is not None:
        if out.full():
            out.get_nowait()
        out.put_nowait(None)
