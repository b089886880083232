"""RLlib: both roles learn together, and what they have learned comes back as a method."""

import sys
from pathlib import Path

import numpy as np
import pytest

from cosmo import InputError, load, method, simulate
from cosmo.envs import from_callable
from cosmo.measure import task_utility

EXAMPLES = Path(__file__).parents[1] / "examples"
SHORT = ["episode.window_ms=2000", "episode.warmup_ms=0"]
# Raised by RLlib and torch in code of their own; ours stays strict.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore::{kind}:{module}")
    for kind in ("DeprecationWarning", "FutureWarning", "UserWarning")
    for module in ("ray", "torch", "copyreg")
]


@pytest.fixture(scope="module")
def rllib_both():
    sys.path.insert(0, str(EXAMPLES))
    import ray
    import rllib_both

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield rllib_both
    ray.shutdown()
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def algorithm(rllib_both):
    rllib_both.BATCH, rllib_both.WORLDS = 1000, 2
    made = rllib_both.build(0, settings=SHORT)
    yield made
    made.stop()


def _weights(algorithm, role):
    return [value.detach().clone().numpy() for value in algorithm.get_module(role).parameters()]


def _greedy(algorithm, role):
    import torch

    module = algorithm.get_module(role)

    def policy(seen):
        with torch.no_grad():
            scores = module.forward_inference({"obs": torch.from_numpy(seen)})
        return scores["action_dist_inputs"].numpy().argmax(axis=1)

    return policy


def test_an_agent_is_given_the_rewards_of_its_own_turns_and_all_of_them(rllib_both, algorithm):
    runner = algorithm.env_runner
    episode = runner.sample(num_episodes=1, random_actions=True)[0]
    assert episode.is_done
    worlds = [env.unwrapped.env for env in runner.env.envs]
    world = next(world for world in worlds if not world.agents)  # the one that is over
    outcome = world.worlds.outcome(0)
    utility = float(task_utility(world.scenario, outcome).sum())
    turns = {agent: len(episode.agent_episodes[agent]) for agent in ("en_0", "sn_0")}
    assert turns == {"en_0": len(outcome.tasks), "sn_0": outcome.update_decisions}
    earned = {
        agent: rllib_both.SCALE * episode.agent_episodes[agent].get_return() for agent in turns
    }
    assert earned["en_0"] == pytest.approx(utility, rel=1e-6)
    assert earned["sn_0"] == pytest.approx(utility - 8.0 * outcome.updates, rel=1e-6)
    assert outcome.updates > 0


def test_both_policies_learn(algorithm):
    before = {role: _weights(algorithm, role) for role in ("en", "sn")}
    result = algorithm.train()
    for role, old in before.items():
        new = _weights(algorithm, role)
        assert all((a != b).any() for a, b in zip(old, new, strict=True)), role
        assert all(np.isfinite(value).all() for value in new), role
        assert np.isfinite(result["learners"][role]["policy_loss"]), role


def test_training_keeps_off_the_runs_that_we_compare_on(algorithm):
    seeds = [env.unwrapped.env._seed for env in algorithm.env_runner.env.envs]
    assert seeds == [1_000_000, 1_000_001]


def test_what_was_learned_plays_as_a_method(rllib_both, algorithm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rllib_both.export(algorithm)
    scenario = load("shared-sn", [*SHORT, "workload.rate=120"])
    [found] = simulate(scenario, method(rllib_both.PAIR), seeds=4).outcomes
    pair = from_callable(
        _greedy(algorithm, "en"), updater=_greedy(algorithm, "sn"), intervals_ms=[100.0]
    )
    [expected] = simulate(scenario, pair, seeds=4).outcomes
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_array_equal(found.finished_ms, expected.finished_ms)
    assert (found.updates, found.update_decisions) == (expected.updates, expected.update_decisions)
    assert found.update_decisions > 1
    with pytest.raises(InputError, match=r"there is no file 'other.onnx'"):
        method("onnx:en.onnx,updater=other.onnx")
    with pytest.raises(InputError, match="takes 15 numbers, but there are 22 to see"):
        simulate(scenario, method("onnx:sn.onnx"), seeds=4)
