"""Formulas of training with numbers that can be checked on paper: a sign is a sign."""

import math

import numpy as np
import pytest

from cosmo import load
from cosmo.learn import turn
from cosmo.learn.next import fit
from cosmo.learn.next.config import load_next_config
from cosmo.learn.next.experience import Chances, Experience, MakeDispatcher, seats_of
from cosmo.learn.next.returns import earned_by
from cosmo.policy.described import Fields
from cosmo.policy.next import values
from cosmo.policy.next.rules import rules_from
from cosmo.workload import episode


def _nothing(runs=1):
    shapes = values.value_shapes(3, 2) | values.chance_shapes(2)
    return {name: np.zeros((runs, *shape), np.float32) for name, shape in shapes.items()}


def test_a_success_earns_one_a_failure_costs_and_a_rejection_is_free():
    succeeded, failed = np.array([True, False, False]), np.array([False, True, False])
    assert earned_by(succeeded, failed, 2.5).tolist() == [1.0, -2.5, 0.0]


@pytest.mark.parametrize("logit", [-1.5, 0.0, 2.0])
def test_the_loss_of_values_and_chances(logit):
    p = _nothing()
    p["chance.b"][:] = logit
    p["value.b"][:] = 0.5
    batch = {
        "local": np.zeros((1, 2, values.LOCAL), np.float32),
        "remote": np.zeros((1, 2, 1, values.REMOTE), np.float32),
        "load": np.zeros((1, 2, 5), np.float32),
        "chance": np.zeros((1, 2, 1, values.CHANCE), np.float32),
        "target": np.array([[1.5, -1.5]], np.float32),
        "feasible": np.array([[[1.0], [0.0]]], np.float32),
    }
    likely = 1.0 / (1.0 + math.exp(-logit))
    entropy = -0.5 * (math.log(likely) + math.log(1.0 - likely))
    assert float(fit.loss(p, batch)) == pytest.approx(0.5 * (1.0 + 4.0) / 2 + entropy, rel=1e-5)
    sure = batch | {"feasible": np.ones((1, 2, 1), np.float32)}
    expected = 0.5 * (1.0 + 4.0) / 2 - math.log(likely)
    assert float(fit.loss(p, sure)) == pytest.approx(expected, rel=1e-5)


def test_what_has_passed_of_a_deadline_and_what_is_left_are_the_deadline():
    scenario = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])
    rules = rules_from(Fields(load_next_config().model_dump()))
    act = MakeDispatcher(_nothing(), seats_of(1, 2), rules, values.weighed)
    random = [np.random.default_rng(seed) for seed in range(2)]
    chances = Chances(random, 0.3, np.array([0.2, 0.8]), 50.0)
    worlds = [episode(scenario, 3, number) for number in range(2)]
    played = Experience(scenario, worlds, act, rules, chances)
    played.play()
    rows = played.decisions()
    places = list(zip(rows["world"], rows["task"], strict=True))
    deadline = np.array([worlds[world].tasks.deadline_ms[task] for world, task in places])
    born = np.array([worlds[world].tasks.time_ms[task] for world, task in places])
    assert len(deadline) > 50
    np.testing.assert_allclose(rows["elapsed"], rows["time"] - born)
    assert (rows["elapsed"] > 0).all()  # the access channel takes its time
    np.testing.assert_allclose(rows["task/slack"] + rows["elapsed"], deadline, rtol=1e-5)


class _Scales:
    age_ms, most_age = 200.0, 10.0


def test_an_age_is_in_its_scale_and_cut_off(monkeypatch):
    monkeypatch.setattr(turn, "since", turn.since.py_func)
    age = turn._age.py_func
    assert age(_Scales, 700.0, 100.0) == 3.0
    assert age(_Scales, 9000.0, 100.0) == 10.0


def test_exploration_falls_to_its_end_and_stays_there():
    def decided(steps, draw):
        chance = turn.Chance(np.array([steps]), 1.0, 0.1, 100, np.array([[draw]]), np.array([[7]]))
        return turn._decided.py_func(chance, 0, 0, 3), int(chance.steps[0])

    assert decided(0, 0.99) == (7, 1)  # ε = 1
    assert decided(50, 0.54) == (7, 51)  # 0.55
    assert decided(50, 0.56) == (3, 51)
    assert decided(100, 0.09) == (7, 101)  # 0.1
    for steps in (100, 150, 10_000):
        assert decided(steps, 0.11) == (3, steps + 1)
        assert decided(steps, 0.09) == (7, steps + 1)
