"""Utility-coordinated training of many runs at once (Algorithm 1).

All ENs of a run share one set of weights, and so do all its SNs: with one EN and one SN this is the
paper's method, operation by operation.

Runs are stacked: their worlds advance in lockstep, one decision each a turn, and their networks are
updated by one call. A run's turns are its own decisions, so its schedule of updates, its data and
its random streams do not depend on the other runs.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.engine import worlds_at_once
from cosmo.errors import InputError
from cosmo.learn import en_agent, sn_agent
from cosmo.learn.config import TrainingConfig
from cosmo.learn.encoder import collect, encoder_layout, pretrain
from cosmo.learn.learner import Learner, Steps, start
from cosmo.learn.replay import Replay, SequenceReplay
from cosmo.learn.rollout import Rollout
from cosmo.learn.run import (
    COLLECTION_EPISODES,
    TRAINING_EPISODES,
    VALIDATION_EPISODES,
    Arrays,
    Curve,
    Run,
)
from cosmo.learn.stack import Layout
from cosmo.learn.turn_memory import Networks
from cosmo.measure import episode_metrics
from cosmo.policy.controller import named_layers
from cosmo.policy.features import EN_LOCAL
from cosmo.policy.learned import Agents
from cosmo.policy.networks import shapes, sn_shapes
from cosmo.seeds import Purpose, stream
from cosmo.workload import Episode
from cosmo.workload import episode as make_episode

Floats = NDArray[np.float32]

# A run's owed updates are made together after so many of its decisions (0.2 to 0.5 s of its world):
# one call a turn would cost more than the updates themselves.
UPDATE_TURNS = 64


class Trainer:
    """Trains a stack of runs that differ in seed and workload only."""

    def __init__(self, runs: Sequence[Run], config: TrainingConfig) -> None:
        first = runs[0].scenario
        if any(run.scenario.without_load() != first.without_load() for run in runs):
            raise InputError("runs can be trained together only where nothing but the load differs")
        self.runs, self.config = tuple(runs), config
        self._scenario = first
        count, en, sn = len(runs), config.en, config.sn
        inputs = config.en_inputs(first.links.most_sns)
        seen = EN_LOCAL, config.remote_inputs
        self.en_layout = Layout(shapes(*seen, en.hierarchical, en.branch, en.fusion))
        self.sn_layout = Layout(sn_shapes(config.sn_inputs, sn.projection, sn.hidden, sn.actions))
        self.encoder_layout = encoder_layout(config.encoder)
        self._initial = [stream(run.seed, Purpose.NETWORKS, 0) for run in runs]
        self.en = Learner(
            start(self.en_layout, self._initial),
            en_agent.gradient(self.en_layout, en, inputs),
            Steps(en.learning_rate, en.gradient_clip),
            Replay(count, en.replay, en.row_width(sum(inputs))),
            en.batch,
            en.update_every,
            en.target_every if en.bootstraps else 0,
        )
        width = sn_agent.EXTRA_COLUMNS + 2 * config.sn_inputs + sn.hidden
        self._sn_replay = SequenceReplay(count, sn.replay, width, len(first.links.sn))
        self.sn = Learner(
            start(self.sn_layout, self._initial),
            sn_agent.gradient(self.sn_layout, sn, config.sn_inputs),
            Steps(sn.learning_rate, sn.gradient_clip),
            self._sn_replay,
            sn.batch,
            sn.update_every,
            sn.target_every,
        )
        self.encoder: Floats = np.zeros((count, self.encoder_layout.size), np.float32)
        self.en_steps, self.sn_steps = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.episode = 0
        self.best_utility = np.full(count, -np.inf)
        self.best_episode = np.zeros(count, np.int64)
        self.best_en, self.best_sn = self.en.parameters.copy(), self.sn.parameters.copy()

    def pretrain(self) -> None:
        """Train and freeze every run's encoder; without one, the raw state is sent."""
        config = self.config
        if not config.encoder.semantic:
            return
        numbers = range(
            COLLECTION_EPISODES, COLLECTION_EPISODES + config.encoder.collection_episodes
        )
        data = []
        for run in self.runs:
            episodes = [make_episode(run.scenario, run.seed, number) for number in numbers]
            random = [stream(run.seed, Purpose.COLLECTION, number) for number in numbers]
            rows: list[NDArray[np.float32]] = []
            at_once = worlds_at_once(self._scenario)
            for first in range(0, len(episodes), at_once):
                some = slice(first, first + at_once)
                intervals_ms = config.sn.intervals_ms
                rows += collect(self._scenario, episodes[some], intervals_ms, random[some])
            data.append(np.concatenate(rows))
        self.encoder = pretrain(config.encoder, data, self._initial)

    def _networks(self) -> Networks:
        return Networks(self.encoder, self.en.parameters, self.sn.parameters)

    def _episodes(self, number: int) -> list[Episode]:
        return [make_episode(run.scenario, run.seed, number) for run in self.runs]

    def agents(self, en: Floats | None = None, sn: Floats | None = None) -> Agents:
        """The runs' agents, current ones unless given."""
        return Agents(
            encoder=self.encoder_layout.views(self.encoder)
            if self.config.encoder.semantic
            else None,
            en=self.en_layout.views(self.en.parameters if en is None else en),
            sn=self.sn_layout.views(self.sn.parameters if sn is None else sn),
            intervals_ms=self.config.sn.intervals_ms,
            hierarchical=self.config.en.hierarchical,
            with_age=self.config.en.with_age,
        )

    def best(self) -> tuple[Floats, Floats]:
        """Parameters of the best EN and SN agents so far; before any validation, the current."""
        unknown = np.isneginf(self.best_utility)[:, None]
        return (
            np.where(unknown, self.en.parameters, self.best_en),
            np.where(unknown, self.sn.parameters, self.best_sn),
        )

    def train(self, on_episode: Callable[[int, list[Curve]], None]) -> None:
        """All episodes that are left; `on_episode` gets the number of each and the runs' curves."""
        while self.episode < self.config.episodes:
            curves = self.train_episode()
            on_episode(self.episode, curves)

    def train_episode(self) -> list[Curve]:
        """The next episode, with validation if it is due; every run's curve."""
        number = TRAINING_EPISODES + self.episode
        random = [stream(run.seed, Purpose.EXPLORATION, number) for run in self.runs]
        steps = self.en_steps, self.sn_steps
        rollout = Rollout(self._scenario, self.config, self._episodes(number), random, steps)
        more = True
        while more:
            more = rollout.play(self._networks(), UPDATE_TURNS)
            rollout.write(self.episode, self.en.replay, self._sn_replay)
            self.en.update(random)
            self.sn.update(random)
        self.episode += 1
        curves = self._curves(rollout)
        last = self.episode == self.config.episodes
        if self.episode % self.config.validate_every == 0 or last:
            for curve, utility in zip(curves, self._validate(), strict=True):
                curve["validation_utility"] = utility
        return curves

    def _validate(self) -> list[float]:
        """R25: a greedy episode on a seed of its own; the best networks are kept."""
        number = VALIDATION_EPISODES + self.episode
        rollout = Rollout(self._scenario, self.config, self._episodes(number))
        while rollout.play(self._networks(), UPDATE_TURNS):
            pass
        found = []
        for run, each in enumerate(self.runs):
            outcome = rollout.worlds.outcome(run)
            metrics = episode_metrics(each.scenario, outcome, self.config.dimensions)
            found.append(metrics["utility_per_task"])
            if found[-1] > self.best_utility[run]:
                self.best_utility[run], self.best_episode[run] = found[-1], self.episode
                self.best_en[run] = self.en.parameters[run]
                self.best_sn[run] = self.sn.parameters[run]
        return found

    def _curves(self, rollout: Rollout) -> list[Curve]:
        decay = self.config.exploration
        share = np.minimum(self.en_steps / (decay.steps * self._scenario.en.count), 1.0)
        epsilon = decay.start + share * (decay.end - decay.start)
        found = []
        for run, each in enumerate(self.runs):
            metrics = episode_metrics(
                each.scenario, rollout.worlds.outcome(run), self.config.dimensions
            )
            cost = metrics["episode_update_cost"] * each.scenario.utility.update_weight
            curve = {"reward": float(rollout.utility[run]) - cost, "epsilon": float(epsilon[run])}
            for name in ("success_rate", "decision_accuracy", "update_cost_rate"):
                curve[name] = metrics[name]
            found.append(curve)
        return found

    def delivered(self) -> Arrays:
        """What is written for `cosmo.policy`: the best networks of every run so far."""
        best = self.agents(*self.best())
        arrays = named_layers("en", best.en) | named_layers("sn", best.sn)
        if best.encoder is not None:
            arrays |= named_layers("encoder", best.encoder)
        return arrays | {"best_episode": self.best_episode, "best_utility": self.best_utility}

    def saved(self) -> Arrays:
        """All that a resumed training needs, as plain arrays."""
        kept: Arrays = {
            "episode": np.array(self.episode),
            "encoder": self.encoder,
            "en_steps": self.en_steps,
            "sn_steps": self.sn_steps,
            "best_utility": self.best_utility,
            "best_episode": self.best_episode,
            "best_en": self.best_en,
            "best_sn": self.best_sn,
        }
        for name, learner in (("en", self.en), ("sn", self.sn)):
            kept |= {f"{name}/{key}": value for key, value in learner.saved().items()}
        return kept

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        self.episode = int(kept["episode"])
        self.encoder = kept["encoder"]
        self.en_steps, self.sn_steps = kept["en_steps"], kept["sn_steps"]
        self.best_utility, self.best_episode = kept["best_utility"], kept["best_episode"]
        self.best_en, self.best_sn = kept["best_en"], kept["best_sn"]
        for name, learner in (("en", self.en), ("sn", self.sn)):
            start = f"{name}/"
            learner.restore(
                {key.removeprefix(start): kept[key] for key in kept if key.startswith(start)}
            )
