"""An episode played through live nodes under a virtual clock: the simulator's decisions, exactly.

Every EN and SN of a scenario is a core of its own, with its own method object, as on machines of
their own. The clock jumps from event to event in R5's order, and messages take as long as the
sender expects (R13), or are lost or late as the scenario says.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.live.cell import arrivals_at_ens
from cosmo.live.clock import DELIVERY, EN_DECISION, GENERATION, SN_DECISION, Emulated
from cosmo.live.core_en import EnCore, EnRules
from cosmo.live.core_sn import SnCore, SnRules
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.link import Factor, Link
from cosmo.live.tasks import Fate, Item
from cosmo.live.updater_runner import UpdaterRunner
from cosmo.node import NO_NODE, NOTHING, Method, ResultObservation, Site
from cosmo.scenario import Scenario
from cosmo.workload import BackgroundTasks, Episode, Tasks
from cosmo.world import site_of

Floats = NDArray[np.float64]
_KIND_SHIFT = 48


@dataclass(slots=True)
class Scheduled:
    """A call at a time; cancelling it takes its content away."""

    call: Callable[[], None] | None
    kind: int

    def cancel(self) -> None:
        """Never make it."""
        self.call = None


class VirtualClock:
    """The time and the timers of all nodes: whatever comes first happens first (R5)."""

    def __init__(self) -> None:
        self._now = 0.0
        self._events: list[tuple[float, int, Scheduled]] = []
        self._scheduled = 0

    def now(self) -> float:
        """Ms since the start."""
        return self._now

    def at(self, time_ms: float, kind: int, call: Callable[[], None]) -> Scheduled:
        """Schedule a call behind all of its kind at the same instant."""
        event = Scheduled(call, kind)
        order = (kind << _KIND_SHIFT) | self._scheduled
        heapq.heappush(self._events, (time_ms, order, event))
        self._scheduled += 1
        return event

    def run(self, before: Callable[[int], None] | None = None) -> None:
        """Make every call in order; `before` is told the kind of each."""
        while self._events:
            time, _, event = heapq.heappop(self._events)
            if event.call is not None:
                self._now = time
                if before is not None:
                    before(event.kind)
                event.call()


@dataclass
class Played:
    """What became of an episode's tasks, as the nodes could tell; columns by task."""

    action: NDArray[np.int8]  # -1: no decision
    decided_ms: Floats
    finished_ms: Floats  # when the EN knew; NaN while it does not
    fate: NDArray[np.int8]  # codes of `Fate`; 0: none
    updates: int = 0
    update_decisions: int = 0


