"""The EN of `cosmo-next`: books, chances and prices; the best route, then the gate."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.next.books import Books, Seen
from cosmo.policy.next.rules import NextRules, measures_of
from cosmo.policy.next.seats import Seats
from cosmo.policy.next.values import NEVER, best_route, weighed

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Layers = Mapping[str, Floats]  # with a leading axis, one a run
Weigh = Callable[..., tuple[Any, Any, Any]]  # `values.weighed`, or the same compiled


@dataclass(slots=True)
class Considered:
    """What the EN knew, what each route would be worth more than a rejection, and the task's own
    fate there.
    """

    seen: Seen
    advantage: Floats  # [row, route]
    fate: Floats  # [row, route]

    def actions(self, margin: float) -> Ints:
        """Of each task the best route, or a rejection unless that is worth more."""
        route, worth = best_route(self.advantage, self.fate, margin)
        reject = self.advantage.shape[1]
        return np.asarray(np.where(worth > 0, route, reject), np.int64)


class NextDispatcher(Dispatcher):
    """Greedy ENs."""

    def __init__(
        self,
        site: Site,
        layers: Layers,
        seats: Seats,
        rules: NextRules,
        weigh: Weigh = weighed,
    ) -> None:
        self.layers, self.rules = layers, rules
        self._seats, self._weigh = seats, weigh
        self.measures = measures_of(rules, site)
        self.books = Books(site, rules)
        self._all_routes = self.books.all_routes

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals are evidence."""
        self.books.observe(feedback)

    def consider(self, tasks: DispatchObservation) -> Considered:
        """Look at the tasks."""
        return self.weighed(tasks, self.books.see(tasks))

    def weighed(self, tasks: DispatchObservation, seen: Seen) -> Considered:
        """What the networks say of what the books have seen."""
        worlds = tasks.world
        before = {name: self._seats.spread(worlds, part) for name, part in seen.before.items()}
        task = {name: self._seats.spread(worlds, part) for name, part in seen.task.items()}
        places = self.books.places(tasks.en)
        if places.ndim > 1:
            places = np.maximum(self._seats.spread(worlds, places), 1.0)  # of empty seats too
        advantage, fate, _ = self._weigh(self.layers, before, task, places, self.measures)
        advantage = self._seats.gathered(worlds, advantage)
        if not self._all_routes:  # where no task fits at all, or nobody is there, none is sent
            advantage = np.where(self.books.routes(tasks.en), advantage, NEVER)
        return Considered(seen, advantage, self._seats.gathered(worlds, fate))

    def commit(self, tasks: DispatchObservation, seen: Seen, actions: Ints) -> None:
        """Write down what was decided."""
        self.books.write(tasks, seen, actions)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """What is worth most."""
        considered = self.consider(tasks)
        actions = considered.actions(self.rules.margin)
        self.commit(tasks, considered.seen, actions)
        return actions
