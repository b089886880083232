"""Trainings that take seconds."""

import numpy as np

from cosmo import load
from cosmo.learn.config import load_config
from cosmo.learn.rollout import Rollout
from cosmo.learn.run import Run
from cosmo.learn.trainer import Trainer
from cosmo.workload import episode

TRAINING = ["validate_every=1", "encoder.collection_episodes=3", "encoder.epochs=5"]


def short_config(episodes=3, *settings):
    return load_config("paper", [*TRAINING, f"episodes={episodes}", *settings])


OUTAGES = ("sn.outage={up_ms = 120, down_ms = 60}",)  # some in every short episode


def short_runs(*seeds, rate=300, window_ms=1500, more=()):
    ways = [f"episode.window_ms={window_ms}", "episode.warmup_ms=0", f"workload.rate={rate}"]
    ways += more
    scenario = load("paper", ways)
    return [Run(scenario, seed) for seed in seeds]


def played(trainer, config, explore=True):
    """One episode by the trainer's networks."""
    episodes = [episode(run.scenario, run.seed, 5) for run in trainer.runs]
    random = [np.random.default_rng(run.seed) for run in trainer.runs] if explore else None
    rollout = Rollout(trainer.runs[0].scenario, config, episodes, random)
    more = True
    while more:
        more = rollout.play(trainer._networks(), 7)
        rollout.write(0, trainer.en.replay, trainer.sn.replay)
    return rollout


def played_episode(runs, config, explore=True):
    """A new trainer with its encoders, and one episode that it played."""
    trainer = Trainer(runs, config)
    trainer.pretrain()
    return trainer, played(trainer, config, explore)
