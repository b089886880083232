"""Stable-Baselines3's DQN, out of the box, as the EN.

    pip install '.[envs]' stable-baselines3
    python examples/sb3_dqn.py [steps]

Trains on `cosmo/Dispatch-v0` at 220 tasks/s (Poisson), saves `dqn.zip`, and compares it with the
fixed rule `local-until-full` on workloads that it has not seen, as any study would.
"""

import sys

import gymnasium
from stable_baselines3 import DQN

import cosmo.envs  # registers the environments
from cosmo import load, method, simulate


def main(steps: int = 200_000) -> dict[str, float]:
    """Train, save, compare; returns success rates."""
    env = gymnasium.make("cosmo/Dispatch-v0", rate=220, arrivals="poisson", updater="periodic-37")
    model = DQN("MlpPolicy", env, seed=1_000_000)  # trains on that run's episodes, never on run 0
    model.learn(steps)
    model.save("dqn.zip")

    scenario = load("paper", ["workload.rate=220"])
    found = {}
    for name in ("sb3:dqn.zip,updater=periodic-37", "local-until-full"):
        result = simulate(scenario, method(name), seed=0, episodes=5)
        mean, half = result.metrics["success_rate"]
        found[name.partition(":")[0]] = mean
        print(f"{name}: success {mean:.3f} ± {half:.3f}")
    return found


if __name__ == "__main__":
    assert cosmo.envs
    main(*(int(argument) for argument in sys.argv[1:]))