class VirtualWorld:
    """The nodes of a scenario, and what lies between them."""

    def __init__(
        self,
        scenario: Scenario,
        make_method: Callable[[], Method],
        episode: Episode,
        seed: int = 0,
        number: int = 0,
    ) -> None:
        """`make_method` is called for every node; `seed` and `number` are what R26 draws from."""
        if len(episode.events):
            raise InputError("events: nodes under a virtual clock keep their speed and never fail")
        self.clock = VirtualClock()
        self._scenario, self._episode = scenario, episode
        self._random = episode.message_seed
        count = len(episode.tasks)
        self.played = Played(
            np.full(count, -1, np.int8),
            np.full(count, np.nan),
            np.full(count, np.nan),
            np.zeros(count, np.int8),
        )
        site = site_of(scenario, [(seed, number)])
        worker = Emulated(self.clock)
        self.sns: list[SnCore] = []
        self.ens: list[EnCore] = []
        self.site = site
        links = site.links
        self.columns = {  # (EN, SN): in which column each has the other
            (int(en), sn): (int(column), place)
            for sn, (ens, columns) in enumerate(zip(*links.reached_by, strict=True))
            for place, (en, column) in enumerate(zip(ens, columns, strict=True))
            if en != NO_NODE
        }
        seen, status = scenario.observation, scenario.status
        for sn in range(scenario.sn.count):
            method = make_method()
            told = links.reached_by[0][sn]
            updater = None if method.carries == NOTHING else UpdaterRunner(method, site)
            if updater is not None and updater.rides:
                updater = _AskedAtResults(method, site, self)
            self.sns.append(
                SnCore(
                    site,
                    sn,
                    updater,
                    self.clock,
                    worker,
                    _FromSn(self, sn),
                    [self._link(1, int(en), sn) for en in told[told != NO_NODE]],
                    SnRules(
                        header_bytes=status.header_bytes,
                        bytes_per_number=status.bytes_per_dimension,
                        notice_bytes=status.notice_bytes,
                        latency_weight=seen.latency_weight,
                        history_ms=seen.history_ms,
                        until_ms=episode.window_ms,
                    ),
                )
            )
        for en in range(scenario.en.count):
            runner = DispatcherRunner(make_method(), site, en)
            rules = EnRules(
                ack_bytes=status.ack_bytes,
                latency_weight=seen.latency_weight,
                throughput_weight=scenario.access.throughput_weight,
                nominal_mbps=scenario.access.rate_mbps,
            )
            reached = links.reach[en]
            own = [self._link(0, en, int(sn)) for sn in reached[reached != NO_NODE]]
            self.ens.append(
                EnCore(site, en, runner, self.clock, worker, _FromEn(self, en), own, rules)
            )

    def _link(self, direction: int, en: int, sn: int) -> Link:
        links, period = self.site.links, self._scenario.fading.period_ms
        column, _ = self.columns[en, sn]
        number = int(links.exist[:en].sum()) + column
        steps = self._episode.rate_factor[direction, number]
        factor: Factor | None = partial(_factor, steps, period) if len(steps) else None
        history = self._scenario.observation.history_ms
        return Link(links, en, column, direction == 0, history, factor, period)

    def play(self) -> Played:
        """From the first event to the last."""
        for node in self.sns:
            node.begin()
        self._feed_tasks()
        self._feed_background()
        self.clock.run(self._before)
        self.played.updates = sum(node.updates for node in self.sns)
        self.played.update_decisions = sum(node.decisions for node in self.sns)
        return self.played

    def _before(self, kind: int) -> None:
        """A laboratory tells all ENs what is known at every decision of a world, of SNs as well."""
        if kind in (EN_DECISION, SN_DECISION):
            self.tell_ens()

    def tell_ens(self) -> None:
        """Have all ENs hear what is known of their tasks."""
        for node in self.ens:
            node.runner.deliver_feedback()

    def _feed_tasks(self) -> None:
        tasks = self._episode.tasks
        reached = arrivals_at_ens(self._scenario, tasks)
        known = np.flatnonzero(~np.isnan(reached.time_ms))
        for task in known[np.lexsort((known, reached.requested_ms[known]))].tolist():
            cycles, true_cycles = self._cycles(tasks, task)
            item = Item(
                number=task,
                generated_ms=float(tasks.time_ms[task]),
                deadline_ms=float(tasks.deadline_ms[task]),
                input_bytes=float(tasks.input_bytes[task]),
                cycles=cycles,
                true_cycles=true_cycles,
                ue=int(tasks.ue[task]),
                residual_ms=float(reached.residual_ms[task]),
            )
            node = self.ens[int(tasks.en[task])]
            self.clock.at(float(reached.time_ms[task]), EN_DECISION, partial(node.arrive, item))

    def _cycles(self, tasks: Tasks | BackgroundTasks, row: int) -> tuple[float, float]:
        """The cycles that nodes see of a task, and the true ones (R35); NaN if they see these."""
        declared = self._scenario.workload.demand.declared
        if declared and tasks.as_declared:
            return float(tasks.cycles[row]), math.nan
        seen = float(tasks.cycles[row]) if declared else self.site.tasks.mean_cycles
        return seen, float(tasks.work_cycles[row])

    def _feed_background(self) -> None:
        other = self._episode.background
        for row in range(len(other)):
            cycles, true_cycles = self._cycles(other, row)
            item = Item(
                number=-1 - row,
                generated_ms=float(other.time_ms[row]),
                deadline_ms=math.inf,
                input_bytes=float(other.input_bytes[row]),
                cycles=cycles,
                true_cycles=true_cycles,
            )
            node = self.sns[int(other.sn[row])]
            self.clock.at(float(other.time_ms[row]), GENERATION, partial(node.arrive, item, None))

    # What lies between nodes.

    def deliver(self, arrival_ms: float, call: Callable[[], None]) -> None:
        """A message arrives."""
        self.clock.at(arrival_ms, DELIVERY, call)

    def deliver_status(self, arrival_ms: float, call: Callable[[], None]) -> None:
        """A status or an acknowledgement arrives, unless it is lost, perhaps later."""
        status = self._scenario.status
        if status.loss_probability > 0.0 and self._uniform() < status.loss_probability:
            return
        if status.jitter_ms > 0.0:
            arrival_ms += status.jitter_ms * self._uniform()
        self.clock.at(arrival_ms, DELIVERY, call)

    def _uniform(self) -> float:
        """A draw from [0, 1) of the episode's own generator (SplitMix64)."""
        mask = (1 << 64) - 1
        self._random = (self._random + 0x9E3779B97F4A7C15) & mask
        mixed = self._random
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        return ((mixed ^ (mixed >> 31)) >> 11) * 2.0**-53


