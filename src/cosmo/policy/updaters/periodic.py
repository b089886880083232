"""Updates by the clock, and none at all."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import LATENCY, REQUESTS, SnStates, UpdateObservation, Updater

Answer = tuple[NDArray[np.bool_], NDArray[np.float64]]


class PeriodicUpdater(Updater):
    """Sends at time 0 and every `interval_ms` after."""

    def __init__(self, interval_ms: float) -> None:
        self.interval_ms = interval_ms

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Send."""
        return np.ones(len(nodes), np.bool_), np.full(len(nodes), self.interval_ms)


class ProbeUpdater(PeriodicUpdater):
    """The same with what load balancers ask for: requests in the node and its recent latency."""

    def encode(self, states: SnStates) -> NDArray[np.float64]:
        """[row, (requests, latency in ms)]."""
        return states.state[:, [REQUESTS, LATENCY]]


class NeverUpdater(Updater):
    """Sends nothing; ENs go by the state of an idle SN."""

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Do not send, and do not ask again."""
        return np.zeros(len(nodes), np.bool_), np.full(len(nodes), np.inf)
