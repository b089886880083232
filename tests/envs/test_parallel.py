"""The parallel environment: PettingZoo's own test, and the same episode as the AEC's."""

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test

from cosmo import InputError
from cosmo.envs import ORACLE, aec, parallel

SHORT = ("episode.window_ms=800", "episode.warmup_ms=0")


@pytest.mark.parametrize("scenario", ["paper", "campus"])
def test_pettingzoo_is_content(scenario):
    parallel_api_test(parallel(scenario=scenario, settings=SHORT), num_cycles=300)


def test_the_scenario_may_come_by_its_place():
    assert parallel("campus", 90.0, settings=SHORT).scenario.workload.rate == 90.0
    assert parallel("campus", settings=SHORT).scenario.en.count == 3


def _deciding(infos):
    return [agent for agent, info in infos.items() if info["acts"]]


@pytest.mark.parametrize(
    ("scenario", "kinds"), [("campus", {"sn"}), ("wild", {"sn"}), ("shared-sn", set())]
)
def test_an_episode_is_the_one_of_the_other_environment(scenario, kinds):
    """Decisions of one instant are taken together, and are those that the AEC takes in turn."""
    one, other = (make(scenario=scenario, settings=SHORT) for make in (aec, parallel))
    one.reset(seed=3)
    seen, infos = other.reset(seed=3)
    steps, decisions, together = 0, 0, set()
    while other.agents:
        deciding = _deciding(infos)
        actions = {
            agent: (steps if agent in deciding else 0) % other.action_space(agent).n
            for agent in other.agents
        }
        assert other.state_space.contains(other.state())
        expected, asked = dict.fromkeys(one.possible_agents, 0.0), {}
        for _ in deciding:
            agent = one.agent_selection
            np.testing.assert_array_equal(seen[agent], one.observe(agent))
            for name in ("time_ms", "elapsed_ms", "task"):
                assert infos[agent].get(name) == one.infos[agent].get(name)
            asked[agent] = infos[agent]["time_ms"]
            one.step(actions[agent])
            for each, value in one.rewards.items():
                expected[each] += value
        assert set(asked) == set(deciding)
        assert len({*asked.values()}) == 1
        if len(deciding) > 1:
            together |= {agent.partition("_")[0] for agent in deciding}
        seen, rewards, _, _, infos = other.step(actions)
        assert rewards == expected
        assert sum(info["time_ms"] for info in infos.values() if info["acts"]) >= 0.0
        steps, decisions = steps + 1, decisions + len(deciding)
    assert all(one.terminations.values())
    assert decisions > 100
    assert kinds <= together
    assert (decisions > steps) == bool(together)
    assert infos["en_0"]["metrics"]["success_rate"] == one.infos["en_0"]["metrics"]["success_rate"]


def _trace(folder, ens):
    """Equal tasks of equal UEs at 20 ms, one for each EN in the list."""
    rows = [f"20.0,0,20000,400000,100,{en}" for en in ens]
    file = folder / "tasks.csv"
    file.write_text("\n".join(["time_ms,ue,input_bytes,cycles,deadline_ms,en", *rows]) + "\n")
    return [*SHORT, f"workload.trace={file}"]


def test_ens_whose_tasks_arrive_at_one_time_decide_together(tmp_path):
    env = parallel(scenario="campus", settings=_trace(tmp_path, [0, 1, 2]))
    _, infos = env.reset(seed=0)
    while not infos["en_0"]["acts"]:
        *_, infos = env.step(dict.fromkeys(env.agents, 17))  # SNs keep silent for 200 ms
    assert _deciding(infos) == ["en_0", "en_1", "en_2"]
    assert infos["en_2"]["task"] == 2
    assert infos["en_2"][ORACLE]["feasible"][0]
    bad = {**dict.fromkeys(env.agents, 0), "en_2": 4}
    with pytest.raises(InputError, match=r"actions: en_2 = 4: must be in Discrete\(4\)"):
        env.step(bad)
    _, rewards, _, _, infos = env.step(bad | {"en_0": 3, "en_1": 3, "en_2": 3})
    # A rejection is final at once. What is told includes what the others did at that instant.
    assert [told["task"] for told in infos["sn_0"]["final"]] == [0, 1, 2]
    assert [told["task"] for told in infos["en_0"]["final"]] == [0]
    assert [told["task"] for told in infos["en_2"]["final"]] == [2]
    assert rewards["sn_1"] == pytest.approx(sum(rewards[f"en_{en}"] for en in range(3)))


def test_two_decisions_of_one_agent_are_two_steps(tmp_path):
    env = parallel(scenario="campus", settings=_trace(tmp_path, [0, 0, 1]))
    _, infos = env.reset(seed=0)
    decided = []
    while env.agents:
        decided += [[a for a in _deciding(infos) if a.startswith("en")]]
        *_, infos = env.step({agent: 0 if agent.startswith("en") else 17 for agent in env.agents})
    assert sorted(agent for step in decided for agent in step) == ["en_0", "en_0", "en_1"]
    assert all(step.count("en_0") <= 1 for step in decided)


def test_a_truncated_episode_has_no_more_decisions_than_were_allowed():
    env = parallel(scenario="campus", settings=SHORT, max_cycles=3)
    _, infos = env.reset(seed=0)
    decisions = 0
    while env.agents:
        decisions += len(_deciding(infos))
        _, _, _, truncated, infos = env.step(dict.fromkeys(env.agents, 0))
    assert all(truncated.values())
    assert decisions == 3


def test_masks_say_who_acts_and_which_sns_are_reached():
    reach = ["backhaul.reach=[[0, 1], [1], [0]]"]
    env = parallel(scenario="campus", settings=[*SHORT, *reach])
    _, infos = env.reset(seed=0)
    seen = set()
    while env.agents:
        for agent, info in infos.items():
            if not info["acts"]:
                assert info["action_mask"].tolist()[:2] == [1, 0]
            elif agent.startswith("en"):
                seen.add((agent, tuple(info["action_mask"].tolist())))
        *_, infos = env.step(dict.fromkeys(env.agents, 0))
    assert seen == {("en_0", (1, 1, 1, 1)), ("en_1", (1, 1, 0, 1)), ("en_2", (1, 1, 0, 1))}
    env.reset(seed=0)
    with pytest.raises(InputError, match="acts now, and its action is missing"):
        env.step({})


def test_actions_that_are_none_are_refused():
    env = parallel(settings=SHORT)
    with pytest.raises(InputError, match=r"is there after reset\(\)"):
        env.step({})
    env.reset(seed=0)
    for odd in (None, [0], 5, "sn_0"):
        with pytest.raises(InputError, match=r"^actions = .*: must have an action for each agent"):
            env.step(odd)
