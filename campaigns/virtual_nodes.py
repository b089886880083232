"""An episode played through live nodes under a virtual clock: the simulator's decisions, exactly.

Every EN and SN of a scenario is a core of its own, with its own method object, as on machines of
their own. The clock jumps from event to event in R5's order, and messages take as long as the
sender expects (R13), or are lost or late as the scenario says. Nodes change their speed (R37), and
SNs fail and come back (R38), when the episode says so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from virtual_clock import VirtualClock
from virtual_parts import FadingLink, FallibleSn

from cosmo.live.cell import arrivals_at_ens
from cosmo.live.clock import CHANGE, DELIVERY, EN_DECISION, SN_DECISION, TENANT, Emulated
from cosmo.live.core_en import EnCore, EnRules
from cosmo.live.core_sn import SnRules
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.link import Link
from cosmo.live.tasks import Fate, Item
from cosmo.live.updater_runner import UpdaterRunner
from cosmo.node import NO_NODE, NOTHING, Method, ResultObservation, Site
from cosmo.scenario import Scenario
from cosmo.workload import BackgroundTasks, Episode, Tasks
from cosmo.workload.table import FAILS, SPEED
from cosmo.world import site_of
from cosmo.world.layout import own_numbers

Floats = NDArray[np.float64]


@dataclass
class Played:
    """What became of an episode's tasks, as the nodes could tell; columns by task."""

    action: NDArray[np.int8]  # -1: no decision
    decided_ms: Floats
    # When the EN knew; of a task that was lost (R38) when that was, or at the deadline if later.
    finished_ms: Floats
    fate: NDArray[np.int8]  # codes of `Fate`; 0: none; EXPIRED: lost
    heard: NDArray[np.int8]  # what the method was told (`cosmo.node.observation`); 0: nothing
    heard_ms: Floats  # and when; NaN: nothing
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
        self.clock = VirtualClock()
        self._scenario, self._episode = scenario, episode
        self._random = episode.message_seed
        count = len(episode.tasks)
        self.played = Played(
            np.full(count, -1, np.int8),
            np.full(count, np.nan),
            np.full(count, np.nan),
            np.zeros(count, np.int8),
            np.zeros(count, np.int8),
            np.full(count, np.nan),
        )
        ens = scenario.en.count
        self._own_number = own_numbers(episode.tasks.en, ens)  # R41
        self._rows = [np.flatnonzero(episode.tasks.en == en) for en in range(ens)]
        self._up = [True] * scenario.sn.count
        site = site_of(scenario, [(seed, number)])
        worker = Emulated(self.clock)
        self.sns: list[FallibleSn] = []
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
                FallibleSn(
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
            runner = _Recorded(make_method(), site, en, self)
            rules = EnRules(
                ack_bytes=status.ack_bytes,
                latency_weight=seen.latency_weight,
                throughput_weight=scenario.access.throughput_weight,
                nominal_mbps=scenario.access.rate_mbps,
                expires=episode.expires,
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
        if not len(steps):
            return Link(links, en, column, direction == 0)
        history = self._scenario.observation.history_ms
        factor = partial(_factor, steps, period)
        return FadingLink(links, en, column, direction == 0, factor, period, history)

    def play(self) -> Played:
        """From the first event to the last."""
        for node in self.sns:
            node.begin()
        self._feed_tasks()
        self._feed_background()
        self._feed_events()
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
        reached = arrivals_at_ens(self._scenario, self._episode)
        for task in reached.order.tolist():
            cycles, true_cycles = self._cycles(tasks, task)
            item = Item(
                number=int(self._own_number[task]),
                generated_ms=float(tasks.time_ms[task]),
                deadline_ms=float(tasks.deadline_ms[task]),
                input_bytes=float(tasks.input_bytes[task]),
                cycles=cycles,
                true_cycles=true_cycles,
                ue=int(tasks.ue[task]),
                residual_ms=float(reached.residual_ms[task]),
                context=task,
            )
            node = self.ens[int(tasks.en[task])]
            self.clock.at(float(reached.time_ms[task]), EN_DECISION, partial(node.arrive, item))

    def _cycles(self, tasks: Tasks | BackgroundTasks, row: int) -> tuple[float, float]:
        """The cycles that nodes see of a task, and the true ones (R35).

        The latter are NaN if nodes see the true cycles of all tasks.
        """
        declared, episode = self._scenario.workload.demand.declared, self._episode
        if declared and episode.tasks.as_declared and episode.background.as_declared:
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
            come = partial(self.arrive, int(other.sn[row]), item, None)
            self.clock.at(float(other.time_ms[row]), TENANT, come)

    def _feed_events(self) -> None:
        events = self._episode.events
        rows = zip(events.time_ms, events.node, events.what, events.factor, strict=True)
        for time_ms, node, what, factor in rows:
            call = partial(self._change, int(node), int(what), float(factor))
            self.clock.at(float(time_ms), CHANGE, call)

    def _change(self, node: int, what: int, factor: float) -> None:
        """A node, ENs counted first, changes its speed (R37), fails or comes back (R38)."""
        ens, sn = len(self.ens), node - len(self.ens)
        if what == SPEED:
            (self.ens[node] if node < ens else self.sns[sn]).change_speed(factor)
        elif what == FAILS:
            self._up[sn] = False
            for item in self.sns[sn].fail():
                self._lose(item)
        else:
            self._up[sn] = True
            self.sns[sn].come_back()

    # What lies between nodes.

    def arrive(self, sn: int, item: Item, place: int | None) -> None:
        """A task reaches an SN, of the EN in this column or a tenant's; none is there if it is
        down.
        """
        if self._up[sn]:
            self.sns[sn].arrive(item, place)
        else:
            item.context = place, item.context
            self._lose(item)

    def _lose(self, item: Item) -> None:
        """Nobody is told that a task is lost; of a tenant's there is no record."""
        place, own = item.context
        if place is not None:
            played, row = self.played, own.context
            played.action[row], played.decided_ms[row] = own.action, own.decided_ms
            played.finished_ms[row] = max(own.expires_ms, self.clock.now())
            played.fate[row] = Fate.EXPIRED

    def heard(self, en: int, task: int, fate: int, now: float) -> None:
        """The method of an EN is told what became of one of its own tasks."""
        row = self._rows[en][task]
        assert not self.played.heard[row], "an EN hears of each task once"
        self.played.heard[row], self.played.heard_ms[row] = fate, now

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


class _Recorded(DispatcherRunner):
    """A dispatcher of which is kept what it is told."""

    def __init__(self, method: Method, site: Site, index: int, world: "VirtualWorld") -> None:
        super().__init__(method, site, index)
        self._world = world

    def note_fate(self, task: int, action: int, fate: int, in_time: bool, now: float) -> None:
        self._world.heard(self.index, task, fate, now)
        super().note_fate(task, action, fate, in_time, now)


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
        number, place = self._there(sn)
        self._world.deliver(arrival_ms, partial(self._world.arrive, number, there, place))

    def _there(self, column: int) -> tuple[int, int]:
        """The SN in a column, and in which column it has this EN."""
        sn = int(self._world.site.links.reach[self._en, column])
        return sn, self._world.columns[self._en, sn][1]

    def recall(self, sn: int, item: Item) -> None:
        raise NotImplementedError("virtual ENs wait for all results (R11)")

    def acknowledge(self, sn: int, sequence: int, arrival_ms: float) -> None:
        number, place = self._there(sn)
        node = self._world.sns[number]  # one that is down knows of no status that it has sent
        self._world.deliver_status(arrival_ms, lambda: node.acknowledged(place, sequence))

    def answer(self, item: Item, fate: Fate, output: bytes) -> None:
        played, now, row = self._world.played, self._world.clock.now(), item.context
        played.action[row] = item.action
        played.decided_ms[row] = item.decided_ms
        played.finished_ms[row] = now
        played.fate[row] = fate


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
