"""What an updater has sent and not yet seen acknowledged, for each of its channels."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site, UpdateObservation

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Pending:
    """One channel for each SN of each world: when it last sent, and whether that has arrived.

    With several ENs, an update is acknowledged when all of them have done so. What is not
    acknowledged within `timeout_ms` counts as lost.
    """

    def __init__(self, site: Site, timeout_ms: float) -> None:
        self._sns = len(site.sn)
        self.channels = site.worlds * self._sns
        self._timeout_ms = timeout_ms
        self.sent_ms = np.full(self.channels, -np.inf)  # of the last update
        self._open = np.zeros(self.channels, np.bool_)

    def rows(self, nodes: UpdateObservation) -> Rows:
        """The channel of each row."""
        channel: Rows = nodes.world * self._sns + nodes.sn
        return channel

    def settle(self, nodes: UpdateObservation, rows: Rows) -> Bools:
        """Which rows have just seen their update acknowledged; lost ones are given up."""
        acknowledged: Bools = self._open[rows] & ~self.unconfirmed(nodes, rows)
        lost = nodes.time_ms - self.sent_ms[rows] >= self._timeout_ms
        self._open[rows[acknowledged | lost]] = False
        return acknowledged

    def unconfirmed(self, nodes: UpdateObservation, rows: Rows) -> Bools:
        """Which rows have sent something that not all ENs have acknowledged."""
        oldest = np.where(nodes.heard, nodes.acknowledged_ms, -np.inf)
        oldest = np.where(nodes.reached, oldest, np.inf).min(axis=1)
        unsure: Bools = oldest < self.sent_ms[rows]
        return unsure

    def idle(self, rows: Rows) -> Bools:
        """Which channels have nothing on its way."""
        free: Bools = ~self._open[rows]
        return free

    def send(self, rows: Rows, now: NDArray[np.float64]) -> None:
        """An update leaves on these channels."""
        self._open[rows] = True
        self.sent_ms[rows] = now
