"""R28: of an SN's state a dispatcher knows the d numbers that a status carries, and no more.

Two worlds differ in nothing but the load of others at the SN. What a dispatcher sends there is
taken away on the road, so that no result tells of that load; statuses do, unless they are blanked.
Then nothing that is told differs, and so no decision may.
"""

from dataclasses import replace

import numpy as np
import pytest

from cosmo import METHODS, Dispatcher, Method, SnStates, Updater, load, play
from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.node import NOTHING, RAW, WORK
from cosmo.policy.controller_fields import Fields
from cosmo.policy.learned import Agents, Learned
from cosmo.policy.networks import encoder_shapes, shapes, sn_shapes
from cosmo.policy.next.agents import LearnedNext, NextAgents
from cosmo.policy.next.settings import settings_from
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.policy.outside import from_callable
from cosmo.policy.trained import TRAINED, Trained
from cosmo.workload import episode

SCENARIO = load("shared-sn", ["workload.rate=220", "episode.window_ms=1500", "episode.warmup_ms=0"])
BUSY = load("shared-sn", ["background.rates=[250, 400]", "episode.window_ms=1500",
                          "episode.warmup_ms=0"])  # fmt: skip
PERIOD_MS = 20.0


def _worlds():
    """The same tasks; the SN of one world is quiet, that of the other busy from the start."""
    world, other = episode(SCENARIO, 5, 0), episode(BUSY, 5, 0).background
    columns = {name: getattr(other, name) for name in other.__slots__}
    quiet = {name: column[:0] for name, column in columns.items() if column is not None}
    return [replace(world, background=replace(other, **quiet)), replace(world, background=other)]


class _Blanked(Updater):
    """An updater whose statuses leave by the clock and say nothing, whatever it does itself."""

    def __init__(self, site, inner, blank):
        self._inner, self._blank, self._idle = inner, blank, site.sn.idle_state

    def decide(self, nodes):
        self._inner.decide(nodes)
        return np.ones(len(nodes), bool), np.full(len(nodes), PERIOD_MS)

    def encode(self, states):
        said = self._inner.encode(states)
        if self._blank is None:
            return said
        if self._blank == "zeros":
            return np.zeros_like(said)
        state = np.zeros_like(states.state)
        state[:, :RAW] = self._idle[states.sn]
        return self._inner.encode(SnStates(states.world, states.sn, states.time_ms, state))


class _Kept(Dispatcher):
    """A dispatcher and a note of every decision; what it offloads goes nowhere."""

    def __init__(self, inner, worlds):
        self._inner = inner
        self.observe = inner.observe
        self.decided = [[] for _ in range(worlds)]

    def decide(self, tasks):
        actions = np.asarray(self._inner.decide(tasks))
        for world, *what in zip(tasks.world, tasks.time_ms, actions, strict=True):
            self.decided[world].append(tuple(what))
        return np.where(actions == 0, 0, tasks.reject)


class _Watched(Method):
    def __init__(self, inner, blank):
        self._inner, self._blank, self.carries = inner, blank, inner.carries

    def dispatcher(self, site):
        self.kept = _Kept(self._inner.dispatcher(site), site.worlds)
        return self.kept

    def updater(self, site):
        return _Blanked(site, self._inner.updater(site), self._blank)


def _decided(method, blank):
    """[world] all decisions, (when, what)."""
    watched = _Watched(method, blank)
    play(SCENARIO, watched, _worlds(), numbers=[0, 0])
    return watched.kept.decided


def _some_layers(sizes, seed):
    """Networks of two worlds, the same in both, that nobody has trained; with the seed that is used
    here all of them listen to what they are told.
    """
    random = np.random.default_rng(seed)
    layers = {
        name: random.normal(0.0, 1.0, shape).astype(np.float32) for name, shape in sizes.items()
    }
    return {name: np.stack([layer, layer]) for name, layer in layers.items()}


def _learned(hierarchical=True, semantic=True, seed=11):
    config = load_config()
    numbers = config.encoder.dimensions if semantic else RAW
    intervals = config.sn.intervals_ms
    return Learned(
        Agents(
            encoder=_some_layers(encoder_shapes((8, 8), numbers), seed) if semantic else None,
            en=_some_layers(shapes(10, numbers + 3, hierarchical, 16, 16), seed + 1),
            sn=_some_layers(sn_shapes(2 * numbers + 7, 8, 8, 2 * len(intervals)), seed + 2),
            intervals_ms=intervals,
            hierarchical=hierarchical,
            with_age=False,
        )
    )


def _learned_next(semantic=True):
    rules = replace(settings_from(Fields(load_next_config().model_dump())), semantic=semantic)
    en = _some_layers(value_shapes(8, 8) | chance_shapes(8), 11)
    en["value.w"] *= 0.02  # prices are small beside fates
    sn = {"worth": np.zeros((2, CHANGE_SIZE)), "doubt": np.zeros((2, CHANGE_SIZE, CHANGE_SIZE))}
    return LearnedNext(NextAgents(en, sn, rules))


UNTRAINED = {
    "cosmo": _learned,
    "cosmo-flat": lambda: _learned(hierarchical=False),
    "cosmo-next": _learned_next,
}
OTHERS = {
    "cosmo, raw": lambda: _learned(semantic=False),
    "cosmo-next, raw": lambda: _learned_next(semantic=False),
    # Of the numbers that are seen, 5 is the EN's work and 15 the SN's.
    "outside": lambda: from_callable(lambda seen: np.where(seen[:, 15] > seen[:, 5], 0, 1)),
}
WITH_STATUS = {
    **{
        name: kind
        for name, kind in METHODS.items()
        if not issubclass(kind, Trained) and kind.carries != NOTHING
    },
    **UNTRAINED,
    **OTHERS,
}


def test_every_method_that_learns_is_among_them():
    assert UNTRAINED.keys() == TRAINED.keys()
    assert len(WITH_STATUS) > 12


@pytest.mark.parametrize("blank", ["zeros", "idle"])
@pytest.mark.parametrize("name", WITH_STATUS)
def test_decisions_depend_on_nothing_but_the_numbers_that_were_sent(name, blank):
    quiet, busy = _decided(WITH_STATUS[name](), blank)
    assert len(quiet) > 200
    assert quiet == busy


# With one SN, `jiq` sends tasks there whether it has offered a slot or not.
@pytest.mark.parametrize("name", [name for name in WITH_STATUS if name != "jiq"])
def test_with_the_numbers_they_do_differ(name):
    """Else a blank would blank nothing."""
    quiet, busy = _decided(WITH_STATUS[name](), None)
    assert quiet != busy


class Cheats(Method, Dispatcher):
    """Pays for one number, which says nothing, and hands over the SN's work under the table."""

    carries = 1

    def dispatcher(self, site):
        self._work = np.zeros(site.worlds)
        return self

    def updater(self, site):
        return _Smuggler(self)

    def decide(self, tasks):
        return np.where(self._work[tasks.world] > 1e6, 0, 1)


class _Smuggler(Updater):
    def __init__(self, method):
        self._method = method

    def decide(self, nodes):
        return np.ones(len(nodes), bool), np.full(len(nodes), PERIOD_MS)

    def encode(self, states):
        self._method._work[states.world] = states.state[:, WORK]
        return np.zeros((len(states), 1))


def test_a_method_that_reads_more_than_it_pays_for_is_found_out():
    quiet, busy = _decided(Cheats(), "zeros")
    assert quiet != busy
