"""`cosmo-next:objective=`: what counts is chosen at run time."""

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.control import method, play, simulate_runs
from cosmo.workload import episode
from cosmo.world import site_of

OVERLOAD = load("campus", ["workload.rate=240", "episode.window_ms=3000", "episode.warmup_ms=500"])


def test_net_utility_rejects_what_would_rather_fail():
    found = {}
    for objective in ("success", "utility"):
        chosen = method(f"cosmo-next:objective={objective}")
        [run] = simulate_runs(OVERLOAD, chosen, [100], 1)
        found[objective] = run.episodes[0]
    gain = {name: found["utility"][name] - found["success"][name] for name in found["utility"]}
    assert gain["net_utility_per_task"] > 1.0
    assert gain["reject_rate"] > 0.02


def test_both_objectives_differ_in_the_cost_of_a_failure_alone():
    site = site_of(OVERLOAD)
    parameters = [
        method(spec).controller.agents.multi_node.parameters(site)
        for spec in ("cosmo-next", "cosmo-next:objective=success", "cosmo-next:objective=utility")
    ]
    assert parameters[0] == parameters[1]
    differ = np.array(parameters[1]) != np.array(parameters[2])
    assert [name for name, other in zip(parameters[0]._fields, differ, strict=True) if other] == [
        "failure_cost"
    ]


def test_another_objective_is_refused():
    with pytest.raises(InputError, match="objective = 'speed': must be success or utility"):
        method("cosmo-next:objective=speed")


PAIR = ["workload.rate=260", "episode.window_ms=1500", "episode.warmup_ms=0"]


def _actions(scenario, name):
    [played] = play(scenario, method(name), [episode(scenario, 103, 0)])
    return played.action


def test_where_an_en_is_the_only_user_it_takes_all_tasks_that_it_expects_in_time():
    alone = load("paper", PAIR)
    utility = _actions(alone, "cosmo-next:objective=utility")
    success = _actions(alone, "cosmo-next:objective=success")
    assert (utility == _actions(alone, "self-tracking")).all()
    assert (success == _actions(alone, "cosmo-next")).all()
    assert (success == _actions(alone, "adaptive-prices")).all()
    assert (utility != success).any()
    shared = load("shared-sn", PAIR)  # the networks take over
    assert (
        _actions(shared, "cosmo-next:objective=utility") != _actions(shared, "self-tracking")
    ).any()


def test_net_utility_gains_where_one_en_has_one_sn():
    scenario = load("paper", ["workload.rate=220", "workload.arrivals=poisson"])
    found = {}
    for objective in ("success", "utility"):
        [run] = simulate_runs(scenario, method(f"cosmo-next:objective={objective}"), [103], 1)
        found[objective] = run.episodes[0]["net_utility_per_task"]
    assert found["utility"] > found["success"] + 3.0
