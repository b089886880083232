"""Stable-Baselines3 on the vector environments."""

import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import VecMonitor

import cosmo.envs
from cosmo import load, method, simulate
from cosmo.envs.sb3 import vec_env

SHORT = ["episode.window_ms=1200", "episode.warmup_ms=0"]


def test_worlds_are_those_of_the_single_environment():
    many = vec_env("cosmo/Dispatch-v0", 2, rate=200, settings=SHORT)
    many.seed(7)
    seen = many.reset()
    singles = [cosmo.envs.DispatchEnv(rate=200, settings=SHORT) for _ in range(2)]
    for world, single in enumerate(singles):
        np.testing.assert_array_equal(seen[world], single.reset(seed=7 + world)[0])
    total, ended = np.zeros(2), set()
    while len(ended) < 2:
        seen, reward, over, infos = many.step(np.array([1, 1]))
        for world in {0, 1} - ended:
            told, earned, single_over, _, info = singles[world].step(1)
            total[world] += earned
            assert reward[world] == pytest.approx(earned, abs=1e-6)
            assert over[world] == single_over
            if over[world]:
                ended.add(world)
                np.testing.assert_array_equal(infos[world]["terminal_observation"], told)
                assert infos[world]["episode"]["r"] == pytest.approx(total[world])
                assert infos[world]["metrics"]["success_rate"] == info["metrics"]["success_rate"]
            else:
                np.testing.assert_array_equal(seen[world], told)
    assert many.env_is_wrapped(VecMonitor) == [False, False]
    assert many.get_attr("num_envs") == [2, 2]


@pytest.mark.parametrize("name", ["cosmo/Dispatch-v0", "cosmo/Update-v0"])
def test_ppo_learns_on_many_worlds(name):
    model = PPO("MlpPolicy", vec_env(name, 4, settings=SHORT), n_steps=64, batch_size=64)
    model.learn(600)
    assert model.num_timesteps >= 600


def test_dqn_on_many_worlds_is_a_method(tmp_path):
    env = vec_env("cosmo/Dispatch-v0", 4, settings=SHORT, updater="never")
    DQN("MlpPolicy", env, learning_starts=50).learn(400).save(tmp_path / "dqn.zip")
    made = method(f"sb3:{tmp_path / 'dqn.zip'},updater=never")
    assert 0.0 <= simulate(load("paper", SHORT), made).episodes[0]["success_rate"] <= 1.0
