"""What an updater has sent and not yet seen acknowledged, for each of its channels."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.method import Setting
from cosmo.world import UpdateObservation

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Pending:
    """One channel for each SN of each world: at most one update is on its way at a time.

    With several ENs, an update is acknowledged when all of them have done so. What is not
    acknowledged within `timeout_ms` counts as lost.
    """

    def __init__(self, setting: Setting, timeout_ms: float) -> None:
        self._sns = setting.scenario.sn.count
        self.channels = len(setting.episodes) * self._sns
        self._timeout_ms = timeout_ms
        self.sent_ms = np.full(self.channels, -np.inf)  # of the last update
        self._open = np.zeros(self.channels, np.bool_)

    def rows(self, nodes: UpdateObservation) -> Rows:
        """The channel of each row."""
        channel: Rows = nodes.world * self._sns + nodes.sn
        return channel

    def settle(self, nodes: UpdateObservation, rows: Rows) -> Bools:
        """Which rows have just seen their update acknowledged; lost ones are given up."""
        known = nodes.acknowledged_source_ms.min(axis=1) >= self.sent_ms[rows]
        acknowledged: Bools = self._open[rows] & known
        lost = nodes.time_ms - self.sent_ms[rows] >= self._timeout_ms
        self._open[rows[acknowledged | lost]] = False
        return acknowledged

    def idle(self, rows: Rows) -> Bools:
        """Which channels have nothing on its way."""
        free: Bools = ~self._open[rows]
        return free

    def send(self, rows: Rows, now: NDArray[np.float64]) -> None:
        """An update leaves on these channels."""
        self._open[rows] = True
        self.sent_ms[rows] = now
