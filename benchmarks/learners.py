"""Stable-Baselines3's DQN and PPO, out of the box, on one world and on many at once.

    python benchmarks/learners.py [--small] [--decisions 100000]

Needs stable-baselines3 (`make test-integrations` installs it beside torch). Each learns from the
same number of decisions at 220 tasks/s, Poisson, and is then played greedily on five episodes that
it has not seen; once for each of several seeds, so that the spread between trainings is seen. CPU
time is said beside wall time: a busy machine does not change it much. The table is Markdown.
"""

import argparse
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import gymnasium

import cosmo.envs
from cosmo import load, method, simulate
from measured import SMALL, sized

_OPTIONS = argparse.ArgumentParser()
_OPTIONS.add_argument("--small", action="store_true")
_OPTIONS.add_argument("--decisions", type=int, default=sized(100_000, 3_000))
DECISIONS: int = _OPTIONS.parse_args().decisions
WORLDS = sized(32, 4)
SETTINGS: dict[str, Any] = {"rate": 220, "arrivals": "poisson", "updater": "periodic-37"}
SEEDS = sized((1_000_000, 1_100_000, 1_200_000), (1_000_000,))  # trained on; run 0 is not
# DQN's defaults update once in four steps of one world. With many worlds a step is many decisions,
# so as many updates in all need several a step.
OWN: dict[tuple[str, bool], dict[str, Any]] = {
    ("DQN", True): {"train_freq": 1, "gradient_steps": WORLDS // 4},
    ("PPO", True): {"n_steps": max(2048 // WORLDS, 32)},
}


def learned(algorithm: str, many: bool, seed: int, folder: Path) -> tuple[float, float, float]:
    """(wall s, CPU s, success on unseen workloads)."""
    import stable_baselines3

    from cosmo.envs.sb3 import vec_env

    name = "cosmo/Dispatch-v0"
    env = vec_env(name, WORLDS, **SETTINGS) if many else gymnasium.make(name, **SETTINGS)
    kind = getattr(stable_baselines3, algorithm)
    model = kind("MlpPolicy", env, seed=seed, device="cpu", **OWN.get((algorithm, many), {}))
    wall, cpu = time.perf_counter(), time.process_time()
    model.learn(DECISIONS)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    model.save(folder / "model.zip")
    played = method(f"sb3:{folder / 'model.zip'},algorithm={algorithm},updater=periodic-37")
    found = simulate(load("paper", ["workload.rate=220"]), played, episodes=5)
    return wall, cpu, found.metrics["success_rate"].mean


def main() -> None:
    """A row for each."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        print("left out: stable-baselines3 is not installed (pip install stable-baselines3)")
        return
    import torch

    torch.set_num_threads(1)  # small networks: threads cost more than they bring
    print(f"{DECISIONS:,} decisions, {len(SEEDS)} training(s) each{', small' if SMALL else ''}\n")
    print(
        "| learner | on | wall time | CPU time | success | from … to |\n|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as folder:
        for algorithm, many in product(("DQN", "PPO"), (False, True)):
            found = [learned(algorithm, many, seed, Path(folder)) for seed in SEEDS]
            wall, cpu, success = (sorted(column) for column in zip(*found, strict=True))
            where = f"{WORLDS} worlds" if many else "one world"
            middle = len(SEEDS) // 2
            print(
                f"| {algorithm} | {where} | {wall[middle]:.0f} s | {cpu[middle]:.0f} s |"
                f" {success[middle]:.3f} | {success[0]:.3f} … {success[-1]:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    assert cosmo.envs
    main()
