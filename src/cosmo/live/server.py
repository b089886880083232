"""What both kinds of servers have: limits, counters, somebody who does the work."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.config import NodeConfig
from cosmo.live.connections import Connections
from cosmo.live.emulation import true_cycles_of
from cosmo.live.handlers import worker_of
from cosmo.live.limits import Buckets, fault_of
from cosmo.live.logs import Log
from cosmo.live.metrics import Counters, Measured
from cosmo.live.peers import check_caller, client_of
from cosmo.live.picker.http2_sending import OpenStreams
from cosmo.live.realtime import RealClock
from cosmo.live.sites import site_of_node
from cosmo.node import STORAGE, WORK, Method

Call = Callable[[Any, Any], Awaitable[Any]]  # message and context to answer

# Of `limits`: what the gRPC server was given when it was made.
_FIXED_LIMITS = ("input_bytes", "connections", "idle_s")


class NodeServer:
    """A node behind gRPC, before it knows which kind it is."""

    kind: str  # as logs name it
    core: Any  # the node itself

    def __init__(
        self,
        config: NodeConfig,
        method: Method,
        clock: RealClock,
        log: Log,
        boot: int,
        peers: Sequence[Any] | None = None,
    ) -> None:
        """`peers` are those of the configuration unless others are given."""
        self.config, self.clock, self.log, self.boot = config, clock, log, boot
        self.site = site_of_node(config, peers)
        self.counters = Counters()
        self.draining = False
        self._carries = method.carries  # of statuses, as long as the node runs
        self._buckets = Buckets(config.limits.calls_per_s, config.limits.burst)
        self._loop = asyncio.get_running_loop()
        self._incoming = OpenStreams()  # calls whose input is on its way
        self.callers = Connections(config.limits.connections)
        self.worker = worker_of(config, clock)

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        state, late = self.core.station.state(now), self.clock.lateness_ms
        return [
            ("uptime_seconds", {}, now * self.clock.scale / 1000.0),
            ("tasks_in_node", {}, float(self.core.station.requests)),
            ("work_cycles", {}, float(state[WORK])),
            ("free_bytes", {}, float(state[STORAGE])),
            ("timer_late_seconds", {}, late),
            ("timer_late_max_seconds", {}, late.most / 1000.0),
        ]

    def facts(self) -> dict[str, float]:
        """How it went so far."""
        late = self.clock.lateness_ms
        return {"timer_p99_ms": late.quantile(0.99), "timer_most_ms": late.most}

    async def close(self) -> None:
        """Close the connections to other nodes."""

    def _true_cycles(self, content: bytes) -> float:
        """What a task takes by its input, in a test bed (R35); NaN: the cycles that it declares."""
        return true_cycles_of(content) if self.config.handler.kind == "testbed" else math.nan

    def _unary(self, call: Call, kind: Any, answer: Any) -> Any:
        """The handler of a unary call, from one kind of message to another.

        It begins with the headers, as one of a stream would, so that inputs that come slowly or
        are torn are counted, have an end, and are answered; gRPC's own would wait for ever.
        """

        async def take(_: Any, context: Any) -> Any:
            limits, tls = self.config.limits, self.config.tls
            await check_caller(context, tls)
            caller, late = client_of(context, tls), False
            self._incoming.add(caller, 1)
            try:
                room = self._incoming.room_for(caller, limits.calls) and not self._is_full
                if not room or not self._buckets.take(caller):
                    await self._turn_away(context)
                async with asyncio.timeout(limits.receive_s):
                    given = await context.read()
            except TimeoutError:
                late = True
            finally:
                self._incoming.add(caller, -1)
            if late:
                why = f"the input was not whole after {limits.receive_s:g} s"
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, why)
            if given is grpc.aio.EOF:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the message is not whole")
            with self.callers.busy(context):
                return await call(given, context)

        return grpc.stream_unary_rpc_method_handler(
            take, wire.reader(kind), answer.SerializeToString
        )

    async def _turn_away(self, context: Any) -> None:
        self.counters.add("turned_away_total", status="grpc")
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "too many calls")

    @property
    def in_flight(self) -> int:
        """Calls, or tasks, that have not been answered."""
        raise NotImplementedError

    @property
    def _is_full(self) -> bool:
        return self.in_flight >= self.config.limits.calls

    async def _check(self, task: Any, context: Any, cycles_needed: bool) -> None:
        """Abort a call that is not to be taken: while draining, of no task, beyond the limits."""
        if self.draining:
            await context.abort(grpc.StatusCode.UNAVAILABLE, f"the {self.kind} is about to stop")
        wrong = fault_of(task, self.config.limits.input_bytes, cycles_needed)
        if wrong:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, wrong)
        if self._is_full:
            await self._turn_away(context)

    def _check_reload(self, config: NodeConfig, carries: int) -> None:
        """InputError if this node cannot go on with that, and with statuses of that length."""
        for name in _FIXED_LIMITS:
            if getattr(config.limits, name) != getattr(self.config.limits, name):
                raise InputError(f"limits.{name}: cannot change while the node runs")
        if carries != self._carries:
            raise InputError(
                f"method.use = {config.method.use!r}: its statuses have {carries} numbers, and the"
                f" other nodes expect {self._carries}; restart the node"
            )

    def _take_limits(self, config: NodeConfig) -> None:
        old = self.config.limits
        self.config = config
        if (old.calls_per_s, old.burst) != (config.limits.calls_per_s, config.limits.burst):
            self._buckets = Buckets(config.limits.calls_per_s, config.limits.burst)
