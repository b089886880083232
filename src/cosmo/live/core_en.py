"""An edge node: decides on each task that has reached it, runs some, offloads some, rejects some.

What it knows is what `cosmo.node` says that an EN can know: its own queue, what it has put on its
links, the statuses that it was sent, and what became of its own tasks. The method that decides is
the very object that the simulator plays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from cosmo.live.clock import DEADLINE, DELIVERY, Clock, Worker
from cosmo.live.core import Core
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.link import Link
from cosmo.live.sight import Links, Sight
from cosmo.live.smoothed import Throughput
from cosmo.live.tasks import Fate, Item
from cosmo.node import DONE, EXPIRED, GIVEN_UP, REFUSED, Site
from cosmo.policy.rules.run import Task

FAR_MS = 1e6  # the backlog that methods are shown of a link whose SN is silent


class EnTransport(Protocol):
    """How an EN reaches others. `arrival_ms` is when a message is expected to arrive."""

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        """Send a task to an SN, at most once."""
        ...

    def recall(self, sn: int, item: Item) -> None:
        """The EN no longer waits for a task; the SN may drop it."""
        ...

    def acknowledge(self, sn: int, sequence: int, arrival_ms: float) -> None:
        """Tell an SN that its status is in the cache."""
        ...

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        """Tell the UE; once for each task."""
        ...


@dataclass(frozen=True)
class EnRules:
    """How an EN behaves; the defaults are the simulator's."""

    ack_bytes: float = 64.0
    latency_weight: float = 0.1
    throughput_weight: float = 0.25  # R8
    nominal_mbps: float = 128.6  # of an upload that took no time
    answer_late: bool = False  # tell the UE when the budget is gone, not when the result comes
    drop_late: bool = False  # and stop working on it, which R11 does not
    expires: bool = False  # at its deadline the method learns that an SN has not answered (R38)
    fresh_ms: float = math.inf  # after so long without a task the method starts anew


@dataclass(slots=True)
class Cache:
    """The last status of an SN (R14), and whether the SN is there at all."""

    numbers: np.ndarray[tuple[int], np.dtype[np.float64]]
    sequence: int = -1
    source_ms: float = math.nan
    silent: bool = False
    unknown_work_ms: float = 0.0  # until then the SN is busy with work unknown to the method


