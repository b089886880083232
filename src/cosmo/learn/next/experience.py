"""Worlds played for training: records of what ENs and SNs observed, did and achieved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control import play
from cosmo.learn.next.config import LoadsConfig
from cosmo.node import (
    Dispatcher,
    DispatchObservation,
    Feedback,
    Method,
    Site,
    SnStates,
    UpdateObservation,
    Updater,
)
from cosmo.policy.next.en import NextDispatcher
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.next.sn import StateChange
from cosmo.policy.next.status_encoding import StatusEncoding
from cosmo.policy.next.values import NEVER
from cosmo.scenario import Scenario, changed
from cosmo.workload import Episode, episode
from cosmo.world import Outcome, Watcher
from cosmo.world.records import FP, TP
from cosmo.world.watch import AskTruth

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Chances:
    """Random choices of a run: a generator per world, and how often it explores and sends."""

    random: Sequence[np.random.Generator]
    exploration: float
    send_share: NDArray[np.float64]
    look_ms: float


class Experience(Watcher):
    """One batch of worlds, played to its end; `act` makes the ENs' dispatcher for a site."""

    def __init__(
        self,
        scenario: Scenario,
        episodes: Sequence[Episode],
        act: "MakeDispatcher",
        settings: NextSettings,
        chances: Chances,
    ) -> None:
        self._scenario, self._episodes = scenario, episodes
        # Draws of a world do not depend on the other worlds of its batch: the draws of SN decisions
        # are equally many in all worlds, and come first.
        looks = int(max(each.window_ms for each in episodes) / (0.5 * chances.look_ms)) + 8
        sns = scenario.sn.count  # looks; an EN reaches no more
        self._looks = np.stack(
            [each.random((looks * sns, 2), np.float32) for each in chances.random]
        )
        most = max(len(each.tasks) for each in episodes)
        self._draws = np.stack(
            [each.random((most, 3 + sns), np.float32) for each in chances.random]
        )
        self._method = _Exploring(act, settings, chances, self._draws, self._looks)
        self._feasible: list[NDArray[np.bool_]] = []
        self.outcomes: list[Outcome] = []

    def play(self) -> None:
        """Play all episodes and record what both kinds of agents experience."""
        self.outcomes = play(self._scenario, self._method, self._episodes, watchers=[self])

    def asked(self, tasks: DispatchObservation, truth: AskTruth) -> None:
        """Labels are for training only (R15)."""
        self._feasible.append(truth().feasible.copy())

    def decisions(self) -> Arrays:
        """Decisions of ENs with their outcomes, ordered by world, EN and time; [decision, …]."""
        rows = self._method.en.rows
        found = {k: np.concatenate([row[k] for row in rows]) for k in rows[0]}
        found["feasible"] = np.concatenate(self._feasible)
        outcomes = [each.outcome for each in self.outcomes]
        first = np.cumsum([0, *map(len, outcomes)])
        outcome = np.concatenate(outcomes)[first[found["world"]] + found["task"]]
        found["succeeded"], found["failed"] = outcome == TP, outcome == FP
        order = np.lexsort((found["time"], found["en"], found["world"]))
        return {name: column[order] for name, column in found.items()}

    def looks(self) -> Arrays:
        """Return what SNs recorded at their decisions, one array for each name, [decision, …]."""
        rows = self._method.sn.rows
        return {k: np.concatenate([row[k] for row in rows]) for k in rows[0]}


class MakeDispatcher:
    """Makes dispatchers from the networks of many runs."""

    def __init__(self, layers: Any, run_rows: RunRows, settings: NextSettings, weigh: Any) -> None:
        self._given = layers, run_rows, settings, weigh

    def at(self, site: Site) -> NextDispatcher:
        """Return a dispatcher for `site` without memory."""
        return NextDispatcher(site, *self._given)


