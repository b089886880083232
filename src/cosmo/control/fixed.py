"""The paper's fixed rules: they never reject and need no status."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.method import Dispatcher, Method, Setting
from cosmo.world import DispatchObservation

Actions = NDArray[np.int64]


def sns_in_turn(tasks: DispatchObservation) -> Actions:
    """Offload; where there are several SNs, by turns."""
    turns: Actions = 1 + tasks.task % tasks.sns
    return turns


class AllLocal(Method):
    """Runs every task on its EN."""

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Local."""
        return np.zeros(len(tasks), np.int64)


class AllOffload(Method):
    """Offloads every task (by turns where there are several SNs)."""

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Offload."""
        return sns_in_turn(tasks)


class LocalUntilFull(Method):
    """Runs a task on its EN while that accepts, else offloads it."""

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> Actions:
        """Local if there is room."""
        return np.where(tasks.local_room, 0, sns_in_turn(tasks))
