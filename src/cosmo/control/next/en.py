"""The EN of `cosmo-next`: books, chances and prices; gate first, then route."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.control.next.books import Books, Seen
from cosmo.control.next.seats import Seats
from cosmo.control.next.values import advantages
from cosmo.scenario import Scenario
from cosmo.world import DispatchObservation, Settled

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Layers = Mapping[str, Floats]  # with a leading axis, one a run


@dataclass(slots=True)
class Considered:
    """What the EN knew, and what each route would be worth more than a rejection."""

    seen: Seen
    advantage: Floats  # [row, route]
    rejected: Floats  # V after a rejection


class NextDispatcher:
    """Greedy ENs."""

    def __init__(
        self,
        scenario: Scenario,
        layers: Layers,
        seats: Seats,
        failure: float,
        evidence: bool = True,
    ) -> None:
        self.layers, self.failure = layers, failure
        self._seats = seats
        self.books = Books(scenario, seats.worlds, evidence)

    def observe(self, settled: Settled) -> None:
        """Results and refusals are evidence."""
        self.books.observe(settled)

    def consider(self, tasks: DispatchObservation) -> Considered:
        """Look at the tasks."""
        seen = self.books.see(tasks)
        worlds = tasks.world
        before = {name: self._seats.spread(worlds, part) for name, part in seen.before.items()}
        task = {name: self._seats.spread(worlds, part) for name, part in seen.task.items()}
        advantage, rejected = advantages(
            self.layers, before, task, self.books.sn_places, self.failure
        )
        return Considered(
            seen, self._seats.gathered(worlds, advantage), self._seats.gathered(worlds, rejected)
        )

    def commit(self, tasks: DispatchObservation, considered: Considered, actions: Ints) -> None:
        """Write down what was decided."""
        self.books.write(tasks, considered.seen, actions)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """Gate first: reject unless a route is worth more; then the best route."""
        considered = self.consider(tasks)
        actions = gate_then_route(considered.advantage)
        self.commit(tasks, considered, actions)
        return actions


def gate_then_route(advantage: Floats) -> Ints:
    """Actions from advantages over rejection."""
    best = advantage.argmax(axis=1)
    found: Ints = np.where(advantage.max(axis=1) > 0, best, advantage.shape[1])
    return found