def _factor(steps: Floats, period_ms: float, time_ms: float) -> float:
    """Of a link's rate at a time."""
    return float(steps[min(int(time_ms / period_ms), len(steps) - 1)])


class _AskedAtResults(UpdaterRunner):
    """An updater that is asked at results: one more turn of a laboratory, where ENs are told."""

    def __init__(self, method: Method, site: Site, world: "VirtualWorld") -> None:
        super().__init__(method, site)
        self._world = world

    def ride(self, result: ResultObservation) -> Floats | None:
        self._world.tell_ens()
        return super().ride(result)


class _FromEn:
    """The transport of one EN."""

    def __init__(self, world: VirtualWorld, en: int) -> None:
        self._world, self._en = world, en

    def offload(self, sn: int, item: Item, arrival_ms: float) -> None:
        there = Item(
            number=item.number,
            generated_ms=item.generated_ms,
            deadline_ms=item.deadline_ms,
            input_bytes=item.input_bytes,
            cycles=item.cycles,
            true_cycles=item.true_cycles,
            context=item,
        )
        node, place = self._there(sn)
        self._world.deliver(arrival_ms, lambda: node.arrive(there, place))

    def _there(self, column: int) -> tuple[SnCore, int]:
        """The SN in a column, and in which column it has this EN."""
        sn = int(self._world.site.links.reach[self._en, column])
        return self._world.sns[sn], self._world.columns[self._en, sn][1]

    def recall(self, sn: int, item: Item) -> None:
        raise NotImplementedError("virtual ENs wait for all results (R11)")

    def acknowledge(self, sn: int, sequence: int, arrival_ms: float) -> None:
        node, place = self._there(sn)
        self._world.deliver_status(arrival_ms, lambda: node.acknowledged(place, sequence))

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        played, now = self._world.played, self._world.clock.now()
        played.action[item.number] = item.action
        played.decided_ms[item.number] = item.decided_ms
        played.finished_ms[item.number] = now
        played.fate[item.number] = fate


class _FromSn:
    """The transport of one SN."""

    def __init__(self, world: VirtualWorld, sn: int) -> None:
        self._world, self._sn = world, sn

    def _there(self, place: int) -> tuple[EnCore, int]:
        """The EN in a column, and in which column it has this SN."""
        en = int(self._world.site.links.reached_by[0][self._sn, place])
        return self._world.ens[en], self._world.columns[en, self._sn][0]

    def answer(
        self,
        en: int,
        item: Item,
        fate: Fate,
        output: bytes,
        arrival_ms: float,
        rider: tuple[int, Floats] | None,
    ) -> None:
        (node, column), own = self._there(en), item.context[1]
        made_ms = self._world.clock.now()

        def arrived() -> None:
            node.result(own, output)
            if rider is not None:
                node.status(column, rider[0], made_ms, rider[1].tolist())

        if fate == Fate.DONE:
            self._world.deliver(arrival_ms, arrived)
        else:
            self._world.deliver(arrival_ms, lambda: node.refused(own))

    def status(self, en: int, sequence: int, numbers: Floats, arrival_ms: float) -> None:
        (node, column), made_ms = self._there(en), self._world.clock.now()
        told = numbers.tolist()
        self._world.deliver_status(arrival_ms, lambda: node.status(column, sequence, made_ms, told))
