"""The PettingZoo environment: conformance, rewards, and the same world underneath."""

import numpy as np
import pytest
from pettingzoo.test import api_test, seed_test

from cosmo import InputError, load, method, simulate
from cosmo.envs import ORACLE, aec
from cosmo.measure import task_utility
from cosmo.seeds import Purpose, stream
from scenarios import SMALL_WILD

SMALL = ("paper", "campus", "fading-backhaul", "shared-sn")  # of the presets
SHORT = ["episode.window_ms=1200", "episode.warmup_ms=0"]


@pytest.mark.parametrize("scenario", SMALL)
def test_pettingzoo_is_content(scenario, capsys):
    """With warnings as errors, as everywhere in these tests."""
    api_test(aec(scenario, settings=SHORT), num_cycles=400)
    seed_test(lambda: aec(scenario, settings=SHORT), num_cycles=150)


def _play(env, seed, choose):
    """Random play by agent_iter; rewards as agents receive them, turn by turn."""
    env.reset(seed=seed)
    earned = dict.fromkeys(env.possible_agents, 0.0)
    turns = dict.fromkeys(env.possible_agents, 0)
    final = {agent: [] for agent in env.possible_agents}
    for agent in env.agent_iter():
        seen, reward, terminated, truncated, info = env.last()
        earned[agent] += reward
        final[agent] += info["final"]
        if terminated or truncated:
            env.step(None)
            continue
        assert env.observation_space(agent).contains(seen)
        assert info["elapsed_ms"] >= 0
        turns[agent] += 1
        env.step(choose(agent, info))
    return earned, turns, final


@pytest.mark.parametrize("scenario", ["paper", "campus", "wild"])
def test_rewards_add_up_to_the_episodes_utility(scenario):
    """Also where SNs fail: the reward of a lost task comes at its deadline, once."""
    few = SMALL_WILD if scenario == "wild" else ["workload.rate=250"]
    env = aec(scenario, settings=[*SHORT, *few])
    random = np.random.default_rng(0)
    earned, turns, final = _play(
        env, 3, lambda agent, info: int(random.integers(env.action_space(agent).n))
    )
    outcome = env.worlds.outcome(0)
    total = float(task_utility(env.scenario, outcome).sum())
    ens = [agent for agent in earned if agent.startswith("en")]
    sns = [agent for agent in earned if agent.startswith("sn")]
    assert sum(earned[agent] for agent in ens) == pytest.approx(total, rel=1e-9)
    price = 4.0 * 0.5 * 4  # λ_s · c_s · four numbers, and a message for each EN
    paid = sum(total - earned[agent] for agent in sns)
    assert paid == pytest.approx(price * outcome.updates, rel=1e-9)
    assert sum(turns[agent] for agent in ens) == np.isfinite(outcome.decided_ms).sum()
    assert outcome.lost.any() == (scenario == "wild")
    for agent in ens:  # an EN hears of its own tasks, each once
        tasks = [told["task"] for told in final[agent]]
        assert len(tasks) == len(set(tasks)) == turns[agent]
        number = int(agent.removeprefix("en_"))
        assert {int(outcome.tasks.en[task]) for task in tasks} <= {number}


def test_random_play_is_that_of_simulate():
    """The same draws through the environment and through `simulate --method random`."""
    scenario = load("paper", [*SHORT, "workload.rate=280"])
    env = aec(scenario, dimensions=0)
    draws = stream(5, Purpose.DISPATCHER, 0).random(4096)
    _play(env, 5, lambda agent, info: int(draws[info["task"]] * 3))
    [expected] = simulate(scenario, method("random"), seeds=5).outcomes
    found = env.worlds.outcome(0)
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_array_equal(found.outcome, expected.outcome)
    np.testing.assert_array_equal(found.finished_ms, expected.finished_ms)


def test_without_padding_every_agent_has_its_own_space(capsys):
    env = aec("paper", settings=SHORT, pad=False)
    for agent, names in env.observation_names.items():
        assert env.observation_space(agent).shape == (len(names),)
    assert env.observation_space("en_0").shape > env.observation_space("sn_0").shape
    # PettingZoo remarks on it, which is why padding is the default; it has no other complaint.
    with pytest.warns(UserWarning, match="different (observation space sizes|shapes)"):
        api_test(env, num_cycles=200)
    padded = aec("paper", settings=SHORT)
    padded.reset(seed=2)
    env.reset(seed=2)
    for agent in padded.agent_iter(100):
        seen, own = padded.last()[0], env.last()[0]
        np.testing.assert_array_equal(seen[: len(own)], own)
        assert not seen[len(own) :].any()
        padded.step(1)
        env.step(1)
        assert env.agent_selection == padded.agent_selection, agent


def test_rewards_are_scaled():
    plain, scaled = aec(settings=SHORT), aec(settings=SHORT, reward_scale=80.0)
    one, _, _ = _play(plain, 1, lambda agent, info: 1)
    other, _, _ = _play(scaled, 1, lambda agent, info: 1)
    for agent, earned in one.items():
        assert earned != 0
        assert other[agent] * 80.0 == pytest.approx(earned)
    with pytest.raises(InputError, match="reward_scale = 0: must be greater than 0"):
        aec(reward_scale=0)


def test_infos_carry_the_oracle_under_a_clear_name():
    env = aec(settings=SHORT)
    env.reset(seed=0)
    while not env.agent_selection.startswith("en"):
        env.step(0)
    *_, info = env.last()
    oracle = info[ORACLE]
    assert oracle["feasible"].shape == oracle["delay_ms"].shape == (2,)
    assert "for_training_only" in ORACLE


def test_max_cycles_truncates():
    env = aec(settings=SHORT, max_cycles=7)
    env.reset(seed=1)
    turns = 0
    for agent in env.agent_iter():
        *_, terminated, truncated, _ = env.last()
        assert not terminated
        turns += not truncated
        env.step(None if truncated else env.action_space(agent).sample())
    assert turns == 7
    assert env.agents == []


def test_further_resets_are_further_episodes():
    env = aec(settings=SHORT)
    counts = []
    for seed in (4, None, None, 4):
        env.reset(seed=seed)
        counts.append(len(env.worlds.episodes[0].tasks))
    assert counts[0] == counts[3]
    assert len(set(counts[:3])) > 1


def test_a_wrong_action_is_one_line():
    env = aec(settings=SHORT)
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"action = 99: must be in Discrete\(18\)"):
        env.step(99)
    with pytest.raises(InputError, match="did you mean"):
        aec(settings=["workload.rte=3"])
    with pytest.raises(
        InputError, match="aec carries 2 numbers, but an EN here goes by the SN's raw"
    ):
        aec(dimensions=2)


def test_before_a_reset_one_line_says_so():
    env = aec(settings=SHORT)
    for attempt in (lambda: env.step(0), env.last, lambda: env.observe("en_0"), env.state):
        with pytest.raises(InputError, match=r"is there after reset\(\), which was not called yet"):
            attempt()
    assert not hasattr(env, "rewards")
    env.reset(seed=0)
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        env.nothing  # noqa: B018


@pytest.mark.parametrize("seed", [-1, 1.5, "a", np.nan])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match=r"^seed = .*: must be a whole number, 0 or greater"):
        aec(settings=SHORT).reset(seed=seed)
