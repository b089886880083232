"""The parallel environment: PettingZoo's own test, and the same episode as the AEC's."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from cosmo import InputError
from cosmo.envs import aec, parallel

SHORT = ("episode.window_ms=800", "episode.warmup_ms=0")


@pytest.mark.parametrize("scenario", ["paper", "campus"])
def test_pettingzoo_is_content(scenario):
    parallel_api_test(parallel(scenario=scenario, settings=SHORT), num_cycles=300)


def test_an_episode_is_the_one_of_the_other_environment():
    one, other = aec(scenario="campus", settings=SHORT), parallel(scenario="campus", settings=SHORT)
    one.reset(seed=3)
    _, infos = other.reset(seed=3)
    earned = dict.fromkeys(one.possible_agents, 0.0)
    steps = 0
    while other.agents:
        [acting] = [agent for agent, info in infos.items() if info["acts"]]
        assert acting == one.agent_selection
        np.testing.assert_array_equal(other.state(), one.state())
        assert other.state_space.contains(other.state())
        action = steps % one.action_space(acting).n
        # What the others would do is not looked at.
        actions = {agent: action if agent == acting else 0 for agent in other.agents}
        seen, rewards, _, _, infos = other.step(actions)
        one.step(action)
        for agent, value in rewards.items():
            earned[agent] += value
            assert value == one.rewards[agent]
            np.testing.assert_array_equal(seen[agent], one.observe(agent))
        steps += 1
    assert steps > 100
    assert infos["en_0"]["metrics"]["success_rate"] > 0.0
    assert sum(map(abs, earned.values())) > 0.0


def test_masks_say_who_acts_and_which_sns_are_reached():
    reach = ["backhaul.reach=[[0, 1], [1], [0]]"]
    env = parallel(scenario="campus", settings=[*SHORT, *reach])
    _, infos = env.reset(seed=0)
    seen = set()
    while env.agents:
        [acting] = [agent for agent, info in infos.items() if info["acts"]]
        for agent, info in infos.items():
            if agent != acting:
                assert info["action_mask"].tolist()[:2] == [1, 0]
        if acting.startswith("en"):
            seen.add((acting, tuple(infos[acting]["action_mask"].tolist())))
        *_, infos = env.step(dict.fromkeys(env.agents, 0))
    assert seen == {("en_0", (1, 1, 1, 1)), ("en_1", (1, 1, 0, 1)), ("en_2", (1, 1, 0, 1))}
    env.reset(seed=0)
    with pytest.raises(InputError, match="acts now, and its action is missing"):
        env.step({})
