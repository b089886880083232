"""The paper's fixed rules: they never reject and need no status."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Method, Site

Actions = NDArray[np.int64]


def sns_in_turn(tasks: DispatchObservation) -> Actions:
    """Offload; where there are several SNs, by turns."""
    turns: Actions = 1 + tasks.task % tasks.reached.sum(axis=1)
    return turns


class AllLocal(Method, Dispatcher):
    """Runs every task on its EN."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Local."""
        return np.zeros(len(tasks), np.int64)


class AllOffload(Method, Dispatcher):
    """Offloads every task (by turns where there are several SNs)."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Offload."""
        return sns_in_turn(tasks)


class LocalUntilFull(Method, Dispatcher):
    """Runs a task on its EN while that accepts, else offloads it."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Local if there is room."""
        return np.where(tasks.local_room, 0, sns_in_turn(tasks))
