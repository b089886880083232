"""The yardstick: decides from the true state of all nodes and links (R15)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.method import Dispatcher, Method, Setting
from cosmo.measure import best_action
from cosmo.world import DispatchObservation


class FullInformation(Method):
    """Takes the faster feasible route, else rejects, from the true state (not deployable)."""

    privileged = True

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """Stateless."""
        return self

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The oracle's choice."""
        if tasks.truth is None:
            raise ValueError("full-information needs the truth, which only a simulation has")
        return best_action(tasks.truth)
