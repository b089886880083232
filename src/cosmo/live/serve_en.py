"""An EN behind gRPC: Submit for clients; Execute and Watch of its SNs."""

import asyncio
import math
from functools import partial
from typing import Any

import grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.clock import DELIVERY
from cosmo.live.config import NodeConfig
from cosmo.live.core_en import EnCore, EnRules
from cosmo.live.decisions import DecisionLog
from cosmo.live.emulation import handler_of
from cosmo.live.guarded_dispatcher import GuardedDispatcherRunner
from cosmo.live.link import Link
from cosmo.live.logs import Log
from cosmo.live.peers import check_caller
from cosmo.live.realtime import RealClock
from cosmo.live.samples import EmulationLead, Histogram, PathOverhead
from cosmo.live.server import NodeServer
from cosmo.live.shadow import Shadow
from cosmo.live.smoothed import Estimates
from cosmo.live.sn_connection import SnConnection
from cosmo.live.tasks import Fate, Item
from cosmo.node import NOTHING, DispatchObservation, Method

_WARM_UPS = 3
_CLOCKS_DIFFER = 1.01  # as much at most
_AFTER_S = 30.0  # results are waited for so long after the deadline, where late tasks go on


class _Call:
    """A client's task, from its arrival to its answer."""

    __slots__ = ("answer", "books_ms", "id", "received_ms", "sent_ms", "working")

    def __init__(self, number: int, received_ms: float, answer: "asyncio.Future[Any]") -> None:
        self.id, self.received_ms, self.answer = number, received_ms, answer
        self.sent_ms = self.books_ms = math.nan
        self.working: asyncio.Task[None] | None = None  # the call of an SN


