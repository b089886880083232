"""Updates by the clock, and none at all."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.method import Setting
from cosmo.world import UpdateObservation

Answer = tuple[NDArray[np.bool_], NDArray[np.float64]]


class PeriodicUpdater:
    """Sends at time 0 and every `interval_ms` after."""

    def __init__(self, interval_ms: float) -> None:
        self._interval_ms = interval_ms

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Send."""
        return np.ones(len(nodes), np.bool_), np.full(len(nodes), self._interval_ms)


class NeverUpdater:
    """Sends nothing; ENs go by the state of an idle SN."""

    def __init__(self, setting: Setting) -> None:
        self._interval_ms = setting.window_ms

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Do not send, and do not ask again."""
        return np.zeros(len(nodes), np.bool_), np.full(len(nodes), self._interval_ms)
