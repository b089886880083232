"""Policies from elsewhere on both sides: they play as they were trained."""

import json
import sys
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError, load, method, simulate
from cosmo.envs import aec, from_callable
from observations import site, tasks

SHORT = ["episode.window_ms=1200", "episode.warmup_ms=0"]


def _en(seen):
    """Local while the wait is short, else offload if the SN seemed free, else reject."""
    return np.where(seen[:, 11] < 0.3, 0, np.where(seen[:, 15] < 0.4, 1, 2))


def _sn(seen, choices=9):
    """Send when there is more work than the EN knows of; ask again sooner the more there is."""
    send = seen[:, 2] > seen[:, 9]
    return np.where(send, 0, choices) + np.minimum(choices - 1, (seen[:, 2] * 4).astype(int))


@pytest.mark.parametrize("scenario", ["paper", "shared-sn"])
def test_both_sides_as_methods_play_as_in_the_environment(scenario):
    world = load(scenario, [*SHORT, "workload.rate=250"])
    env = aec(world, pad=False)
    env.reset(seed=6)
    for agent in env.agent_iter():
        seen, _, terminated, *_ = env.last()
        policy = _en if agent.startswith("en") else _sn
        env.step(None if terminated else int(policy(seen[None])[0]))
    found = env.worlds.outcome(0)
    [expected] = simulate(world, from_callable(_en, updater=_sn), seeds=6).outcomes
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_array_equal(found.finished_ms, expected.finished_ms)
    assert found.updates == expected.updates > 0
    assert found.update_decisions == expected.update_decisions > found.updates


def test_an_sn_policy_may_have_its_own_intervals():
    world = load("paper", SHORT)
    often = from_callable(_en, updater=lambda seen: np.zeros(len(seen), int), intervals_ms=[10.0])
    [found] = simulate(world, often).outcomes
    assert found.updates == 121  # R21: at both ends
    for wrong in ([], [0.0], [float("nan")]):
        with pytest.raises(InputError, match=r"intervals_ms = .*: must be finite and greater"):
            from_callable(_en, intervals_ms=wrong)


@pytest.mark.parametrize(
    ("actions", "line"),
    [
        (18, r"updater: action = 18: must be from 0 to 17 \(send or not × 9 intervals\)"),
        (-1, "updater: action = -1"),
        (0.5, "updater: actions are float64, must be whole numbers"),
    ],
)
def test_an_sn_policys_mistake_is_one_line(actions, line):
    wrong = from_callable(_en, updater=lambda seen: np.full(len(seen), actions))
    with pytest.raises(InputError, match=line):
        simulate(load("paper", SHORT), wrong)


@pytest.mark.parametrize(
    ("answer", "actions"),
    [([[0.2, 0.1, 0.0], [0.3, 0.4, 0.0]], [0, 1]), ([[1], [0]], [1, 0]), ([2, 0], [2, 0])],
    ids=["scores", "a column", "a row"],
)
def test_an_onnx_model_answers_with_scores_or_with_actions(answer, actions, monkeypatch, tmp_path):
    class Session:
        def __init__(self, _file, _options, providers):
            assert providers == ["CPUExecutionProvider"]

        def get_inputs(self):
            return [SimpleNamespace(name="seen", shape=["batch", "numbers"])]

        def run(self, _outputs, _given):
            return [np.array(answer)]

    fake = SimpleNamespace(InferenceSession=Session, SessionOptions=SimpleNamespace)
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    (tmp_path / "model.onnx").touch()
    paper = load("paper")
    dispatcher = method(f"onnx:{tmp_path / 'model.onnx'}").dispatcher(site(paper))
    assert dispatcher.decide(tasks(paper, count=2)).tolist() == actions


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"gae_lambda": 0.95, "clip_range": {":type:": "f"}, "n_epochs": 10}, "PPO"),
        ({"gae_lambda": 1.0, "normalize_advantage": False}, "A2C"),
        ({"exploration_fraction": 0.1, "target_update_interval": 10000}, "DQN"),
        ([], "DQN"),
    ],
)
def test_a_model_of_sb3_says_by_its_settings_what_it_is(tmp_path, settings, kind):
    from cosmo.policy.outside import sb3_algorithm

    with zipfile.ZipFile(tmp_path / "model.zip", "w") as file:
        file.writestr("data", json.dumps(settings))
    assert sb3_algorithm(tmp_path / "model.zip") == kind
    (tmp_path / "broken.zip").write_bytes(b"PK nothing")
    assert sb3_algorithm(tmp_path / "broken.zip") == "DQN"
