"""Stable-Baselines3's DQN and PPO, out of the box, on one world and on many at once.

    python benchmarks/learners.py [--small]

Needs stable-baselines3 (`make test-integrations` installs it beside torch). Each learns from the
same number of decisions at 220 tasks/s, Poisson, and is then played greedily on five episodes that
it has not seen. CPU time is said beside wall time: a busy machine does not change it much.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium

import cosmo.envs
from cosmo import load, method, simulate
from measured import SMALL, sized

DECISIONS = sized(100_000, 3_000)
WORLDS = sized(32, 4)
SETTINGS: dict[str, Any] = {"rate": 220, "arrivals": "poisson", "updater": "periodic-37"}
SEED = 1_000_000  # runs from here on are trained on; run 0 is not
# DQN's defaults update once in four steps of one world. With many worlds a step is many decisions,
# so as many updates in all need several a step.
OWN: dict[tuple[str, bool], dict[str, Any]] = {
    ("DQN", True): {"train_freq": 1, "gradient_steps": WORLDS // 4},
    ("PPO", True): {"n_steps": max(2048 // WORLDS, 32)},
}


def learned(algorithm: str, many: bool, folder: Path) -> tuple[float, float, float]:
    """(wall s, CPU s, success on unseen workloads)."""
    import stable_baselines3

    from cosmo.envs.sb3 import vec_env

    name = "cosmo/Dispatch-v0"
    env = vec_env(name, WORLDS, **SETTINGS) if many else gymnasium.make(name, **SETTINGS)
    kind = getattr(stable_baselines3, algorithm)
    model = kind("MlpPolicy", env, seed=SEED, device="cpu", **OWN.get((algorithm, many), {}))
    wall, cpu = time.perf_counter(), time.process_time()
    model.learn(DECISIONS)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    model.save(folder / "model.zip")
    played = method(f"sb3:{folder / 'model.zip'},algorithm={algorithm},updater=periodic-37")
    found = simulate(load("paper", ["workload.rate=220"]), played, seed=0, episodes=5)
    return wall, cpu, found.metrics["success_rate"].mean


def main() -> None:
    """A row for each."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError:
        print("left out: stable-baselines3 is not installed (pip install stable-baselines3)")
        return
    print(f"{DECISIONS:,} decisions{', small' if SMALL else ''}")
    with tempfile.TemporaryDirectory() as folder:
        for algorithm in ("DQN", "PPO"):
            for many in (False, True):
                wall, cpu, success = learned(algorithm, many, Path(folder))
                where = f"{WORLDS} worlds" if many else "one world"
                print(f"{algorithm}, {where}: {wall:.0f} s, {cpu:.0f} CPU s, success {success:.3f}")


if __name__ == "__main__":
    assert cosmo.envs
    main()
