"""Stable-Baselines3's PPO as the EN, on many worlds at once, with its learning curve.

    pip install '.[envs]' stable-baselines3
    python examples/sb3_ppo.py [decisions]

Trains on `cosmo/Dispatch-v0` at 220 tasks/s (Poisson), draws `curve.png`, saves `ppo.zip`, and
compares it with a fixed rule on workloads that it has not seen, as any study would.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from cosmo import load, method, simulate
from cosmo.envs.sb3 import vec_env

WORLDS, UPDATER = 32, "periodic-37"
SHORT = ["episode.window_ms=2000", "episode.warmup_ms=500"]  # the first episodes end after seconds
MINE, RIVAL = f"sb3:ppo.zip,updater={UPDATER}", "local-until-full"


class Curve(BaseCallback):
    """The success rate of every episode that ends while the model learns."""

    def __init__(self) -> None:
        super().__init__()
        self.decisions: list[int] = []
        self.success: list[float] = []

    def _on_step(self) -> bool:
        for info in self.locals["infos"]:
            if "metrics" in info:
                self.decisions.append(self.num_timesteps)
                self.success.append(info["metrics"]["success_rate"])
        return True

    def draw(self, file: str, rival: float) -> None:
        """A moving mean over as many episodes as there are worlds, and a line for the rival."""
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        if width := min(WORLDS, len(self.success)):  # a tiny budget ends before any episode does
            mean = np.convolve(self.success, np.ones(width) / width, "valid")
            axes.plot(self.decisions, self.success, ".", color="0.8", label="episodes")
            axes.plot(self.decisions[width - 1 :], mean, label=f"PPO, mean of {width} episodes")
        axes.axhline(rival, color="black", linestyle="--", label=RIVAL)
        axes.set(xlabel="decisions", ylabel="success rate", ylim=(0.0, 1.0))
        axes.legend(loc="lower right")
        figure.savefig(file, dpi=120)


def main(decisions: int = 200_000) -> dict[str, float]:
    """Train, save, compare, draw; returns success rates on unseen workloads."""
    torch.set_num_threads(1)  # small networks: threads cost more than they bring
    env = vec_env("cosmo/Dispatch-v0", WORLDS, rate=220, updater=UPDATER, settings=SHORT)
    # Trains on the episodes of runs 1 000 000 and on, never on run 0.
    model = PPO("MlpPolicy", env, n_steps=128, batch_size=512, gamma=0.97, seed=1_000_000)
    curve = Curve()
    model.learn(decisions, callback=curve)
    model.save("ppo.zip")

    scenario = load("paper", ["workload.rate=220"])
    found = {}
    for name in (MINE, RIVAL):
        mean, half = simulate(scenario, method(name), episodes=5).metrics["success_rate"]
        found[name.partition(":")[0]] = mean
        print(f"{name}: success {mean:.3f} ± {half:.3f}")
    curve.draw("curve.png", found[RIVAL])
    return found


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