class EnCore(Core):
    """The core of an EN; clock, timers, workers and transport are passed in."""

    def __init__(
        self,
        site: Site,
        index: int,
        runner: DispatcherRunner,
        clock: Clock,
        worker: Worker,
        transport: EnTransport,
        links: Sequence[Link],
        rules: EnRules | None = None,
    ) -> None:
        """`links` are those to the SNs that it reaches, in the order of the site's."""
        self.rules = rules or EnRules()
        super().__init__(site, index, site.en, clock, worker, links, self.rules.latency_weight)
        self.runner, self._transport = runner, transport
        self.caches = [Cache(np.zeros(runner.method.carries)) for _ in links]
        self._look_around()
        self._throughput = Throughput(self.rules.throughput_weight, self.rules.nominal_mbps)
        self._away: dict[int, Item] = {}  # offloaded tasks that nothing was heard of, by number
        self._numbers = 0
        # Methods see times from their own start on, which in a simulation is that of the load.
        self._origin_ms, self._last_ms, self._new = 0.0, -math.inf, False
        self.guard_ms: Callable[[], float] = lambda: 0.0
        self.on_choice: Callable[[Sight, Item], None] | None = None

    def _look_around(self) -> None:
        """What the site's links look like is kept from task to task."""
        reach = self.site.links.reach[self.index : self.index + 1]
        self._seen_links = Links(reach, len(self.links), len(self.caches[0].numbers))

    @property
    def sns(self) -> int:
        """How many SNs it knows."""
        return len(self.links)

    @property
    def in_flight(self) -> int:
        """Tasks that the node still has to do with."""
        return self.station.requests + len(self._away)

    def away(self, sn: int) -> list[Item]:
        """Tasks that were sent to an SN, and nothing was heard of."""
        return [item for item in self._away.values() if item.action == sn + 1]

    def next_number(self) -> int:
        """A number for a task that has none."""
        self._numbers += 1
        return self._numbers - 1

    def arrive(self, item: Item) -> None:
        """A task has reached the EN with its whole input (R1)."""
        now = self._clock.now()
        if self.rules.answer_late and item.expires_ms <= now:
            item.ended = True
            self._answer(item, Fate.EXPIRED, b"")
            return
        self._look_back(item, now)
        seen = self.sight(item, now)
        item.action = self._obeyed(item, self.runner.choose(seen), now)
        item.decided_ms = now
        if self.on_choice is not None:
            self.on_choice(seen, item)
        if self.rules.answer_late:
            expire = partial(self._expire, item)
            item.expiry = self._clock.at(item.expires_ms, DELIVERY, expire)
        if item.action == 0:
            self._take_local(item, now)
        elif item.action <= self.sns:
            self._send(item, item.action - 1, now)
        else:
            self._tell(item, GIVEN_UP, False, now)
            self._end(item, Fate.REJECTED, b"")

    def _obeyed(self, item: Item, action: int, now: float) -> int:
        """What is done on the method's word: at an EN whatever it says."""
        return action

    def _look_back(self, item: Item, now: float) -> None:
        """Let a method begin with this task if it is new here, or has had nothing to do for long.

        The time since the node's start, or a pause, would look to it like one gap between two
        tasks, which it has never met in training.
        """
        idle = now - self._last_ms > self.rules.fresh_ms and self.in_flight == 0
        self._last_ms = now
        if idle or (self._new and self.rules.fresh_ms < math.inf):
            self.start_over()
            self._origin_ms = item.generated_ms - 1000.0 / self.site.tasks.rate
        self._new = False

    def sight(self, item: Item, now: float) -> Sight:
        """What the EN sees of a task that has just reached it, until the next one is looked at."""
        elapsed, station, started = now - item.generated_ms, self.station, self._origin_ms
        # In a simulation no task is older than the load: one that is counts as its first.
        early_ms = min(item.generated_ms - started, 0.0)
        mbps, trend = self._throughput.sample(item.ue, item.input_bytes, elapsed)
        links = self._seen_links
        for sn, (cache, link) in enumerate(zip(self.caches, self.links, strict=True)):
            made_ms, backlog_ms = cache.source_ms - started, self._backlog_ms(sn, now)
            links.see(sn, link.statistics(now), cache.numbers, made_ms, backlog_ms)
        task = Task(
            world=0,
            en=self.index,
            task=item.number,
            time_ms=now - started,
            generated_ms=item.generated_ms - started - early_ms,
            input_bytes=float(item.input_bytes),
            cycles=float(item.cycles),
            deadline_ms=item.deadline_ms + early_ms - self.guard_ms(),
            en_state=station.state(now),
            local_wait_ms=station.wait_ms(item, now),
            local_room=station.has_room(item),
        )
        return Sight(task, item.ue, mbps, trend, item.residual_ms, station.speed, links)

    def _backlog_ms(self, sn: int, now: float) -> float:
        """Of a link; work that the method cannot know of counts as backlog, too."""
        if self._is_silent(sn):
            return FAR_MS
        return self.links[sn].backlog_ms(now) + max(0.0, self.caches[sn].unknown_work_ms - now)

    def _is_silent(self, sn: int) -> bool:
        """Whether the task that is decided on cannot be sent there."""
        return self.caches[sn].silent

    # Local work.

    def _take_local(self, item: Item, now: float) -> None:
        if not self.station.admit(item, now):
            self._tell(item, REFUSED, False, now)
            self._end(item, Fate.REFUSED, b"")

    def _finish(self, slot: int, item: Item, output: bytes) -> None:
        self._done(item, output, self._complete(slot), 0)

    def _fail(self, slot: int, item: Item, reason: str) -> None:
        now = self._clock.now()
        self.station.complete(slot, now)
        self._tell(item, DONE, False, now, action=0)
        self._end(item, Fate.FAILED, reason.encode())

    def _done(self, item: Item, output: bytes, now: float, action: int) -> None:
        in_time = now - item.generated_ms <= item.deadline_ms
        self._tell(item, DONE, in_time, now, action)
        self._end(item, Fate.DONE if in_time else Fate.LATE, output)

    # Offloading.

    def _send(self, item: Item, sn: int, now: float) -> None:
        if self._is_silent(sn):  # refused in the name of an SN that nobody hears of
            self._tell(item, REFUSED, False, now)
            self._rerun(item, now)
            return
        self._away[item.number] = item
        arrival = self.links[sn].send(item.input_bytes, now)
        self._transport.offload(sn, item, arrival)
        if self.rules.expires:
            stop = partial(self._stop_waiting, item)
            item.patience = self._clock.at(max(item.expires_ms, now), DEADLINE, stop)

    def _stop_waiting(self, item: Item) -> None:
        """The deadline of an offloaded task passes (R38): its method hears so, and nothing later.

        The SN may still be at work on it, and an answer is taken if it comes.
        """
        if item.number in self._away and not item.expired:
            self._tell(item, EXPIRED, False, self._clock.now())
            item.expired = True
            if item.lost:
                self.lost(item)

    def result(self, item: Item, output: bytes) -> None:
        """An SN has sent the result of a task."""
        if self._away.pop(item.number, None) is not None:
            self._done(item, output, self._clock.now(), item.action)

    def refused(self, item: Item) -> None:
        """An SN has refused a task (R27)."""
        if self._away.pop(item.number, None) is not None:
            self._tell(item, REFUSED, False, self._clock.now())
            self._end(item, Fate.REFUSED, b"")

    def failed(self, item: Item, fate: Fate, reason: str) -> None:
        """An SN could not do a task: its handler failed, or the budget was gone there."""
        if self._away.pop(item.number, None) is not None:
            self._tell(item, DONE, False, self._clock.now())
            self._end(item, fate, reason.encode())

    def lost(self, item: Item) -> None:
        """The SN has vanished with a task: once more, here, if there is time and room for it.

        By R38's rules nobody notices; the EN waits for the deadline.
        """
        if self.rules.expires and not item.expired:
            item.lost = True
        elif self._away.pop(item.number, None) is not None:
            now = self._clock.now()
            self._tell(item, REFUSED, False, now)
            self._rerun(item, now)

    def _rerun(self, item: Item, now: float) -> None:
        in_time = self.station.delay_ms(item, now) <= item.deadline_ms
        if item.expired:
            self._end(item, Fate.EXPIRED, b"")
            return
        if item.answered or not in_time or not self.station.has_room(item):
            self._end(item, Fate.FAILED, b"the SN has vanished")
            return
        item.rerun = True
        self.station.admit(item, now)

    # What is heard of SNs.

    def status(self, sn: int, sequence: int, source_ms: float, numbers: Sequence[float]) -> None:
        """A status has come; the cache takes it if it is newer, and says so (R14)."""
        cache = self.caches[sn]
        if sequence <= cache.sequence:
            return
        cache.sequence, cache.source_ms = sequence, source_ms
        cache.numbers = np.array(numbers, np.float64)
        arrival = self.links[sn].send(self.rules.ack_bytes, self._clock.now())
        self._transport.acknowledge(sn, sequence, arrival)

    def silence(self, sn: int, silent: bool) -> None:
        """Nothing is heard of an SN any more, or something is again; by R38 nobody notices."""
        self.caches[sn].silent = silent and not self.rules.expires

    def restarted(self, sn: int, work_cycles: float) -> None:
        """An SN, or the EN itself, is new: earlier estimates of the backlog mean nothing.

        The SN has so many cycles to do that no EN knows of. A dispatcher's estimate is of all SNs,
        so tasks in flight to the others become such work, too.
        """
        now = self._clock.now()
        cache = self.caches[sn]
        cache.sequence = -1
        if self.rules.expires:  # by R38 an EN hears of it from the next status alone
            return
        cache.source_ms = math.nan
        cache.numbers = np.zeros_like(cache.numbers)
        self.links[sn].forget()
        self.start_over()
        cache.unknown_work_ms = now + work_cycles / self._rate(sn)

    def _rate(self, sn: int) -> float:
        """Cycles per ms of an SN, all slots together."""
        return float(self.site.sn.full_rate[self.site.links.reach[self.index, sn]])

    def start_over(self) -> None:
        """Restart the method without memory, and count tasks in flight as work unknown to it."""
        now, self._new = self._clock.now(), True
        self.runner.start_over()
        for sn, cache in enumerate(self.caches):
            cycles = sum(item.cycles for item in self._away.values() if item.action == sn + 1)
            cache.unknown_work_ms = max(cache.unknown_work_ms, now + cycles / self._rate(sn))

    # Ends.

    def cancel(self, item: Item) -> None:
        """The UE no longer wants it."""
        item.answered = True
        self._give_up(item)

    def _expire(self, item: Item) -> None:
        """The budget is gone: the UE hears it now, whatever becomes of the task."""
        self._answer(item, Fate.EXPIRED, b"")
        if self.rules.drop_late:
            self._give_up(item)

    def _give_up(self, item: Item) -> None:
        if item.ended:
            return
        now, fate = self._clock.now(), GIVEN_UP
        if self._away.pop(item.number, None) is not None:
            self._transport.recall(item.action - 1, item)
            if self.rules.expires and item.expires_ms <= now:
                fate = EXPIRED
        else:
            self._take_out(item, now)
        if item.action >= 0:
            self._tell(item, fate, False, now)
        self._end(item, Fate.EXPIRED, b"")

    def _end(self, item: Item, fate: Fate, output: bytes) -> None:
        item.ended = True
        for timer in (item.expiry, item.patience):
            if timer is not None:
                timer.cancel()
        self._answer(item, fate, output)

    def _answer(self, item: Item, fate: Fate, output: bytes) -> None:
        if not item.answered:
            item.answered = True
            try:
                if self.on_end is not None:
                    self.on_end(item, fate)
            finally:  # whatever becomes of counters and logs
                self._transport.answer(item, fate, output)

    def _tell(
        self, item: Item, fate: int, in_time: bool, now: float, action: int | None = None
    ) -> None:
        if item.expired:
            return
        chosen = item.action if action is None else action
        self.runner.note_fate(item.number, chosen, fate, in_time, now - self._origin_ms)
