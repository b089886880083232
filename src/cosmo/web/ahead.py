"""A world that is played ahead of what is on the screen, and sent piece by piece."""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control import method
from cosmo.control.play import turns
from cosmo.measure.outcomes import delays_ms
from cosmo.measure.utility import utility, weights_of
from cosmo.node import (
    NOTHING,
    DispatchObservation,
    ResultObservation,
    UpdateObservation,
)
from cosmo.node.guard import made_sides
from cosmo.report.journeys import Journeys, as_list, sent_columns
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome, Watcher, Worlds, site_of
from cosmo.world.records import PENDING, TP
from cosmo.world.watch import AskTruth

# A method makes the agents of each world anew, and keeps nothing of them; a trained one takes a
# while to be read, and a slider should be answered at once.
_method = cache(method)


class _Decided(Watcher):
    """Which tasks have been decided, in order, and the statuses that SNs sent."""

    wants_journal = True

    def __init__(self, journeys: Journeys) -> None:
        self.tasks: list[int] = []
        self._journeys = journeys

    def asked(self, tasks: DispatchObservation, truth: AskTruth) -> None:
        self.tasks += truth().place.tolist()

    def updated(
        self, nodes: UpdateObservation, send: NDArray[np.bool_], interval_ms: NDArray[np.float64]
    ) -> None:
        self._journeys.updated(nodes, send)

    def ridden(self, results: ResultObservation, ride: NDArray[np.bool_]) -> None:
        self._journeys.ridden(results, ride)


class Ahead:
    """One episode with one method; `on` plays a piece more and returns what is new in it.

    Plain Python rules decide: nothing has to be compiled when somebody moves a slider.
    """

    def __init__(self, scenario: Scenario, name: str, workload: Episode, seed: int) -> None:
        self.scenario, self.name = scenario, name
        chosen, site = _method(name), site_of(scenario, [(seed, 0)])
        self._carries = chosen.carries
        self._journeys = Journeys(scenario)
        self._watcher = _Decided(self._journeys)
        sides = made_sides(chosen, site)
        self._turns = turns(scenario, chosen, [workload], *sides, [self._watcher])
        self._told: dict[str, dict[str, NDArray[Any]]] = {"tasks": {}, "tenants": {}}
        self._noted, self._statuses, self._places = 0, 0, dict[tuple[int, int, float], int]()
        self.played_ms, self.over, self._stopped = 0.0, False, False

    def site(self) -> dict[str, Any]:
        """What never changes: the beginning of a recording that grows."""
        links = self.scenario.links
        return {
            "method": self.name,
            "ens": self.scenario.en.count,
            "sns": int(links.reach.shape[1]),
            "reach": links.reach.tolist(),
            "status": self._carries > NOTHING,
            **self._journeys.nodes(),
        }

    def stop(self) -> None:
        """Nobody looks any more: a thread that plays it ends soon, and leaves the processor to the
        next world.
        """
        self._stopped = True

    def on(self, until_ms: float) -> dict[str, Any]:
        """Play on until then, or to the end; rows that are new or have changed, by their places."""
        for worlds in self._turns:
            assert isinstance(worlds, Worlds)  # all presets are played by the embedded engine
            self.played_ms = worlds.update_decisions[1]
            if self.played_ms >= until_ms or self._stopped:
                break
        else:
            self.over = True
        outcome = worlds.outcome(0)
        which = np.array(self._watcher.tasks, np.int64)
        found = self._journeys.columns(outcome, which)
        tasks = found["tasks"] | {
            "en": outcome.tasks.en[which],
            "action": outcome.action[which],
            "finished": outcome.finished_ms[which],
        }
        # An action is carried out in the next turn; a task without one is not there yet.
        kept = outcome.action[which] >= 0
        here = found["tenants"]["reached"] <= self.played_ms
        return {
            "until": self.played_ms,
            "tasks": self._changed_rows(
                "tasks", {name: each[kept] for name, each in tasks.items()}
            ),
            "tenants": self._changed_rows(
                "tenants", {k: each[here] for k, each in found["tenants"].items()}
            ),
            "statuses": self._new_statuses(outcome),
            "events": {name: as_list(each) for name, each in found["events"].items()},
            "numbers": self._numbers(outcome),
            "over": self.over,
        }

    def _changed_rows(self, table: str, columns: dict[str, NDArray[Any]]) -> dict[str, list[Any]]:
        """Rows that are new or have changed since the last piece; `k` has their numbers."""
        before, many = self._told[table], len(next(iter(columns.values())))
        old = len(next(iter(before.values()), ()))
        changed = np.arange(many) >= old
        for name, column in columns.items() if old else ():
            now, then = column[:old], before[name]
            changed[:old] |= (now != then) & ~((now != now) & (then != then))  # NaN: not yet
        self._told[table] = columns
        rows = np.flatnonzero(changed)
        return {"k": rows.tolist(), **{name: as_list(each[rows]) for name, each in columns.items()}}

    def _new_statuses(self, outcome: Outcome) -> dict[str, list[Any]]:
        """Statuses sent since the last piece, and [place, when] of those that were taken since."""
        assert outcome.journal is not None
        sent = self._journeys.sent[self._statuses :]
        for place, each in enumerate(sent, self._statuses):
            self._places[each[:3]] = place
        self._statuses += len(sent)
        taken = self._journeys.taken(outcome.journal[self._noted :])
        self._noted = len(outcome.journal)
        arrived = [[self._places[key], round(time, 2)] for key, time in taken.items()]
        return {**sent_columns(sent), "taken": arrived}

    def _numbers(self, outcome: Outcome) -> dict[str, float | None]:
        """Of the tasks that are settled so far: success, updates a second, net utility a task."""
        final = outcome.outcome != PENDING
        weights, seconds = weights_of(self.scenario), self.played_ms / 1000.0
        each = utility(
            weights,
            outcome.action[final],
            outcome.outcome[final],
            delays_ms(outcome)[final],
            outcome.tasks.input_bytes[final],
        )
        given = self.scenario.utility
        price = given.update_weight * given.update_cost_per_dimension * self._carries
        count = int(final.sum())
        net = (float(np.nansum(each)) - price * outcome.updates) / count if count else math.nan
        return {
            "tasks": count,
            "success": float((outcome.outcome[final] == TP).mean()) if count else None,
            "updates": outcome.updates / seconds if seconds > 0 else None,
            "net": net if math.isfinite(net) else None,
        }
