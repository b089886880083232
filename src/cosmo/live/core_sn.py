"""A service node: runs tasks of its ENs, and decides when to tell them of its state."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cosmo.live.clock import DELIVERY, SN_DECISION, Clock, Timer, Worker
from cosmo.live.core import Core
from cosmo.live.link import Link
from cosmo.live.recent_outcomes import RecentOutcomes
from cosmo.live.tasks import Fate, Item
from cosmo.live.updater_runner import UpdaterRunner
from cosmo.node import ResultObservation, Site, UpdateObservation

Floats = NDArray[np.float64]


class SnTransport(Protocol):
    """How an SN reaches its ENs. `arrival_ms` is when a message is expected to arrive."""

    def answer(
        self,
        en: int,
        item: Item,
        fate: Fate,
        output: bytes,
        arrival_ms: float,
        rider: tuple[int, Floats] | None,
    ) -> None:
        """A result, a notice of refusal (R27) or of failure; (sequence, numbers) of a status may
        ride on a result (R31).
        """
        ...

    def status(self, en: int, sequence: int, numbers: Floats, arrival_ms: float) -> None:
        """The numbers of a status (R28), made now."""
        ...


@dataclass(frozen=True)
class SnRules:
    """How an SN behaves; the defaults are the simulator's."""

    header_bytes: float = 64.0  # of a status
    bytes_per_number: float = 4.0
    notice_bytes: float = 64.0
    latency_weight: float = 0.1
    history_ms: float = 500.0  # R19
    until_ms: float = math.inf  # decides until then (R21)
    drop_late: bool = False  # stop working on tasks whose budget is gone, which R11 does not
    least_gap_ms: float = 0.0  # between two statuses to an EN: a cap on the rate
    refresh_ms: float = 0.0  # a status that says nothing new waits for this long
    per_task: float = 0.0  # statuses to an EN for each task of it, …
    idle_ms: float = math.inf  # … and one more in this time, whether it sends tasks or not, …
    burst: float = math.inf  # … up to so many at once, which it may be sent to begin with


@dataclass(slots=True)
class Peer:
    """What the SN knows of one EN's cache: what was last acknowledged (R14)."""

    numbers: Floats
    acknowledged_ms: float = math.nan
    sequence: int = -1
    sent_ms: float = -math.inf
    here: bool = True  # an EN that is not connected is sent nothing
    allowed: float = math.inf  # statuses that it may be sent, …
    allowed_ms: float = 0.0  # … as of this moment


