"""An EN's connection to one SN: the channel, the Watch stream, and whether the SN answers."""

import asyncio
import contextlib
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import grpc

from cosmo.errors import InputError
from cosmo.live import wire
from cosmo.live.claims import Claims, fault_of_welcome
from cosmo.live.config import NodeConfig
from cosmo.live.core_en import EnCore
from cosmo.live.limits import limit_of_stream
from cosmo.live.logs import Log
from cosmo.live.metrics import Counters
from cosmo.live.peers import channel_of
from cosmo.live.realtime import RealClock
from cosmo.node import Method

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.2
_SMOOTHING = 0.1  # of round trips
_QUEUE = 256
_DISTRUST_PAUSE_S = 10.0  # before an SN is called again that has sent an implausible message
_STEADY_S = 1.0  # an SN whose stream lasted for so long is called again at once
_STAMPS = 256  # heartbeats that may be on their way
_EARLY_MS = 1000.0  # that the oldest status may be older than this node: clocks are not equal
_NOWHERE = "127.0.0.1:0"  # of an SN without a daemon, which is never called
_GRACE_S = 60.0  # for calls of an SN that drains; each has a limit of its own


@dataclass(frozen=True)
class WatchedSn:
    """An SN, as whoever watches it knows it."""

    name: str
    address: str
    certified: str  # the name in its certificate
    slots: int
    cycles_per_ms: float


class Watching(Protocol):
    """The node that watches SNs: an EN, or a picker."""

    config: NodeConfig
    clock: RealClock
    log: Log
    counters: Counters
    boot: int

    @property
    def core(self) -> EnCore:
        """The EN that the connection belongs to."""
        ...

    def abandon(self, sn: int) -> None:
        """Nothing is heard of an SN any more: its tasks are lost."""
        ...


