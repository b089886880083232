"""The yardstick: decides from the true state of all nodes and links (R15)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.measure import best_action
from cosmo.node import Dispatcher, DispatchObservation, Method, Site
from cosmo.world import Truth


class Yardstick(Dispatcher):
    """Is handed the truth, which only a simulation has; such a method says `privileged`."""

    def decide_knowing(self, tasks: DispatchObservation, truth: Truth) -> NDArray[np.int64]:
        """An action for each row, from what is true."""
        raise NotImplementedError


class FullInformation(Method, Yardstick):
    """Takes the faster feasible route, else rejects, from the true state (not deployable)."""

    privileged = True

    def dispatcher(self, site: Site) -> Dispatcher:
        """Stateless."""
        return self

    def decide_knowing(self, tasks: DispatchObservation, truth: Truth) -> NDArray[np.int64]:
        """The oracle's choice."""
        return best_action(truth)