class SnCore(Core):
    """The core of an SN; clock, timers, workers and transport are passed in."""

    def __init__(
        self,
        site: Site,
        index: int,
        runner: UpdaterRunner | None,
        clock: Clock,
        worker: Worker,
        transport: SnTransport,
        links: Sequence[Link],
        rules: SnRules | None = None,
    ) -> None:
        """`links` are those to the ENs that reach it, in order; no runner: never a status."""
        self.rules = rules or SnRules()
        super().__init__(site, index, site.sn, clock, worker, links, self.rules.latency_weight)
        self.runner, self._transport = runner, transport
        self._next: Timer | None = None  # decision
        self._carries = 0 if runner is None else runner.method.carries
        self.peers = [Peer(np.zeros(self._carries)) for _ in links]
        self.recent = RecentOutcomes(self.rules.history_ms)
        self._sequence = -1
        self._sent: dict[int, tuple[float, Floats]] = {}  # by sequence: when made, what
        self.up_since_ms = 0.0  # when it came back from its last outage (R38); 0: it never failed
        self.decisions = self.updates = self.suppressed = 0

    def begin(self) -> None:
        """Decide for the first time, at once (R21)."""
        if self.runner is not None and self.links:
            self._next = self._clock.at(self._clock.now(), SN_DECISION, self._look)

    def take_over(self, runner: UpdaterRunner | None) -> None:
        """Have another updater decide from now on; its statuses are as long as those of before."""
        if self._next is not None:
            self._next.cancel()
        self.runner = runner
        self.begin()

    # Tasks.

    def arrive(self, item: Item, en: int | None) -> None:
        """A task of an EN has come, or one of nobody's that only takes room (`en` None)."""
        now = self._clock.now()
        item.context = en, item.context
        if en is not None:
            self._allow(self.peers[en], now, self.rules.per_task)
        if self.rules.drop_late and item.expires_ms <= now:
            self.recent.note(now, None, False)
            self._answer(item, Fate.EXPIRED, b"", self.rules.notice_bytes, now)
        elif not self.station.admit(item, now):
            if en is not None:
                self.recent.note(now, None, False)
                self._answer(item, Fate.REFUSED, b"", self.rules.notice_bytes, now)
        elif self.rules.drop_late and en is not None:  # what is nobody's never expires
            item.expiry = self._clock.at(item.expires_ms, DELIVERY, partial(self._expire, item))

    def _finish(self, slot: int, item: Item, output: bytes) -> None:
        """The result sets out; the SN judges whether it will have been in time (R29)."""
        now = self._complete(slot)
        en = item.context[0]
        if en is None:
            item.ended = True
            return
        size = max(self.site.links.result_bytes, float(len(output)))
        rider = self._rider(en, now)
        if rider is not None:
            size += self.rules.bytes_per_number * self._carries
        delay = self.links[en].idle_arrival(size, now) - item.generated_ms
        self.recent.note(now, delay, delay <= item.deadline_ms)
        self._answer(item, Fate.DONE, output, size, now, rider)

    def _rider(self, en: int, now: float) -> tuple[int, Floats] | None:
        """The status that rides on a result to an EN, charged like any other (R31)."""
        if self.runner is None or not self.runner.rides:
            return None
        peer = self.peers[en]
        numbers = self.runner.ride(
            ResultObservation(
                world=np.zeros(1, np.int64),
                sn=np.array([self.index], np.int64),
                en=self.site.links.reached_by[0][self.index, en : en + 1],
                time_ms=np.array([now]),
                sn_state=np.array([self.station.state(now)], np.float64),
                acknowledged=peer.numbers[None],
                acknowledged_ms=np.array([peer.acknowledged_ms]),
                sn_speed=np.array([self.station.speed]),
                up_since_ms=np.array([self.up_since_ms]),
            )
        )
        if numbers is None or not self._wants(en, numbers, now):
            return None
        self._spend(peer, now)
        return self._numbered(numbers, now), numbers

    def _numbered(self, numbers: Floats, now: float) -> int:
        """The number of a new status, which is remembered until it is long lost."""
        self._sequence += 1
        self._sent[self._sequence] = now, numbers
        if len(self._sent) > 256:
            del self._sent[next(iter(self._sent))]
        return self._sequence

    def _fail(self, slot: int, item: Item, reason: str) -> None:
        now = self._clock.now()
        self.station.complete(slot, now)
        self.recent.note(now, None, False)
        self._answer(item, Fate.FAILED, reason.encode(), self.rules.notice_bytes, now)

    def _expire(self, item: Item) -> None:
        if self.drop(item):
            now = self._clock.now()
            self.recent.note(now, None, False)
            self._answer(item, Fate.EXPIRED, b"", self.rules.notice_bytes, now)

    def drop(self, item: Item) -> bool:
        """Stop working on a task that nobody waits for; False if it had ended."""
        if item.ended:
            return False
        item.ended = True
        self._take_out(item, self._clock.now())
        if item.expiry is not None:
            item.expiry.cancel()
        return True

    def _answer(
        self,
        item: Item,
        fate: Fate,
        output: bytes,
        size: float,
        now: float,
        rider: tuple[int, Floats] | None = None,
    ) -> None:
        item.ended = True
        if item.expiry is not None:
            item.expiry.cancel()
        try:
            if self.on_end is not None:
                self.on_end(item, fate)
        finally:  # whatever becomes of counters
            en = item.context[0]
            self._transport.answer(en, item, fate, output, self.links[en].send(size, now), rider)

    # Statuses.

    def observation(self, now: float) -> UpdateObservation:
        """What the SN sees when it must decide on an update."""
        delay, success, failure = self.recent.numbers(now)
        ens = self.site.links.reached_by[0][self.index]
        acknowledged = np.zeros((1, len(ens), self._carries))
        acknowledged_ms = np.full((1, len(ens)), np.nan)
        down_link = np.tile((1.0, 0.0, 0.0), (1, len(ens), 1))
        for en, (peer, link) in enumerate(zip(self.peers, self.links, strict=True)):
            acknowledged[0, en], acknowledged_ms[0, en] = peer.numbers, peer.acknowledged_ms
            down_link[0, en] = link.statistics(now)
        return UpdateObservation(
            world=np.zeros(1, np.int64),
            sn=np.array([self.index], np.int64),
            time_ms=np.array([now]),
            sn_state=np.array([self.station.state(now)], np.float64),
            en=ens[None],
            acknowledged=acknowledged,
            acknowledged_ms=acknowledged_ms,
            recent_delay_ms=np.array([delay]),
            recent_success=np.array([success]),
            recent_failure=np.array([failure]),
            down_link_mbps=down_link,
            sn_speed=np.array([self.station.speed]),
            up_since_ms=np.array([self.up_since_ms]),
        )

    def _look(self) -> None:
        """Decide whether to send, and to whom, and when to decide again."""
        assert self.runner is not None
        now = self._clock.now()
        send, interval_ms, numbers = self.runner.decide(self.observation(now), len(self.peers))
        self.decisions += 1
        if send.any():
            self._send(send, numbers, now)
        if now + interval_ms <= self.rules.until_ms and interval_ms < math.inf:
            self._next = self._clock.at(now + interval_ms, SN_DECISION, self._look)

    def _send(self, send: NDArray[np.bool_], numbers: Floats, now: float) -> None:
        whom = [en for en in np.flatnonzero(send).tolist() if self._wants(en, numbers, now)]
        self.suppressed += int(send.sum()) - len(whom)
        if not whom:
            return
        sequence = self._numbered(numbers, now)
        size = self.rules.header_bytes + self.rules.bytes_per_number * self._carries
        for en in whom:
            self._spend(self.peers[en], now)
            arrival = self.links[en].send(size, now)
            self._transport.status(en, sequence, numbers, arrival)

    def _wants(self, en: int, numbers: Floats, now: float) -> bool:
        """Whether a status to this EN is within the cap, and says something new or refreshes."""
        peer, rules = self.peers[en], self.rules
        if not peer.here or now - peer.sent_ms < rules.least_gap_ms:
            return False
        self._allow(peer, now, 0.0)
        if peer.allowed < 1.0:
            return False
        known = not math.isnan(peer.acknowledged_ms) and np.array_equal(peer.numbers, numbers)
        return not known or now - peer.acknowledged_ms >= rules.refresh_ms

    def _allow(self, peer: Peer, now: float, more: float) -> None:
        """An EN may be sent as many statuses as it sends tasks, and a few as time goes by.

        Statuses are for who has tasks to decide on: an EN that has none needs next to nothing.
        """
        more += (now - peer.allowed_ms) / self.rules.idle_ms
        peer.allowed, peer.allowed_ms = min(peer.allowed + more, self.rules.burst), now

    def _spend(self, peer: Peer, now: float) -> None:
        peer.sent_ms = now
        peer.allowed -= 1.0
        self.updates += 1

    def acknowledged(self, en: int, sequence: int) -> None:
        """An EN has taken a status into its cache; how old that is, is known here (R14)."""
        peer, sent = self.peers[en], self._sent.get(sequence)
        if sent is not None and sequence > peer.sequence:
            peer.sequence = sequence
            peer.acknowledged_ms, peer.numbers = sent

    def met(self, en: int, here: bool) -> None:
        """An EN has connected, with an empty cache, or is gone."""
        self.peers[en] = Peer(np.zeros(self._carries), here=here)
        if here:
            self.links[en].forget()
