"""Seconds per training episode against eager PyTorch, and where the time goes.

python benchmarks/training.py            # torch, if it is installed, is the alternative
"""

import os

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time

from cosmo import load
from cosmo.learn import rollout, trainer
from cosmo.learn.config import load_config
from cosmo.learn.learner import Learner
from cosmo.world import Worlds

EPISODES = 3  # timed, after two that warm up and fill the replays


def seconds(train_episode) -> float:
    """Median time of an episode."""
    for _ in range(2):
        train_episode()
    times = []
    for _ in range(EPISODES):
        start = time.perf_counter()
        train_episode()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


class Clock:
    """Adds up the time that is spent in a function."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def timed(self, name, function):
        def wrapped(*arguments, **named):
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start

        return wrapped


def where_time_goes(made: trainer.Trainer) -> dict[str, float]:
    """Shares of an episode: the world, inference and notes, updates, the rest."""
    clock = Clock()
    before = Worlds.advance_buffers, rollout.act, Learner.update
    Worlds.advance_buffers = clock.timed("world", before[0])
    rollout.act = clock.timed("inference", before[1])
    Learner.update = clock.timed("update", before[2])
    try:
        start = time.perf_counter()
        made.train_episode()
        total = time.perf_counter() - start
    finally:
        Worlds.advance_buffers, rollout.act, Learner.update = before
    shares = {name: spent / total for name, spent in clock.spent.items()}
    return shares | {"rest": 1.0 - sum(shares.values())}


def main() -> None:
    config = load_config("paper", ["validate_every=1000"])
    scenario = load("paper", ["workload.rate=320", "workload.arrivals=poisson"])
    ours = {}
    for runs in (1, 12):
        made = trainer.Trainer([trainer.Run(scenario, seed) for seed in range(runs)], config)
        made.pretrain()
        spent = seconds(made.train_episode)
        ours[runs] = spent / runs
        shares = ", ".join(f"{name} {share:.0%}" for name, share in where_time_goes(made).items())
        print(f"ours, stack of {runs:2}: {spent / runs:.3f} s per run and episode ({shares})")
    try:
        from torch_twin import TorchTwin
    except ImportError:
        print("PyTorch is not installed (pip install torch): nothing to compare with")
        return
    twin = TorchTwin(scenario, config)
    theirs = seconds(twin.train_episode)
    en, sn = (round(count / (2 + EPISODES)) for count in twin.updates)
    print(f"eager PyTorch, one run: {theirs:.3f} s per episode ({en} EN and {sn} SN updates)")
    for runs, spent in ours.items():
        print(f"ratio, stack of {runs:2}: {theirs / spent:.1f} times")


if __name__ == "__main__":
    main()
