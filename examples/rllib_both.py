"""RLlib's PPO as both the EN and the SN: two policies that learn together.

    pip install '.[envs]' 'ray[rllib]' torch onnx onnxscript onnxruntime
    python examples/rllib_both.py [steps] [seed]

Trains on the PettingZoo environment of `shared-sn`, where status carries news, writes `en.onnx` and
`sn.onnx`, and compares the pair, before and after, with methods of ours on unseen workloads.
"""

import sys
from typing import Any

import ray
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
from ray.tune.registry import register_env

from cosmo import load, method, simulate
from cosmo.envs import aec

BATCH, WORLDS = 4000, 16  # decisions between two updates, and the worlds that they come from
# One interval: PPO counts steps, not time, so that a choice of intervals would reward waiting.
INTERVAL_MS, SCALE = 100.0, 800.0
PAIR = "onnx:en.onnx,updater=sn.onnx,intervals_ms=100"
OTHERS = ("onnx:en.onnx,updater=periodic-100", "onnx:en.onnx,updater=never",
          "local-until-full", "aoi-threshold", "aov-gap", "self-tracking")  # fmt: skip


def make_env(options: dict[str, Any]) -> PettingZooEnv:
    """Every agent with its own observations; rewards such that returns are around one."""
    world = aec("shared-sn", rate=120, pad=False, reward_scale=SCALE,
                intervals_ms=[INTERVAL_MS], **options)  # fmt: skip
    return PettingZooEnv(world)


def build(seed: int, **options: Any) -> Algorithm:
    """PPO with one policy a role: `en` for every en_…, `sn` for every sn_…."""
    register_env("cosmo", make_env)
    config = (
        PPOConfig()
        .environment("cosmo", env_config=options)
        # World k trains on run seed + k of these, never on run 0, on which we compare.
        .debugging(seed=1_000_000 + 1000 * seed, log_level="ERROR")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=WORLDS)
        .multi_agent(
            policies=["en", "sn"],  # a list: with a set, even the first weights would vary
            policy_mapping_fn=lambda agent, *_, **__: agent.partition("_")[0],
        )
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64]))
        .training(
            train_batch_size_per_learner=BATCH, minibatch_size=500, num_epochs=8, lr=1e-3,
            gamma=0.9, lambda_=0.95,  # ten decisions ahead: most tasks are final by then
            vf_clip_param=1e6,  # the default would hide most of the value function's error
        )
    )  # fmt: skip
    return config.build_algo()


class Scores(torch.nn.Module):
    """A policy as a plain function: observations in, a score for every action out."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, seen: torch.Tensor) -> torch.Tensor:
        """The best action has the highest score."""
        return self.module.forward_inference({"obs": seen})["action_dist_inputs"]


def export(algorithm: Algorithm) -> None:
    """Write `en.onnx` and `sn.onnx`."""
    for role in ("en", "sn"):
        module = algorithm.get_module(role)
        seen = torch.zeros(2, *module.observation_space.shape)
        rows = {0: torch.export.Dim("rows")}
        torch.onnx.export(
            Scores(module).eval(), (seen,), f"{role}.onnx",
            dynamic_shapes=(rows,), external_data=False, verbose=False,
        )  # fmt: skip


def compare(label: str, name: str) -> None:
    """Five unseen episodes, as any study would."""
    metrics = simulate(load("shared-sn", ["workload.rate=120"]), method(name), episodes=5).metrics
    (success, half), cost = metrics["success_rate"], metrics["update_cost_rate"].mean
    print(f"{label}: success {success:.3f} ± {half:.3f}, update cost {cost:.1f}/s", flush=True)


def main(steps: int = 120_000, seed: int = 0) -> None:
    """Compare, train, compare again."""
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    algorithm = build(seed)
    export(algorithm)
    compare("untrained", PAIR)
    for _ in range(max(1, steps // BATCH)):
        algorithm.train()
    export(algorithm)
    compare("trained", PAIR)
    for name in OTHERS:
        compare(name, name)
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
