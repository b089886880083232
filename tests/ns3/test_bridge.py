"""Environments of Gymnasium and PettingZoo on ns-3."""

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import api_test, seed_test

from cosmo import load, method, simulate
from cosmo.envs import DispatchVectorEnv, aec
from cosmo.policy.draws import DrawPerTask
from cosmo.world import site_of
from cosmo.world.layout import own_numbers

SHORT = ["episode.window_ms=600", "episode.warmup_ms=0"]


@pytest.mark.parametrize("name", ["cosmo/Dispatch-v0", "cosmo/Update-v0"])
def test_gymnasium_is_content(name):
    check_env(gymnasium.make(name, settings=SHORT, engine="ns3").unwrapped, skip_render_check=True)


def test_pettingzoo_is_content(capsys):
    api_test(aec("paper", settings=SHORT, engine="ns3"), num_cycles=100)
    seed_test(lambda: aec("paper", settings=SHORT, engine="ns3"), num_cycles=40)


def test_random_play_is_that_of_simulate():
    env = aec("campus", rate=100, settings=SHORT, engine="ns3", dimensions=0)
    env.reset(seed=6)
    draws = DrawPerTask(site_of(load("campus"), [(6, 0)])).at_least(1024)[0, :, :, 0]
    cell = env.worlds.episodes[0].tasks.en
    own = own_numbers(cell, 3)  # ENs count their own tasks (R41)
    for agent in env.agent_iter():
        *_, terminated, truncated, info = env.last()
        done = terminated or truncated
        task = info.get("task")
        draw = 0.0 if done else draws[cell[task], own[task]]
        env.step(None if done else int(draw * env.action_space(agent).n))
    scenario = load("campus", [*SHORT, "engine=ns3", "workload.rate=100"])
    [outcome] = simulate(scenario, method("random"), seeds=6).outcomes
    np.testing.assert_array_equal(env.worlds.outcome(0).finished_ms, outcome.finished_ms)
    np.testing.assert_array_equal(env.worlds.outcome(0).outcome, outcome.outcome)


def test_vectors_restart_inside_the_batch():
    env = DispatchVectorEnv(2, settings=SHORT, engine="ns3", rate=100)
    env.reset(seed=[1, 2])
    over = np.zeros(2, int)
    for _ in range(180):
        *_, ended, _, _ = env.step(np.ones(2, int))
        over += ended
    assert (over >= 2).all()
