"""Trainings that take seconds."""

from cosmo import load
from cosmo.learn.config import load_config
from cosmo.learn.run import Run

WORLD = ["episode.window_ms=1500", "episode.warmup_ms=0"]
TRAINING = ["validate_every=1", "encoder.collection_episodes=3", "encoder.epochs=5"]


def short_config(episodes=3, *settings):
    return load_config("paper", [*TRAINING, f"episodes={episodes}", *settings])


def short_runs(*seeds, rate=300):
    scenario = load("paper", [*WORLD, f"workload.rate={rate}"])
    return [Run(scenario, seed) for seed in seeds]
