"""Seconds per training episode, stacked against alone and against eager PyTorch, and where they go.

python benchmarks/training.py            # PyTorch is compared with if it is installed
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

from cosmo import Worlds, load
from cosmo.learn import rollout, trainer
from cosmo.learn.config import load_config
from cosmo.learn.learner import Learner
from cosmo.learn.run import Run
from measured import seconds, sized

WARMUP = 2  # episodes that fill the replays, and compile
EPISODES = sized(3, 1)  # timed
STACKS = sized((1, 12), (1, 2))
WINDOW_MS = sized(10_000.0, 1_000.0)
PRETRAINING = sized([], ["encoder.collection_episodes=2", "encoder.epochs=2"])


def episode_seconds(train_episode: Callable[[], object]) -> float:
    """Median time of an episode."""
    for _ in range(WARMUP):
        train_episode()
    return statistics.median(seconds(train_episode) for _ in range(EPISODES))


class Clock:
    """Adds up the time that is spent in a function."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def timed(self, name: str, function: Callable[..., Any]) -> Any:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start

        return wrapped


def where_time_goes(made: trainer.Trainer) -> dict[str, float]:
    """Shares of an episode: the world, inference and notes, updates, the rest."""
    clock = Clock()
    parts = (
        (Worlds, "advance_buffers", "world"),
        (rollout, "act", "inference"),
        (Learner, "update", "update"),
    )
    before = [getattr(owner, name) for owner, name, _ in parts]
    for (owner, name, part), function in zip(parts, before, strict=True):
        setattr(owner, name, clock.timed(part, function))
    try:
        total = seconds(made.train_episode)
    finally:
        for (owner, name, _), function in zip(parts, before, strict=True):
            setattr(owner, name, function)
    shares = {name: spent / total for name, spent in clock.spent.items()}
    return shares | {"rest": 1.0 - sum(shares.values())}


def main() -> None:
    config = load_config("paper", ["validate_every=1000", *PRETRAINING])
    settings = ["workload.rate=320", "workload.arrivals=poisson", f"episode.window_ms={WINDOW_MS}"]
    scenario = load("paper", [*settings, "episode.warmup_ms=0"])
    ours = {}
    for runs in STACKS:
        made = trainer.Trainer([Run(scenario, seed) for seed in range(runs)], config)
        made.pretrain()
        ours[runs] = episode_seconds(made.train_episode) / runs
        shares = ", ".join(f"{name} {share:.0%}" for name, share in where_time_goes(made).items())
        print(f"ours, stack of {runs:2}: {ours[runs]:.3f} s per run and episode ({shares})")
    alone, stacked = STACKS
    print(f"ratio, a lone run to one of {stacked}: {ours[alone] / ours[stacked]:.1f} times")
    try:
        from torch_twin import TorchTwin
    except ImportError as missing:
        print(f"PyTorch is left out ({missing}; pip install torch): nothing to compare with")
        return
    twin = TorchTwin(scenario, config)
    theirs = episode_seconds(twin.train_episode)
    en, sn = (round(count / (WARMUP + EPISODES)) for count in twin.updates)
    print(f"eager PyTorch, one run: {theirs:.3f} s per episode ({en} EN and {sn} SN updates)")
    for runs, spent in ours.items():
        print(f"ratio, stack of {runs:2}: {theirs / spent:.1f} times")


if __name__ == "__main__":
    main()
