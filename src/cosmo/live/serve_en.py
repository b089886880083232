"""An EN behind gRPC: Submit for clients; Execute and Watch of its SNs."""

import asyncio
import math
from functools import partial
from typing import Any

import grpc

from cosmo.live import wire
from cosmo.live.clock import DELIVERY
from cosmo.live.config import NodeConfig, Peer
from cosmo.live.core_en import EnCore
from cosmo.live.deciding import DecidingServer, MakeCore
from cosmo.live.emulation import handler_of
from cosmo.live.limits import span_of
from cosmo.live.logs import Log
from cosmo.live.metrics import Measured
from cosmo.live.realtime import RealClock
from cosmo.live.samples import EmulationLead
from cosmo.live.sn_connection import SnConnection, WatchedSn
from cosmo.live.tasks import Fate, Item
from cosmo.node import Method

_CLOCKS_DIFFER = 1.01  # as much at most
_AFTER_S = 30.0  # results are waited for so long after the deadline, where late tasks go on


class _Call:
    """A client's task, from its arrival to its answer."""

    __slots__ = ("answer", "beyond_ms", "id", "path_ms", "received_ms", "sent_ms", "working")

    def __init__(self, number: int, received_ms: float, answer: "asyncio.Future[Any]") -> None:
        self.id, self.received_ms, self.answer = number, received_ms, answer
        self.sent_ms = self.path_ms = math.nan
        self.beyond_ms = 0.0  # that its generation was moved
        self.working: asyncio.Task[None] | None = None  # the call of an SN


class EnServer(DecidingServer):
    """The transport of an EN's core, and the handler of its service."""

    kind = "EN"
    core: EnCore
    make_core: MakeCore = EnCore

    def __init__(
        self, config: NodeConfig, method: Method, clock: RealClock, log: Log, boot: int
    ) -> None:
        super().__init__(config, method, clock, log, boot, config.peers, self.make_core)
        self._calls = 0
        self.lead = EmulationLead()
        self.connections = [
            SnConnection(self, sn, method, _watched(peer)) for sn, peer in enumerate(config.peers)
        ]

    def _expect(self, method: Method) -> None:
        for each in self.connections:
            each.expect(method)

    @property
    def in_flight(self) -> int:
        """Calls that have not been answered."""
        return self._calls

    def begin(self) -> None:
        """Meet the SNs, with a method that has been warmed up."""
        self._warm_up()
        for each in self.connections:
            if each.peer.address:  # else there is no daemon beside its HTTP service
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
        await self._check(task, context, cycles_needed=False)
        call = _Call(task.id, now, self._loop.create_future())
        item = self._item(task, now, call)
        call.beyond_ms = max(task.elapsed_us / 1000.0 - self.site.tasks.deadline_ms[1], 0.0)
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
        elapsed_ms, deadline_ms = span_of(task, self.site.tasks.deadline_ms[1])
        return Item(
            number=self.core.next_number(),
            generated_ms=now - elapsed_ms,
            deadline_ms=deadline_ms,
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
        """Send the outcome of a task to the client that is waiting for it."""
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
                delay_us=max(int((now - item.generated_ms + call.beyond_ms) * 1000.0), 0),
                reason="" if good else output.decode(errors="replace")[:200],
                rerun=item.rerun,
            )
        )

    def _name_of(self, action: int) -> str:
        if 0 < action <= self.core.sns:
            return self.config.peers[action - 1].name
        return "local" if action == 0 else "reject"

    def _ended(self, item: Item, fate: Fate) -> None:
        super()._ended(item, fate)
        if fate in (Fate.DONE, Fate.LATE) and item.action == 0:
            spent_ms = self.clock.now() - item.started_ms
            self.estimates.learn(item.kind, spent_ms * self.config.node.cycles_per_ms)

    # SNs.

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        """Send a task, at once or when an emulated link has brought it there."""
        call: _Call = item.context
        call.sent_ms = self.clock.now()
        call.path_ms = arrival_ms - call.sent_ms
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
                extra_ms = took_ms - call.path_ms - held_ms - back_ms
                self.overhead.add(extra_ms)
                self.lead.correct(extra_ms)
            else:
                peer.distrust(f"held_us = {result.held_us}: must be less than the call took")
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
            if not item.remote:
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

    def measured(self, now: float) -> list[Measured]:
        """What operators look at, beside what is counted."""
        found = super().measured(now)
        for connection, cache in zip(self.connections, self.core.caches, strict=True):
            sn = {"sn": connection.peer.name}
            found += [
                ("sn_silent", sn, float(cache.silent)),
                ("status_age_seconds", sn, (now - cache.source_ms) / 1000.0),
                ("round_trip_seconds", sn, connection.round_trip_ms / 1000.0),
            ]
            for place, number in enumerate(cache.numbers):
                found.append(("status_value", {**sn, "number": str(place)}, float(number)))
        return found

    def facts(self) -> dict[str, float]:
        """How it went so far: also how many statuses came."""
        counted, peers = self.counters.get, self.config.peers
        statuses = sum(counted("statuses_total", sn=peer.name) for peer in peers)
        return {**super().facts(), "statuses": statuses}

    async def close(self) -> None:
        """Close the connections to all SNs, and the server."""
        for each in self.connections:
            await each.close()
        await super().close()


def _watched(peer: Peer) -> WatchedSn:
    return WatchedSn(peer.name, peer.address, peer.name, peer.slots, peer.cycles_per_ms)
