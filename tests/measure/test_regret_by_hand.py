"""Of how many decisions regret is measured, and which."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load, method
from cosmo.measure import Regret
from cosmo.node import Dispatcher, Updater
from observations import site, tasks


@pytest.mark.parametrize(
    ("preset", "rate", "every"),
    # 500 s are measured, at one EN or three: 20 000 decisions or a few more are asked about.
    [
        *(("paper", 320, 8), ("paper", 59.99, 1), ("paper", 60.01, 2), ("paper", 1, 1)),
        ("campus", 320, 24),
    ],
)
def test_large_worlds_are_asked_about_every_nth_decision(preset, rate, every):
    ways = ["episode.window_ms=1500000", "episode.warmup_ms=1000000", f"workload.rate={rate}"]
    assert Regret(load(preset, ways), method("aov-gap"))._every == every


class _Counting(Dispatcher):
    def would_decide(self, seen):
        return np.array([1])


class _Telling(Updater):
    def encode(self, states):
        return np.zeros((len(states), 4))


def _measured(updater, decisions):
    """Regret of decisions (when generated, action), every second one asked; 1 would be right."""
    scenario = load("paper", ["episode.warmup_ms=100"])
    regret = Regret(scenario, method("aov-gap"))
    regret._every = 2
    regret.begins(site(scenario), _Counting(), updater)
    for time, action in decisions:
        seen = tasks(scenario, generated_ms=time, time_ms=time)
        regret.asked(seen, lambda: SimpleNamespace(sn_state=np.zeros((1, 1, 6))))
        regret.dispatched(seen, np.array([action]))
    return regret._decisions.tolist(), regret._regretted.tolist()


def test_decisions_of_the_warm_up_do_not_count_and_then_every_second_one_does():
    decisions = [(50.0, 0), (99.9, 0), (100.0, 0), (110.0, 0), (120.0, 1), (130.0, 1), (140.0, 0)]
    assert _measured(_Telling(), decisions) == ([3.0], [2.0])
    assert _measured(None, decisions) == ([0.0], [0.0])
