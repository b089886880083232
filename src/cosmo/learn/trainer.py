"""Utility-coordinated training of many runs at once (Algorithm 1).

Runs are stacked: their worlds advance in lockstep, one decision each a turn, and their networks are
updated by one call. A run's turns are its own decisions, so its schedule of updates, its data and
its random streams do not depend on the other runs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cosmo.control import play
from cosmo.control.learned import Agents, Learned, LearnedDispatcher, LearnedUpdater
from cosmo.control.networks import shapes, sn_shapes
from cosmo.errors import InputError
from cosmo.learn import en_agent, sn_agent
from cosmo.learn.config import TrainingConfig
from cosmo.learn.coordinator import Intervals
from cosmo.learn.encoder import collect, encoder_layout, pretrain
from cosmo.learn.replay import Replay, SequenceReplay
from cosmo.learn.stack import Layout
from cosmo.measure import episode_metrics, utility
from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload import episode as make_episode
from cosmo.world import Decisions, Truth, Worlds
from cosmo.world.records import FP

Floats = NDArray[np.float32]

# Episodes that no other purpose uses: evaluation counts from 0 (R25, R26).
TRAINING_EPISODES, VALIDATION_EPISODES, COLLECTION_EPISODES = 1_000_000, 2_000_000, 3_000_000
_UPDATE_TURNS = 4  # a run's owed updates are made after so many of its decisions
SN_INPUTS = 11
EN_LOCAL = 10


@dataclass(frozen=True, slots=True)
class Run:
    """One training run: a load and a seed."""

    scenario: Scenario
    seed: int


class Trainer:
    """Trains a stack of runs that differ in seed and workload only."""

    def __init__(self, runs: Sequence[Run], config: TrainingConfig) -> None:
        first = runs[0].scenario
        if first.sn.count != 1 or first.en.count != 1:
            raise InputError("training needs a scenario with one EN and one SN")
        self.runs, self.config = tuple(runs), config
        self._scenario = first
        sns, count = first.sn.count, len(runs)
        dims = config.encoder.dimensions
        remote = sns * (dims + 3 + int(config.en.with_age))
        self._inputs = EN_LOCAL, remote
        self._en_layout = Layout(
            shapes(
                EN_LOCAL,
                remote,
                1 + sns,
                config.en.hierarchical,
                config.en.branch,
                config.en.fusion,
            )
        )
        self._sn_layout = Layout(
            sn_shapes(SN_INPUTS, config.sn.projection, config.sn.hidden, config.sn.actions)
        )
        self._encoder_layout = encoder_layout(config.encoder)
        self._initial = [stream(run.seed, Purpose.NETWORKS, 0) for run in runs]
        self._en_update = en_agent.make_update(self._en_layout, config.en, self._inputs)
        self._sn_update = sn_agent.make_update(self._sn_layout, config.sn, SN_INPUTS)
        self.en = np.stack([self._en_layout.initial(random) for random in self._initial])
        self.sn = np.stack([self._sn_layout.initial(random) for random in self._initial])
        self._target = self.sn.copy()
        chain = en_agent.optimizer(config.en)
        self._en_state: Any = jax.vmap(chain.init)(self.en)
        self._sn_state: Any = jax.vmap(chain.init)(self.sn)
        self.encoder: Floats = np.zeros((count, self._encoder_layout.size), np.float32)
        width = sum(self._inputs) + en_agent.EXTRA_COLUMNS
        self._en_replay = Replay(count, config.en.replay, width)
        width = sn_agent.EXTRA_COLUMNS + 2 * SN_INPUTS + config.sn.hidden
        self._sn_replay = SequenceReplay(count, config.sn.replay, width)
        self._en_updates = np.zeros(count, np.int64)
        self._sn_updates = np.zeros(count, np.int64)
        self._en_steps = np.zeros(count, np.int64)
        self._sn_steps = np.zeros(count, np.int64)
        self.episode = 0
        self.best_utility = np.full(count, -np.inf)
        self.best_en, self.best_sn = self.en.copy(), self.sn.copy()

    def pretrain(self) -> None:
        """Train and freeze every run's encoder."""
        config, data = self.config, []
        for run in self.runs:
            numbers = range(
                COLLECTION_EPISODES, COLLECTION_EPISODES + config.encoder.collection_episodes
            )
            episodes = [make_episode(run.scenario, run.seed, number) for number in numbers]
            random = [stream(run.seed, Purpose.COLLECTION, number) for number in numbers]
            rows = collect(self._scenario, episodes, config.sn.intervals_ms, random)
            data.append(np.concatenate(rows))
        self.encoder = pretrain(config.encoder, data, self._initial)

    def agents(self, en: Floats | None = None, sn: Floats | None = None) -> Agents:
        """The runs' agents, current ones unless given."""
        return Agents(
            encoder=self._encoder_layout.views(self.encoder),
            en=self._en_layout.views(self.en if en is None else en),
            sn=self._sn_layout.views(self.sn if sn is None else sn),
            intervals_ms=self.config.sn.intervals_ms,
            hierarchical=self.config.en.hierarchical,
            with_age=self.config.en.with_age,
        )

    def best_agents(self, run: int, worlds: int) -> Agents:
        """The best checkpoint of one run, for so many worlds side by side (R25)."""
        rows = np.full(worlds, run)
        chosen = self.agents(self.best_en[rows], self.best_sn[rows])
        return replace(chosen, encoder=self._encoder_layout.views(self.encoder[rows]))

    def train(self, told: Callable[[int, list[dict[str, float]]], None]) -> None:
        """All episodes that are left; `told` hears of each and of every run's curve."""
        while self.episode < self.config.episodes:
            curves = self._train_episode()
            self.episode += 1
            if self.episode % self.config.validate_every == 0:
                self._validate()
            told(self.episode, curves)

    def _validate(self) -> None:
        number = VALIDATION_EPISODES + self.episode
        episodes = [make_episode(run.scenario, run.seed, number) for run in self.runs]
        outcomes = play(self._scenario, Learned(self.agents()), episodes)
        for run, outcome in enumerate(outcomes):
            metrics = episode_metrics(self.runs[run].scenario, outcome, 2)
            if metrics["utility_per_task"] > self.best_utility[run]:
                self.best_utility[run] = metrics["utility_per_task"]
                self.best_en[run], self.best_sn[run] = self.en[run], self.sn[run]

    def _epsilon(self, steps: NDArray[np.int64]) -> NDArray[np.float64]:
        decay = self.config.exploration
        share = np.minimum(steps / decay.steps, 1.0)
        epsilon: NDArray[np.float64] = decay.start + share * (decay.end - decay.start)
        return epsilon

    def _train_episode(self) -> list[dict[str, float]]:
        rollout = _Rollout(self)
        turns = 0
        turn = rollout.worlds.advance()
        while not turn.over:
            rollout.take_note(turn)
            rollout.act(turn)
            turns += 1
            if turns % _UPDATE_TURNS == 0:
                rollout.write_intervals(over=False)
                self._update(rollout.random)
            turn = rollout.worlds.advance()
        rollout.take_note(turn)
        rollout.write_intervals(over=True)
        self._update(rollout.random)
        return rollout.curves()

    def _update(self, random: list[np.random.Generator]) -> None:
        """Make the updates that runs owe: one for so many new transitions."""
        en, sn = self.config.en, self.config.sn
        while True:
            owed = self._en_replay.written // en.update_every > self._en_updates
            owed &= np.array([self._en_replay.held(run) >= en.batch for run in range(len(owed))])
            if not owed.any():
                break
            batch = self._batches(self._en_replay, owed, (en.batch,), random)
            flat, self._en_state = self._en_update(self.en, self._en_state, batch, owed)
            self.en = np.asarray(flat)
            self._en_updates += owed
        while True:
            owed = self._sn_replay.written // sn.update_every > self._sn_updates
            owed &= np.array([self._sn_replay.ready(run, sn.batch) for run in range(len(owed))])
            if not owed.any():
                break
            batch = self._batches(self._sn_replay, owed, (sn.batch, 2), random)
            flat, self._sn_state = self._sn_update(
                self.sn, self._target, self._sn_state, batch, owed
            )
            self.sn = np.asarray(flat)
            self._sn_updates += owed
            due = owed & (self._sn_updates % sn.target_every == 0)
            self._target = np.where(due[:, None], self.sn, self._target)

    def _batches(
        self,
        replay: Replay,
        owed: NDArray[np.bool_],
        shape: tuple[int, ...],
        random: list[np.random.Generator],
    ) -> Floats:
        batch = np.zeros((len(owed), *shape, replay.width), np.float32)
        for run in np.flatnonzero(owed):
            batch[run] = replay.sample(int(run), shape[0], random[run])
        return batch


