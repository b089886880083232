"""The yardsticks: they decide from the true state of all nodes and links (R15, R40)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Method, Site
from cosmo.world import Truth


class Yardstick(Dispatcher):
    """Is handed the truth, which only a simulation has; such a method says `privileged`."""

    behind_all = False  # whether it lets all pass that is on its way (`Batch.truth`)

    def decide_knowing(self, tasks: DispatchObservation, truth: Truth) -> NDArray[np.int64]:
        """An action for each row, from what is true."""
        raise NotImplementedError


def best_route(seen: Any, truth: Any, row: Any) -> Any:
    """The feasible route with the smallest delay, else rejection: what compiled worlds are played
    by, handed the truth in place of a memory.
    """
    best, least = truth.feasible.shape[1], np.inf
    for route in range(truth.feasible.shape[1]):
        if truth.feasible[row, route] and truth.delay_ms[row, route] < least:
            best, least = route, truth.delay_ms[row, route]
    return best


class FullInformation(Method, Yardstick):
    """Takes the faster feasible route by the true state, else rejects (not deployable)."""

    reference = "a yardstick, for comparison only"
    plain = (
        "Knows the true state of every node, which no node can know; takes the faster route that is"
        " in time."
    )
    privileged = True

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return this object, which keeps no state."""
        return self

    def decide_knowing(self, tasks: DispatchObservation, truth: Truth) -> NDArray[np.int64]:
        """Return the action of the fastest feasible route for each task, [row]."""
        rows = range(len(tasks))
        return np.array([best_route(tasks, truth, row) for row in rows], np.int64)


class SharedKnowledge(FullInformation):
    """Takes the fastest route, knowing all nodes and all tasks in flight (not deployable)."""

    reference = "a yardstick, for comparison only"
    plain = (
        "Knows the true state of every node and every task in flight, which no node can know; takes"
        " the fastest route that is in time."
    )
    behind_all = True