class _Exploring(Method):
    """`cosmo-next` whose ENs explore and whose SNs send at random."""

    def __init__(
        self,
        act: MakeDispatcher,
        settings: NextSettings,
        chances: Chances,
        draws: NDArray[np.float32],
        looks: NDArray[np.float32],
    ) -> None:
        self._act, self._settings, self._chances = act, settings, chances
        self._draws, self._looks = draws, looks
        self.carries = settings.dimensions

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the exploring ENs of a site."""
        self.en = _ExploringEn(self._act.at(site), self._chances.exploration, self._draws)
        return self.en

    def updater(self, site: Site) -> Updater:
        """Return the SNs of a site, which send at random."""
        self.sn = _ExperimentingSn(site, self._settings, self._chances, self._looks)
        return self.sn


class _ExploringEn(Dispatcher):
    def __init__(
        self, inner: NextDispatcher, exploration: float, draws: NDArray[np.float32]
    ) -> None:
        self._inner, self._exploration, self._draws = inner, exploration, draws
        self.rows: list[Arrays] = []

    def observe(self, feedback: Feedback) -> None:
        self._inner.observe(feedback)

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        considered = self._inner.consider(tasks)
        actions = considered.actions(self._inner.settings.margin)
        draws = self._draws[tasks.world, tasks.task]
        explores = draws[:, 0] < self._exploration
        hopeful = np.ones((len(tasks), 2 + tasks.sns), np.bool_)
        hopeful[:, :-1] = considered.advantage > NEVER
        actions = np.where(explores, np.where(hopeful, draws[:, 1:], -1.0).argmax(1), actions)
        self._inner.commit(tasks, considered.seen, actions)
        row: Arrays = {
            "world": tasks.world.copy(),
            "en": tasks.en.copy(),
            "task": tasks.task.copy(),
            "time": tasks.time_ms.copy(),
            "elapsed": tasks.elapsed_ms,
            "explores": explores,
            "action": actions,
        }
        row |= {f"before/{k}": v.astype(np.float32) for k, v in considered.seen.before.items()}
        row |= {f"task/{k}": v.astype(np.float32) for k, v in considered.seen.task.items()}
        self.rows.append(row)
        return actions


class _ExperimentingSn(Updater):
    def __init__(
        self, site: Site, settings: NextSettings, chances: Chances, looks: NDArray[np.float32]
    ) -> None:
        self._change, self._encoding = StateChange(site, settings), StatusEncoding(site, settings)
        self._chances, self._looks = chances, looks
        self._looked = np.zeros(site.worlds, np.int64)
        self.rows: list[Arrays] = []

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        draws = self._looks[nodes.world, self._looked[nodes.world] % self._looks.shape[1]]
        self._looked[nodes.world] += 1
        share = self._chances.send_share[nodes.world]
        send = draws[:, 0] < share
        self.rows.append(
            {
                "world": nodes.world.copy(),
                "time": nodes.time_ms.copy(),
                "change": self._change.of(nodes),
                "send": send,
                "share": share,
            }
        )
        return send, self._chances.look_ms * (0.5 + draws[:, 1].astype(np.float64))

    def encode(self, states: SnStates) -> NDArray[np.float64]:
        return self._encoding.encode(states)


def run_rows_of(runs: int, worlds: int) -> RunRows:
    """Rows for `worlds` worlds of each run."""
    return RunRows([run for run in range(runs) for _ in range(worlds)], runs)


def some_load(
    scenario: Scenario, config: LoadsConfig, random: np.random.Generator, seed: int, number: int
) -> Episode:
    """Episode `number` of a run, at a load drawn at random."""
    interest = scenario.workload.rates_of_interest
    low, high = config.below * min(interest), config.above * max(interest)
    kind = config.arrivals[random.integers(len(config.arrivals))]
    first, second = random.uniform(low, high, 2).tolist()
    fields: dict[str, Any] = {"workload.arrivals": kind, "workload.rate": first}
    if kind == "steps":  # from one rate to another in the middle
        fields["workload.rate"] = 0.5 * (first + second)
        fields |= {"workload.steps.weights": [first, second], "workload.steps.at": [0.5]}
    if config.others:
        others = config.others[random.integers(len(config.others))]
        fields |= {"background.rates": others.rates, "background.dwell_ms": others.dwell_ms}
    return episode(changed(scenario, fields), seed, number)