class EnServer(NodeServer):
    """The transport of an EN's core, and the handler of its service."""

    kind = "EN"

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        super().__init__(config, method, clock, log, boot)
        self._calls = 0
        self.delay_ms = Histogram()  # of tasks with a result
        self.overhead = PathOverhead(config.behaviour.most_guard_ms)
        self.lead = EmulationLead()
        self.estimates = Estimates(self.site.tasks.mean_cycles)
        self.decisions = DecisionLog(
            config.log.decisions, config.log.rows, self._write_failed, config.log.seconds
        )
        links = [
            Link(self.site.links, config.number, sn, up=True) for sn in range(len(config.peers))
        ]
        runner = self._runner(config, method)
        rules = _rules(config)
        self.core = EnCore(self.site, config.number, runner, clock, self.worker, self, links, rules)
        runner.changed = self.core.start_over
        self._take_behaviour(config)
        self.core.on_choice, self.core.on_end = self._chosen, self._ended
        self.shadow = self._shadow(config)
        self.connections = [SnConnection(self, sn, method) for sn in range(len(config.peers))]

    def _runner(self, config: NodeConfig, method: Method) -> GuardedDispatcherRunner:
        from cosmo.policy.registry import method as named

        wanted = config.method
        fallback = named(wanted.fallback)
        if fallback.carries not in (NOTHING, method.carries):
            raise InputError(
                f"method.fallback = {wanted.fallback!r}: goes by statuses of {fallback.carries}"
                f" numbers, but those of {wanted.use!r} have {method.carries}"
            )
        names = wanted.use, wanted.fallback
        made = GuardedDispatcherRunner(
            method, fallback, self.site, self.config.number, wanted.slow_ms, names
        )
        made.report = self._deciding
        return made

    def _shadow(self, config: NodeConfig) -> Shadow | None:
        spec = config.method.shadow
        return Shadow.of(spec, self.site, self.config.number) if spec else None

    def reload(self, config: NodeConfig, method: Method) -> None:
        """Take over what may change while a node runs; all of it has been validated."""
        # A method that goes by no status can leave those that come alone.
        self._check_reload(config, method.carries or self._carries)
        runner, shadow, decisions = self._runner(config, method), self._shadow(config), None
        if config.log != self.config.log:
            decisions = DecisionLog(
                config.log.decisions, config.log.rows, self._write_failed, config.log.seconds
            )
        # All is made; from here on nothing is refused.
        runner.changed = self.core.start_over
        self.core.runner, self.shadow = runner, shadow
        self.core.start_over()
        for each in self.connections:
            each.expect(method)
        if decisions is not None:
            self.decisions.close(wait=False)
            self.decisions = decisions
        self._take_limits(config)
        self._take_behaviour(config)

    def _take_behaviour(self, config: NodeConfig) -> None:
        self.core.rules = _rules(config)
        self.overhead.most_ms = config.behaviour.most_guard_ms
        guarded = config.behaviour.guard
        self.core.guard_ms = self.overhead.guard_ms if guarded else lambda: 0.0

    def _deciding(self, who: str, why: str) -> None:
        self.counters.add("method_changes_total", to=who)
        self.log.warning("the deciding method has changed", now=who, why=why)

    def _write_failed(self, why: str) -> None:
        self.log.warning("the decision log cannot be written", why=why)

    @property
    def in_flight(self) -> int:
        """Calls that have not been answered."""
        return self._calls

    def begin(self) -> None:
        """Meet the SNs; before that, decide on tasks that nobody has sent, so that the first
        that somebody has sent does not pay for what is done only once.
        """
        tasks = self.site.tasks
        fake = Item(0, -1.0, tasks.deadline_ms[1], tasks.input_bytes[1], tasks.mean_cycles, ue=-1)
        fake.residual_ms = self.config.expected.residual_ms
        for _ in range(_WARM_UPS):
            self.core.runner.choose(self.core.observation(fake, self.clock.now()))
        self.core.start_over()
        for each in self.connections:
            each.begin()

    def handlers(self) -> list[Any]:
        """For a gRPC server."""
        submit = self._unary(self.submit, wire.Task, wire.Outcome)
        own = grpc.method_handlers_generic_handler(f"{wire.PACKAGE}.En", {"Submit": submit})
        testbed = self.config.handler.kind == "testbed"
        return [own, *([handler_of(self.core.change_speed, None)] if testbed else [])]

    # Clients.

    async def submit(self, task: Any, context: Any) -> Any:
        """A task of a client."""
        now = self.clock.now()
        await check_caller(context, self.config.tls)
        await self._check(task, context, self._calls, cycles_needed=False)
        call = _Call(task.id, now, self._loop.create_future())
        item = self._item(task, now, call)
        self._calls += 1
        try:
            self.core.arrive(item)
            return await call.answer
        except asyncio.CancelledError:
            self.counters.add("cancelled_total")
            self.core.cancel(item)
            raise
        except Exception:
            self.core.cancel(item)
            raise
        finally:
            self._calls -= 1

    def _item(self, task: Any, now: float, call: _Call) -> Item:
        # Not from gRPC's deadline, which goes by the wall clock; its end cancels the call anyway.
        return Item(
            number=self.core.next_number(),
            generated_ms=now - task.elapsed_us / 1000.0,
            deadline_ms=task.deadline_us / 1000.0,
            input_bytes=float(max(len(task.input), 1)),
            cycles=task.cycles or self.estimates.of(task.kind),
            ue=task.ue,
            residual_ms=task.residual_us / 1000.0 or self.config.expected.residual_ms,
            kind=task.kind,
            input=task.input,
            true_cycles=self._true_cycles(task.input),
            context=call,
        )

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        """Tell the client."""
        call: _Call = item.context
        if call.answer.done():
            return
        now = self.clock.now()
        good = fate in (Fate.DONE, Fate.LATE)
        where = ""
        if item.action == 0 or item.rerun:
            where = "local"
        elif 0 < item.action <= self.core.sns:
            where = self.config.peers[item.action - 1].name
        call.answer.set_result(
            wire.Outcome(
                id=call.id,
                fate=int(fate),
                where=where,
                output=output if good else b"",
                held_us=int((now - call.received_ms) * 1000.0),
                delay_us=max(int((now - item.generated_ms) * 1000.0), 0),
                reason="" if good else output.decode(errors="replace")[:200],
                rerun=item.rerun,
            )
        )

    def _chosen(self, seen: DispatchObservation, item: Item) -> None:
        action = item.action
        name = "local" if action == 0 else "reject"
        if 0 < action <= self.core.sns:
            name = self.config.peers[action - 1].name
        self.counters.add("decisions_total", action=name)
        self.decisions.note(seen, item)
        if self.shadow is not None:
            self._loop.call_soon(self.shadow.ask, seen, action, self.counters)

    def _ended(self, item: Item, fate: Fate) -> None:
        self.counters.add("tasks_total", fate=fate.name)
        if item.rerun:
            self.counters.add("reruns_total")
        now = self.clock.now()
        if fate in (Fate.DONE, Fate.LATE):
            self.delay_ms.add(now - item.generated_ms)
            if item.action == 0:
                spent_ms = now - item.started_ms
                self.estimates.learn(item.kind, spent_ms * self.config.node.cycles_per_ms)
        self.decisions.add(item, fate, now)

    # SNs.

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        """Send a task, at once or when an emulated link has brought it there."""
        call: _Call = item.context
        call.sent_ms = self.clock.now()
        call.books_ms = arrival_ms - call.sent_ms
        send = partial(self._send, sn, item)
        if self.config.links.emulate:  # the real way is part of the emulated one
            due = self._due(sn, item.input_bytes, arrival_ms)
            self.clock.at(due - self.lead.ms, DELIVERY, send)
        else:
            send()

    def _due(self, sn: int, size: float, arrival_ms: float) -> float:
        """When an emulated link has a message leave, so that it arrives when expected."""
        if self.config.links.emulate_rate:
            return arrival_ms
        return self.clock.now() + self.core.links[sn].hops_ms(size)

    def _send(self, sn: int, item: Item) -> None:
        if not item.ended and not item.rerun:  # an emulated link may have held it for that long
            item.context.working = self._loop.create_task(self._execute(sn, item))

    async def _execute(self, sn: int, item: Item) -> None:
        peer, core = self.connections[sn], self.core
        now = self.clock.now()
        timeout_s = max(item.expires_ms - now, 1.0) * self.clock.scale / 1000.0
        if not self.core.rules.drop_late:
            timeout_s += _AFTER_S
        task = wire.Task(
            id=item.number,
            kind=item.kind,
            cycles=item.cycles,
            deadline_us=int(item.deadline_ms * 1000.0),
            elapsed_us=max(int((now - item.generated_ms + peer.transit_ms) * 1000.0), 0),
            input=item.input,
            boot=self.boot,
        )
        try:
            result = await peer.execute(task, timeout_s)
        except grpc.aio.AioRpcError as error:
            self._missed(item, error)
            return
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is None or not own.cancelling():  # nobody has recalled it: its channel is closed
                core.lost(item)
            return
        except grpc.aio.UsageError:  # its channel is closed, and the next one is not there yet
            core.lost(item)
            return
        except Exception as error:  # whatever the SN has sent, it is no Result
            core.failed(item, Fate.FAILED, f"the SN's answer cannot be read ({error})"[:200])
            return
        if result.fate == Fate.DONE:
            call: _Call = item.context
            took_ms = self.clock.now() - call.sent_ms
            back_ms = 0.0
            if not self.config.links.emulate:
                back_ms = float(self.site.links.result_ms[0, sn])
            held_ms = result.held_us / 1000.0
            if held_ms <= took_ms * _CLOCKS_DIFFER + 1.0:
                extra_ms = took_ms - call.books_ms - held_ms - back_ms
                self.overhead.add(extra_ms)
                self.lead.correct(extra_ms)
            else:
                peer.lied(f"held_us = {result.held_us}: must be less than the call took")
            core.result(item, result.output)
            if result.HasField("status"):
                peer.take_status(result.status)
        elif result.fate == Fate.REFUSED:
            core.refused(item)
        else:
            expired = result.fate == Fate.EXPIRED
            core.failed(item, Fate.EXPIRED if expired else Fate.FAILED, result.reason)

    def _missed(self, item: Item, error: Any) -> None:
        """A call of an SN has failed as a call."""
        code = error.code()
        self.counters.add("execute_errors_total", code=code.name)
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            self.core.lost(item)
        elif code == grpc.StatusCode.RESOURCE_EXHAUSTED:
            self.core.refused(item)
        elif code == grpc.StatusCode.DEADLINE_EXCEEDED:
            self.core.failed(item, Fate.EXPIRED, "")
        else:
            self.core.failed(item, Fate.FAILED, f"{code.name}: {error.details()}"[:200])

    def recall(self, sn: int, item: Item) -> None:
        """Cancel the call; the SN drops the task."""
        working = item.context.working
        if working is not None:
            working.cancel()

    def abandon(self, sn: int) -> None:
        """Nothing is heard of an SN any more: its tasks are lost."""
        for item in self.core.away(sn):
            self.recall(sn, item)
            self.core.lost(item)

    def acknowledge(self, sn: int, sequence: int, arrival_ms: float) -> None:
        """Over the SN's Watch stream."""
        send = partial(self.connections[sn].send, wire.FromEn(ack=wire.Ack(sequence=sequence)))
        if self.config.links.emulate:
            due = self._due(sn, self.core.rules.ack_bytes, arrival_ms)
            self.clock.at(due - self.connections[sn].transit_ms, DELIVERY, send)
        else:
            send()

    def drain(self) -> None:
        """Take nothing more."""
        self.draining = True

    async def close(self) -> None:
        """Leave the SNs."""
        for each in self.connections:
            await each.close()
        self.decisions.close()


def _rules(config: NodeConfig) -> EnRules:
    behaviour = config.behaviour
    return EnRules(
        answer_late=True,
        drop_late=behaviour.late == "drop",
        expires=behaviour.lost == "expire",
        fresh_ms=behaviour.fresh_ms,
    )
