"""Stable-Baselines3: its checker, its DQN, and its models as methods."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env

import cosmo.envs
from cosmo import InputError, load, method, simulate
from cosmo.scenario import preset_names

EXAMPLES = Path(__file__).parents[1] / "examples"


def _computes_with_one_thread(monkeypatch, made, scenario):
    """Bits do not depend on the number of CPUs, and the user's setting is left as it was."""
    used, predict = set(), DQN.predict

    def watched(*given, **named):
        used.add(torch.get_num_threads())
        return predict(*given, **named)

    monkeypatch.setattr(DQN, "predict", watched)
    torch.set_num_threads(2)
    simulate(scenario, made, seeds=4)
    assert (used, torch.get_num_threads()) == ({1}, 2)


@pytest.mark.parametrize("scenario", preset_names())
@pytest.mark.parametrize("kind", [cosmo.envs.DispatchEnv, cosmo.envs.UpdateEnv])
def test_sb3_is_content(kind, scenario):
    check_env(kind(scenario=scenario, settings=["episode.window_ms=3000"]))


def test_the_example_runs_on_a_small_budget(tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "sb3_ppo.py"), "16000"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "sb3:ppo.zip,updater=periodic-37: success 0." in done.stdout
    assert (tmp_path / "ppo.zip").exists()
    assert (tmp_path / "curve.png").stat().st_size > 10_000


def test_a_saved_model_is_a_method(tmp_path, monkeypatch):
    env = cosmo.envs.DispatchEnv(settings=["episode.window_ms=3000"])
    model = DQN("MlpPolicy", env, seed=1, learning_starts=100)
    model.learn(300)
    model.save(tmp_path / "dqn.zip")
    scenario = load("paper", ["episode.window_ms=3000"])
    made = method(f"sb3:{tmp_path / 'dqn.zip'},updater=never")
    result = simulate(scenario, made, seeds=4)
    seen, _ = cosmo.envs.DispatchEnv(scenario, updater="never").reset(seed=4)
    action, _ = model.predict(seen, deterministic=True)
    assert result.outcomes[0].action[0] == action
    _computes_with_one_thread(monkeypatch, made, scenario)
    with pytest.raises(InputError, match="no such algorithm"):
        method(f"sb3:{tmp_path / 'dqn.zip'},algorithm=Nothing")
    with pytest.raises(InputError, match="takes 22 numbers, but there are 31 to see here"):
        simulate(load("campus", ["episode.window_ms=500", "episode.warmup_ms=0"]), made)
    (tmp_path / "broken.zip").write_text("no")
    with pytest.raises(InputError, match="is no DQN model"):
        method(f"sb3:{tmp_path / 'broken.zip'}")