class _Rollout:
    """One training episode of every run."""

    def __init__(self, trainer: Trainer) -> None:
        self._trainer, scenario, config = trainer, trainer._scenario, trainer.config
        number = TRAINING_EPISODES + trainer.episode
        self._episodes = [make_episode(run.scenario, run.seed, number) for run in trainer.runs]
        self.worlds = Worlds(scenario, self._episodes, status_dimensions=2)
        self.random = [stream(run.seed, Purpose.EXPLORATION, number) for run in trainer.runs]
        runs, most = len(trainer.runs), max(len(each.tasks) for each in self._episodes)
        self._rows = np.zeros((runs, most, trainer._en_replay.width), np.float32)
        self._interval = np.zeros((runs, most), np.int64)
        agents = trainer.agents()
        self._dispatcher = LearnedDispatcher(scenario, agents)
        self._updater = LearnedUpdater(scenario, agents)
        self._intervals = Intervals(
            runs,
            scenario.episode.window_ms,
            min(config.sn.intervals_ms),
            SN_INPUTS,
            config.sn.hidden,
        )
        self._generated = np.zeros((runs, most))
        self._size = np.zeros((runs, most))
        for run, each in enumerate(self._episodes):
            self._generated[run, : len(each.tasks)] = each.tasks.time_ms
            self._size[run, : len(each.tasks)] = each.tasks.input_bytes
        self._reward = np.zeros(runs)

    def take_note(self, turn: Decisions) -> None:
        """Finished tasks become EN transitions and part of their SN interval's reward."""
        settled, trainer = turn.settled, self._trainer
        if not len(settled):
            return
        place = settled.world, settled.task
        delay = settled.time_ms - self._generated[place]
        gained = utility(
            trainer._scenario, settled.action, settled.outcome, delay, self._size[place]
        )
        rows = self._rows[place]
        extra = sum(trainer._inputs)
        rows[:, extra + en_agent.UTILITY] = gained / trainer._scenario.utility.value
        rows[:, extra + en_agent.FAILED] = settled.outcome == FP
        trainer._en_replay.write(settled.world, rows)
        weight = trainer.config.sn.utility_weight
        self._intervals.settle(settled.world, self._interval[place], weight * gained)
        np.add.at(self._reward, settled.world, gained)

    def act(self, turn: Decisions) -> None:
        """ε-greedy decisions by the current networks (R24)."""
        agents = self._trainer.agents()
        self._dispatcher._agents = self._updater._agents = agents
        if len(turn.dispatch):
            self._dispatch(turn, agents)
        if len(turn.update):
            self._send(turn, agents)

    def _explore(self, runs: NDArray[np.int64], steps: NDArray[np.int64], choices: int) -> Any:
        """For each row, a random action or -1 for the greedy one."""
        epsilon = self._trainer._epsilon(steps[runs])
        draws = [
            self.random[run].integers(choices) if self.random[run].random() < limit else -1
            for run, limit in zip(runs.tolist(), epsilon.tolist(), strict=True)
        ]
        return np.array(draws)

    def _dispatch(self, turn: Decisions, agents: Agents) -> None:
        trainer, tasks = self._trainer, turn.dispatch
        local, remote = self._dispatcher.observe_inputs(tasks)
        greedy = agents.en_actions(tasks.world, local, remote)
        random = self._explore(tasks.world, trainer._en_steps, tasks.reject + 1)
        action = np.where(random >= 0, random, greedy)
        trainer._en_steps[tasks.world] += 1
        accept, route = _labels(turn.truth)
        place = tasks.world, tasks.task
        told = np.zeros((len(tasks), en_agent.EXTRA_COLUMNS), np.float32)
        told[:, en_agent.ACTION], told[:, en_agent.ACCEPT_LABEL] = action, accept
        told[:, en_agent.ROUTE_LABEL] = route
        self._rows[place] = np.concatenate([local, remote, told], axis=1)
        self._interval[place] = self._intervals.join(tasks.world, tasks.time_ms)
        self.worlds.answer(action=action)

    def _send(self, turn: Decisions, agents: Agents) -> None:
        trainer, nodes = self._trainer, turn.update
        before = self._updater.hidden[nodes.world, nodes.sn].copy()
        seen, values = self._updater.values(nodes)
        random = self._explore(nodes.world, trainer._sn_steps, values.shape[1])
        action = np.where(random >= 0, random, values.argmax(axis=1))
        trainer._sn_steps[nodes.world] += 1
        send, interval_ms = agents.sn_answer(action)
        weights = trainer._scenario.utility
        dimensions = trainer.config.encoder.dimensions
        price = weights.update_weight * weights.update_cost_per_dimension * dimensions
        cost = np.where(send, price, 0.0)
        self._intervals.open(nodes.world, seen, before, action, nodes.time_ms, interval_ms, cost)
        self.worlds.answer(send=send, interval_ms=interval_ms)

    def write_intervals(self, over: bool) -> None:
        """SN transitions whose tasks are all final, in order."""
        done, trainer = self._intervals, self._trainer
        value = trainer._scenario.utility.value
        finished = done.complete(np.full(len(done.count), over))
        if not finished:
            return
        rows = np.zeros((len(finished), trainer._sn_replay.width), np.float32)
        for row, (run, n, terminal) in zip(rows, finished, strict=True):
            row[sn_agent.EPISODE] = trainer.episode
            row[sn_agent.ACTION] = done.action[run, n]
            row[sn_agent.REWARD] = done.reward[run, n] / value
            row[sn_agent.INTERVAL] = done.interval_ms[run, n]
            row[sn_agent.TERMINAL] = terminal
            start = sn_agent.EXTRA_COLUMNS
            row[start : start + SN_INPUTS] = done.seen[run, n]
            row[start + SN_INPUTS : -SN_INPUTS] = done.hidden[run, n]
            if not terminal:
                row[-SN_INPUTS:] = done.seen[run, n + 1]
        trainer._sn_replay.write(np.array([run for run, _, _ in finished]), rows)

    def curves(self) -> list[dict[str, float]]:
        """Reward, success and cost of every run's episode."""
        found = []
        for run, scenario in enumerate(run.scenario for run in self._trainer.runs):
            outcome = self.worlds.outcome(run)
            metrics = episode_metrics(scenario, outcome, 2)
            cost = metrics["episode_update_cost"] * scenario.utility.update_weight
            found.append(
                {
                    "reward": float(self._reward[run]) - cost,
                    "success_rate": metrics["success_rate"],
                    "update_cost_rate": metrics["update_cost_rate"],
                    "epsilon": float(
                        self._trainer._epsilon(self._trainer._en_steps[run : run + 1])[0]
                    ),
                }
            )
        return found


def _labels(truth: Truth) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """R23: accept if any route is feasible; then the feasible one with the smaller delay."""
    delay = np.where(truth.feasible, truth.delay_ms, np.inf)
    return np.asarray(truth.feasible.any(axis=1)), np.asarray(delay.argmin(axis=1))
