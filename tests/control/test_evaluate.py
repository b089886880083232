"""Every run of a controller is played at its own scenario, on workloads of its own seed."""

import json

import numpy as np
import pytest

from cosmo import InputError, evaluate, load, load_controller
from cosmo.checksums import sealed_arrays, sealed_record
from cosmo.learn.next.config import load_next_config
from cosmo.policy.controller import FORMAT
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.workload import episode
from cosmo.workload.effort import LIMIT

SHORT = ["episode.window_ms=600", "episode.warmup_ms=100"]
CALM, BUSY = (load("paper", [*SHORT, f"workload.rate={rate}"]) for rate in (120, 320))
SEEDS = (3, 5)


@pytest.fixture
def controller(tmp_path):
    """Two runs that were trained at different loads; their networks are all zeros."""
    runs = [
        {"seed": seed, "expects": {"rate": 320.0, "squared_variation": 1.0},
         "scenario": scenario.model_dump(mode="json")}
        for seed, scenario in zip(SEEDS, (CALM, BUSY), strict=True)
    ]  # fmt: skip
    training = load_next_config().model_dump(mode="json")
    told = {
        "format": FORMAT, "version": "1", "method": "cosmo-next", "sns": 1, "runs": runs,
        "training": training,
    }  # fmt: skip
    parts = {
        "en": value_shapes(4, 3) | chance_shapes(5),
        "sn": {"worth": (CHANGE_SIZE,), "doubt": (CHANGE_SIZE, CHANGE_SIZE)},
    }
    arrays = {
        f"{part}/{name}": np.zeros((2, *shape), np.float32)
        for part, layers in parts.items()
        for name, shape in layers.items()
    }
    (tmp_path / "training.json").write_text(json.dumps(sealed_record(told)))
    np.savez(tmp_path / "agents.npz", **sealed_arrays(arrays))
    return load_controller(tmp_path)


def _counts(simulations):
    return [[len(outcome.tasks) for outcome in each.outcomes] for each in simulations]


def _drawn(*scenarios, episodes=2):
    return [
        [len(episode(scenario, seed, number).tasks) for number in range(episodes)]
        for scenario, seed in zip(scenarios, SEEDS, strict=True)
    ]


@pytest.mark.parametrize(
    ("given", "played"),
    [(None, (CALM, BUSY)), (BUSY, (BUSY, BUSY)), ([BUSY, CALM], (BUSY, CALM))],
)
def test_each_run_is_played_at_its_scenario(controller, given, played):
    found = evaluate(controller, scenario=given, episodes=2)
    assert _counts(found) == _drawn(*played)


def test_every_rate_has_every_run(controller):
    found = evaluate(controller, rates=[120, 320], episodes=1)
    calm, busy = _drawn(CALM, CALM, episodes=1), _drawn(BUSY, BUSY, episodes=1)
    assert _counts(found) == calm + busy


def test_scenarios_are_as_many_as_runs_and_differ_in_nothing_but_the_load(controller):
    with pytest.raises(InputError, match=r"^scenario: is a list of 3, the controller has 2 runs$"):
        evaluate(controller, scenario=[CALM] * 3, episodes=1)
    other = load("paper", [*SHORT, "sn.slots=2"])
    with pytest.raises(InputError, match="only where nothing but the load differs"):
        evaluate(controller, scenario=[CALM, other], episodes=1)


def test_a_controller_with_more_to_play_than_is_allowed_is_refused(controller, monkeypatch):
    monkeypatch.setenv(LIMIT, "1")
    with pytest.raises(InputError, match=r"^workload: 6 episodes of about"):  # 3 of each run
        evaluate(controller, episodes=3)
