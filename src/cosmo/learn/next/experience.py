"""Worlds played for training: what ENs knew and did, what SNs could have told, what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.next.en import NextDispatcher
from cosmo.control.next.seats import Seats
from cosmo.control.next.sn import news
from cosmo.control.next.values import NEVER
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import DispatchObservation, UpdateObservation, Worlds
from cosmo.world.records import FP, TP

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Chances:
    """What a run leaves to chance: a generator for each world, how often it explores and sends."""

    random: Sequence[np.random.Generator]
    exploration: float
    send_share: NDArray[np.float64]
    look_ms: float


class Experience:
    """One batch of worlds, played to its end."""

    def __init__(
        self,
        scenario: Scenario,
        episodes: Sequence[Episode],
        dispatcher: NextDispatcher,
        chances: Chances,
    ) -> None:
        self.worlds = Worlds(scenario, episodes, dispatcher.rules.dimensions)
        self._dispatcher, self._chances = dispatcher, chances
        self._nodes = KnownNodes(scenario)
        self._routes = 1 + scenario.sn.count
        self._en_rows: list[Arrays] = []
        self._sn_rows: list[Arrays] = []
        # Draws of a world do not depend on who else is played with it: looks are as many in all
        # worlds, and come first.
        looks = int(max(each.window_ms for each in episodes) / (0.5 * chances.look_ms)) + 8
        self._looks = np.stack(
            [each.random((looks * scenario.sn.count, 2), np.float32) for each in chances.random]
        )
        most = max(len(each.tasks) for each in episodes)
        self._draws = np.stack(
            [each.random((most, 2 + self._routes), np.float32) for each in chances.random]
        )
        self._looked = np.zeros(len(episodes), np.int64)

    def play(self) -> None:
        """All of it."""
        turn = self.worlds.advance()
        while not turn.over:
            if len(turn.settled):
                self._dispatcher.observe(turn.settled)
            if len(turn.dispatch):
                self.worlds.answer(action=self._dispatch(turn.dispatch, turn.truth.feasible))
            if len(turn.update):
                send, interval = self._update(turn.update)
                self.worlds.answer(send=send, interval_ms=interval)
            turn = self.worlds.advance()

    def _dispatch(
        self, tasks: DispatchObservation, feasible: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        considered = self._dispatcher.consider(tasks)
        actions = considered.actions(self._dispatcher.rules.margin)
        draws = self._draws[tasks.world, tasks.task]
        explores = draws[:, 0] < self._chances.exploration
        hopeful = np.ones((len(tasks), 1 + self._routes), np.bool_)
        hopeful[:, :-1] = considered.advantage > NEVER
        actions = np.where(explores, np.where(hopeful, draws[:, 1:], -1.0).argmax(1), actions)
        self._dispatcher.commit(tasks, considered, actions)
        row: Arrays = {
            "world": tasks.world.copy(),
            "en": tasks.en.copy(),
            "task": tasks.task.copy(),
            "time": tasks.time_ms.copy(),
            "elapsed": tasks.time_ms - tasks.generated_ms,
            "explores": explores,
            "action": actions,
            "feasible": feasible.copy(),
        }
        row |= {f"before/{k}": v.astype(np.float32) for k, v in considered.seen.before.items()}
        row |= {f"task/{k}": v.astype(np.float32) for k, v in considered.seen.task.items()}
        self._en_rows.append(row)
        return actions

    def _update(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        draws = self._looks[nodes.world, self._looked[nodes.world] % self._looks.shape[1]]
        self._looked[nodes.world] += 1
        share = self._chances.send_share[nodes.world]
        send = draws[:, 0] < share
        self._sn_rows.append(
            {
                "world": nodes.world.copy(),
                "time": nodes.time_ms.copy(),
                "news": news(self._nodes, nodes),
                "send": send,
                "share": share,
            }
        )
        return send, self._chances.look_ms * (0.5 + draws[:, 1].astype(np.float64))

    def decisions(self) -> Arrays:
        """Of ENs, those of one EN one after the other, in order of time, with what came of them."""
        found = {k: np.concatenate([row[k] for row in self._en_rows]) for k in self._en_rows[0]}
        outcomes = [self.worlds.outcome(world).outcome for world in range(len(self.worlds))]
        first = np.cumsum([0, *map(len, outcomes)])
        outcome = np.concatenate(outcomes)[first[found["world"]] + found["task"]]
        found["succeeded"], found["failed"] = outcome == TP, outcome == FP
        order = np.lexsort((found["time"], found["en"], found["world"]))
        return {name: column[order] for name, column in found.items()}

    def looks(self) -> Arrays:
        """Of SNs."""
        return {k: np.concatenate([row[k] for row in self._sn_rows]) for k in self._sn_rows[0]}


def seats_of(runs: int, worlds: int) -> Seats:
    """`worlds` for each run."""
    return Seats([run for run in range(runs) for _ in range(worlds)], runs)
