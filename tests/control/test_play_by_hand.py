"""The one loop, around worlds that are made up: who is asked what, and who plays compiled."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import Dispatcher, InputError, Method, Updater, load, method
from cosmo.control.fast.forms import rules_of
from cosmo.control.named import as_method
from cosmo.measure import Regret
from cosmo.node import SnStates
from cosmo.workload import episode
from cosmo.world import Watcher, site_of

loop = import_module("cosmo.control.play")  # the package shows the function of the same name
SHORT = load("campus", ["episode.window_ms=30", "episode.warmup_ms=0"])
WORLDS = [episode(SHORT, 0, number) for number in range(3)]
SIZES = [len(world.tasks) for world in WORLDS]


class _PlainError(Exception):
    """It was not played compiled."""


class _Own(Method, Dispatcher):
    """A method that somebody else has written."""

    def dispatcher(self, site):
        return self


def _compiled(monkeypatch, name, large, watchers=(), scenario=SHORT):
    """What `blank_memory` was told if it is played compiled, else None."""
    told = []

    def plain(*_):
        raise _PlainError

    monkeypatch.setattr(loop, "_LARGE", large)
    monkeypatch.setattr(loop, "start", plain)
    monkeypatch.setattr(loop, "blank_memory", lambda *given: told.append(given[-1]))
    monkeypatch.setattr(loop, "play_compiled", lambda *given: [])
    try:
        loop.play(scenario, as_method(name), WORLDS, watchers=watchers)
    except _PlainError:
        return None
    return told[0]


def test_large_worlds_are_played_compiled_and_many_small_ones_of_a_slow_rule(monkeypatch):
    assert len(set(SIZES)) > 1
    most, all_of_them = max(SIZES), sum(SIZES)
    assert loop._LARGE == 20_000
    for name, large, compiled in (
        ("self-tracking", most, True), ("self-tracking", most + 1, False),
        ("cosmo-next", all_of_them, True), ("cosmo-next", all_of_them + 1, False),
        (_Own(), 1, False),
    ):  # fmt: skip
        found = _compiled(monkeypatch, name, large)
        assert found == (most if compiled else None)


def test_only_regret_can_look_on_at_compiled_rules(monkeypatch):
    regret = Regret(SHORT, method("self-tracking"))
    for watchers, compiled in (([], True), ([regret], True), ([regret, Watcher()], False)):
        found = _compiled(monkeypatch, "self-tracking", 1, watchers)
        assert (found is not None) == compiled


def test_what_is_not_our_own_engine_is_not_compiled(monkeypatch):
    other = SHORT.model_copy(update={"engine": "ns3"})
    assert _compiled(monkeypatch, "self-tracking", 1, scenario=other) is None


class _Worlds:
    """So many turns in which nothing is asked."""

    def __init__(self, turns):
        self._turns, self.generated = turns, -1

    def __len__(self):
        return 2

    def advance(self):
        self.generated += 1
        nothing = SimpleNamespace(time_ms=np.zeros(0))
        empty = type("Empty", (), {"__len__": lambda self: 0})()
        return SimpleNamespace(
            over=self.generated == self._turns, feedback=empty, dispatch=empty, update=empty,
            result=empty, nothing=nothing,
        )  # fmt: skip

    def outcome(self, world):
        return world


def test_progress_is_told_every_256_turns(monkeypatch):
    told, streams = [], []
    real = loop.site_of

    def site_of(scenario, given, rate):
        streams.append((given, rate))
        return real(scenario, given, rate=rate)

    monkeypatch.setattr(loop, "site_of", site_of)
    monkeypatch.setattr(loop, "start", lambda *_: _Worlds(600))
    found = loop.play(SHORT, method("all-local"), WORLDS[:2], progress=told.append)
    assert (told, found) == ([256, 512], [0, 1])
    loop.play(SHORT, method("all-local"), WORLDS[:1], 7, [3])
    loop.play(SHORT, method("all-local"), WORLDS[:2], [7, 8])
    assert [given for given, _ in streams] == [[(0, 0), (0, 1)], [(7, 3)], [(7, 0), (8, 1)]]
    # Tasks of an EN, of those of all three.
    assert {rate for _, rate in streams} == {WORLDS[0].rate / 3}


class _Tells(Method, Updater):
    carries = 2

    def __init__(self):
        self.asked = []

    def updater(self, site):
        return self

    def encode(self, states):
        self.asked.append(states.sn.tolist())
        return np.stack([states.sn, 10.0 * states.time_ms], axis=1)


@pytest.mark.parametrize(
    ("send", "asked"),
    [([True, False, True], [[5, 7]]), ([True] * 3, [[5, 6, 7]]), ([False] * 3, [])],
)
def test_numbers_are_made_of_those_that_send(send, asked):
    made, send = _Tells(), np.array(send)
    states = SnStates(np.zeros(3, int), np.array([5, 6, 7]), np.arange(3.0), np.zeros((3, 6)))
    told = loop.encoded(made, made, states, send, 2)
    full = np.array([[5.0, 0.0], [6.0, 10.0], [7.0, 20.0]])
    assert told.tolist() == np.where(send[:, None], full, 0.0).tolist()
    assert made.asked == asked


def test_who_tells_one_en_sends(monkeypatch):
    whom = np.array([[False, True], [False, False]])
    made = _Tells()
    made.decide = lambda nodes: (whom, np.ones(2))
    states = SnStates(np.zeros(2, int), np.array([5, 6]), np.zeros(2), np.zeros((2, 6)))
    nodes = SimpleNamespace(states=states)
    monkeypatch.setattr(loop, "checked_update", lambda method, answer, nodes: answer)
    _, _, told = loop.updated(made, made, nodes)
    assert (made.asked, told.tolist()) == ([[5]], [[5.0, 0.0], [0.0, 0.0]])


def test_what_is_no_method_is_said_in_one_line():
    for wrong in (5, int):
        with pytest.raises(InputError, match="must be a method's name"):
            as_method(wrong)

    class NeedsMore(Method, Dispatcher):
        def __init__(self, more):
            pass

    with pytest.raises(InputError, match="method NeedsMore: cannot be made"):
        as_method(NeedsMore)


def test_a_compiled_form_is_of_both_sides_or_there_is_none():
    here = site_of(SHORT)
    rule, told = method("self-tracking").dispatcher(here), method("periodic").updater(here)
    assert rules_of(SHORT, rule, None, False) is not None
    assert rules_of(SHORT, rule, told, False) is not None
    assert rules_of(SHORT, rule, _Tells(), False) is None
    assert rules_of(SHORT, Dispatcher(), told, False) is None
    assert rules_of(SHORT, Dispatcher(), None, False) is None
