"""Cores of nodes under a virtual clock, with a transport that keeps what it is given."""

import numpy as np
from virtual_clock import VirtualClock
from virtual_parts import FallibleSn

from cosmo import load, method
from cosmo.live.clock import Emulated
from cosmo.live.core_en import EnCore, EnRules
from cosmo.live.core_sn import SnRules
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.link import Link
from cosmo.live.tasks import Item
from cosmo.live.updater_runner import GuardedUpdaterRunner
from cosmo.node import Dispatcher, Method, Updater
from observations import site


class Wires:
    """A transport that keeps what it is given."""

    def __init__(self):
        self.sent, self.recalled, self.acknowledged, self.answers = [], [], [], {}
        self.statuses, self.results = [], []

    def offload(self, sn, item, arrival_ms):
        self.sent.append((sn, item.number))

    def recall(self, sn, item):
        self.recalled.append((sn, item.number))

    def acknowledge(self, sn, sequence, arrival_ms):
        self.acknowledged.append((sn, sequence))

    def answer(self, *told):
        if isinstance(told[0], Item):
            item, fate, _ = told
            assert item.number not in self.answers, "a task is answered once"
            self.answers[item.number] = fate
        else:
            _, item, fate, _, _, _ = told
            self.results.append((item.number, fate))

    def status(self, en, sequence, numbers, arrival_ms):
        self.statuses.append((en, sequence, numbers.tolist()))


def task(number, generated_ms=0.0, deadline_ms=100.0, cycles=180_000.0):
    return Item(number, generated_ms, deadline_ms, 30_000.0, cycles, residual_ms=9000.0)


def en_node(spec="all-offload", scenario=None, runner=None, **rules):
    scenario = scenario or load("campus")
    here, clock, wires = site(scenario), VirtualClock(), Wires()
    links = [Link(here.links, 0, sn, up=True) for sn in range(scenario.sn.count)]
    runner = runner or DispatcherRunner(method(spec), here, 0)
    core = EnCore(here, 0, runner, clock, Emulated(clock), wires, links, EnRules(**rules))
    return core, clock, wires


def sn_node(spec, **rules):
    here, clock, wires = site(load("paper")), VirtualClock(), Wires()
    made = method(spec) if isinstance(spec, str) else spec
    core = FallibleSn(
        here, 0, GuardedUpdaterRunner(made, here), clock, Emulated(clock), wires,
        [Link(here.links, 0, 0, up=False)], SnRules(**rules),
    )  # fmt: skip
    return core, clock, wires


class Moody(Method, Dispatcher):
    """Does what it is told next."""

    def __init__(self):
        self.moods = []

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        mood = self.moods.pop(0) if self.moods else 0
        if isinstance(mood, Exception):
            raise mood
        return np.array([mood])


class Timed(Wires):
    """Keeps when books say that messages are there."""

    def __init__(self):
        super().__init__()
        self.times = []

    def offload(self, sn, item, arrival_ms):
        self.times.append(arrival_ms)

    def acknowledge(self, sn, sequence, arrival_ms):
        self.times.append(arrival_ms)

    def status(self, en, sequence, numbers, arrival_ms):
        super().status(en, sequence, numbers, arrival_ms)
        self.times.append(arrival_ms)

    def answer(self, *told):
        if not isinstance(told[0], Item):
            self.times.append(told[4])
            self.results.append(told)


def timed(core):
    """The core, with such wires."""
    core._transport = wires = Timed()
    return wires


class Rides(Method, Updater):
    """A status on every result; nothing else."""

    carries, rides = 2, True

    def __init__(self, ride=True):
        self._ride, self.seen = ride, []

    def updater(self, site):
        return self

    def decide(self, nodes):
        return np.zeros(len(nodes), bool), np.full(len(nodes), np.inf)

    def ride(self, results):
        self.seen.append(results)
        return np.full(len(results), self._ride)

    def encode(self, states):
        return states.state[:, :2]