class SnConnection:
    """Keeps the stream open, dates statuses, and reports when the SN is silent."""

    def __init__(self, server: Watching, sn: int, method: Method, peer: WatchedSn) -> None:
        """`method` makes the SN's statuses."""
        self._server, self._sn, self._carries = server, sn, method.carries
        self.peer = peer
        self._closing: set[asyncio.Task[None]] = set()
        self._dial()
        self._metadata = (("cosmo-en", server.config.name),)
        self._out: asyncio.Queue[Any] = asyncio.Queue(_QUEUE)
        self._task: asyncio.Task[None] | None = None
        self._boot, self._quiet, self._silent = 0, 0, False
        self.implausible = ""  # what was wrong with the message that ends this stream
        self._accused = -1  # the boot for which that was logged
        self._stamps: deque[int] = deque(maxlen=_STAMPS)  # of heartbeats that were not answered
        # When the stream began; the newest stamp that is no longer among them.
        self._began_us, self._forgotten_us = 0, -1
        self._welcomed_s = 0.0
        self._call: Any = None
        self._claims = self._expected(method)
        self.round_trip_ms = 0.0
        self.connected = False
        server.core.silence(sn, True)  # until there is a welcome

    def _expected(self, method: Method) -> Claims:
        core = self._server.core
        return Claims(method, core.site, int(core.site.links.reach[core.index, self._sn]))

    def expect(self, method: Method) -> None:
        """Statuses are as this method's updater makes them from now on, if it makes any."""
        if method.carries:
            self._claims = self._expected(method)

    def _dial(self) -> None:
        """A channel of its own for every attempt: when to try again is decided here, not there."""
        config = self._server.config
        self._limit = limit_of_stream(config.behaviour.most_updates_per_s, config.scale)
        address = self.peer.address or _NOWHERE
        self._channel = channel_of(config, address, self.peer.certified)
        self._execute = self._channel.unary_unary(
            wire.EXECUTE, wire.Task.SerializeToString, wire.Result.FromString
        )
        self._watch = self._channel.stream_stream(
            wire.WATCH, wire.FromEn.SerializeToString, wire.FromSn.FromString
        )

    def _hang_up(self, grace_s: float) -> None:
        """Leave the channel to the calls that are still open on it, for a while."""
        closing = asyncio.get_running_loop().create_task(self._channel.close(grace_s))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    @property
    def transit_ms(self) -> float:
        """How long a small message takes one way, in ms of the node."""
        return 0.5 * self.round_trip_ms / self._server.clock.scale

    def begin(self) -> None:
        """Connect, and again whenever that ends."""
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def execute(self, task: Any, timeout_s: float) -> Any:
        """Send a task to the SN and return its reply; raises `grpc.RpcError` if the call fails."""
        return await self._execute(task, timeout=timeout_s, metadata=self._metadata)

    @property
    def unsent(self) -> int:
        """How many messages to the SN have not been sent yet."""
        return self._out.qsize()

    def send(self, message: Any) -> None:
        """Over the stream, if there is one."""
        if self.connected and not self._out.full():
            self._out.put_nowait(message)

    async def _keep(self) -> None:
        pause_s = hasty_s = _FIRST_PAUSE_S
        while True:
            try:
                why = await self._stream()
            except Exception as error:  # what an SN sends must not end the watch over it
                why = f"{type(error).__name__}: {error}"[:200]
            own = asyncio.current_task()
            if own is not None and own.cancelling():
                return  # gRPC may report the end of this task as that of its call
            if self.implausible:
                pause_s = _DISTRUST_PAUSE_S
            elif self.connected:
                # A welcome costs the method its memory of all SNs: one that leaves at once, time
                # after time, is called ever more seldom. By R38's rules a welcome costs nothing.
                steady = time.monotonic() - self._welcomed_s >= _STEADY_S
                if steady or self._server.core.rules.expires:
                    hasty_s = _FIRST_PAUSE_S
                pause_s, hasty_s = hasty_s, min(2.0 * hasty_s, _DISTRUST_PAUSE_S)
                self._server.log.warning("sn lost", sn=self.peer.name, why=why)
            self._lost(why)
            self._hang_up(_GRACE_S)
            await asyncio.sleep(pause_s)
            pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)
            while not self._dialled():
                await asyncio.sleep(_LONGEST_PAUSE_S)

    def _dialled(self) -> bool:
        """Dial again; False if that cannot be now, as while certificates are replaced."""
        try:
            self._dial()
        except InputError as error:
            self._server.log.warning("sn not dialled", sn=self.peer.name, why=str(error))
            return False
        return True

    def _lost(self, why: str) -> None:
        was, self.connected = self.connected, False
        self._server.core.silence(self._sn, True)
        # An SN that drains ends the stream, takes no other, and still answers. Where tasks wait for
        # their deadline, each call fails by itself: messages may reach the SN when it is back.
        if was and why != "ended" and not self._server.core.rules.expires:
            self._server.abandon(self._sn)

    async def _stream(self) -> str:
        """One stream, from hello to its end; why it ended."""
        loop = asyncio.get_running_loop()
        self._out, self._quiet, self._silent = asyncio.Queue(_QUEUE), 0, False
        self.implausible = ""
        self._stamps.clear()
        self._began_us, self._forgotten_us = time.monotonic_ns() // 1000, -1
        self._call = call = self._watch(metadata=self._metadata)
        beside = [loop.create_task(self._write(call)), loop.create_task(self._tick(call))]
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                self._quiet = 0
                self.take(message)
                if self.implausible:
                    return self.implausible
            code = await call.code()
            if code == grpc.StatusCode.OK:
                return "ended"
            return f"{code.name}: {await call.details()}"
        except grpc.aio.AioRpcError as error:
            return f"{error.code().name}: {error.details()}"
        except asyncio.CancelledError:
            own = asyncio.current_task()
            if own is not None and own.cancelling():
                raise  # it is this watch that is to end, not only its stream
            if self.implausible:
                return self.implausible
            if not self._silent:
                return "the channel was closed"
            return f"silent for {self._server.config.behaviour.silent_ms:g} ms"
        finally:
            for each in beside:
                each.cancel()
            call.cancel()

    async def _write(self, call: Any) -> None:
        hello = wire.Hello(
            boot=self._server.boot,
            name=self._server.config.name,
            version=wire.VERSION,
            carries=self._carries,
        )
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await call.write(wire.FromEn(hello=hello))
            while True:  # who reads will say why it ends
                await call.write(await self._out.get())

    def heartbeat(self) -> Any:
        """The next heartbeat; the SN sends its stamp (us of the monotonic clock) back."""
        took_us, now_us = int(self.round_trip_ms * 1000.0), time.monotonic_ns() // 1000
        if len(self._stamps) == _STAMPS:
            self._forgotten_us = self._stamps[0]
        self._stamps.append(now_us)
        return wire.FromEn(heartbeat=wire.Heartbeat(stamp=now_us, round_trip_us=took_us))

    async def _tick(self, call: Any) -> None:
        """Heartbeats; and an end to the stream if nothing comes back.

        Silence is counted in ticks, not in time: while this process itself is held up there are
        none, and nobody else is to blame.
        """
        while True:
            behaviour = self._server.config.behaviour
            if self._quiet * behaviour.heartbeat_ms >= behaviour.silent_ms:
                self._silent = True
                call.cancel()
                return
            self._quiet += 1
            if not self._out.full():
                self._out.put_nowait(self.heartbeat())
            await asyncio.sleep(behaviour.heartbeat_ms / 1000.0)

    def take(self, message: Any) -> None:
        """A message that the SN has sent over the stream."""
        server = self._server
        if not self._limit.take(""):
            self.distrust("more messages than an SN may send")
        elif message.HasField("welcome"):
            welcome = message.welcome
            wrong = fault_of_welcome(welcome) or ("a second welcome" if self.connected else "")
            if wrong:
                self.distrust(wrong)
                return
            again = welcome.boot == self._boot
            self._boot, self.connected = welcome.boot, True
            self._welcomed_s = time.monotonic()
            # Also if it is the same process: nobody knows what it did in the meantime.
            server.core.restarted(self._sn, welcome.work_cycles)
            server.core.silence(self._sn, False)
            self._check(welcome)
            server.log.info("sn connected", sn=self.peer.name, boot=welcome.boot, again=again)
        elif message.HasField("status"):
            self.take_status(message.status)
        elif message.HasField("heartbeat"):
            echo = message.heartbeat.echo
            if self._began_us <= echo <= self._forgotten_us:
                return  # of an SN that was held up: later ones are on their way
            if echo not in self._stamps:
                self.distrust(f"echo = {echo}: must be the stamp of a heartbeat")
                return
            while self._stamps.popleft() != echo:  # those before are lost
                pass
            sample_ms = (time.monotonic_ns() // 1000 - echo) / 1000.0
            before = self.round_trip_ms
            weight = _SMOOTHING if before else 1.0
            self.round_trip_ms = before + weight * (sample_ms - before)

    def take_status(self, status: Any) -> None:
        """A status of the SN, over the stream or on a result; dated by durations."""
        core, now = self._server.core, self._server.clock.now()
        before = core.caches[self._sn].sequence
        wrong = self._claims.fault_of(status, before, now + _EARLY_MS)
        if wrong:
            self.distrust(wrong)
            return
        made_ms = now - status.held_us / 1000.0 - self.transit_ms
        core.status(self._sn, status.sequence, made_ms, self._claims.cut(status.numbers).tolist())
        self._server.counters.add("statuses_total", sn=self.peer.name)

    def distrust(self, why: str) -> None:
        """The SN has sent an implausible message: it is silent from now on, and called again later.

        That is counted every time, and logged once for every start of the SN.
        """
        self.implausible = why
        self._server.counters.add("implausible_messages_total", sn=self.peer.name)
        self._server.core.silence(self._sn, True)
        if self._accused != self._boot:
            self._accused = self._boot
            self._server.log.warning("sn not believed", sn=self.peer.name, why=why)
        if self._call is not None:
            self._call.cancel()

    def _check(self, welcome: Any) -> None:
        """Say so if the SN is not what the configuration says."""
        told = welcome.slots, welcome.cycles_per_ms
        if told != (self.peer.slots, self.peer.cycles_per_ms):
            self._server.log.warning(
                "the sn is not what the configuration says",
                sn=self.peer.name,
                slots=welcome.slots,
                cycles_per_ms=welcome.cycles_per_ms,
            )

    def stop(self) -> None:
        """Take nothing more of what the SN says, from now on."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Stop connecting and close the connection to the SN."""
        self.stop()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._channel.close()
