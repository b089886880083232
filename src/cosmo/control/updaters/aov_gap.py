"""Age of version by content: send when the state has moved away from what the EN holds."""

import numpy as np

from cosmo.control.method import Setting
from cosmo.control.updaters.pending import Pending
from cosmo.control.updaters.periodic import Answer
from cosmo.scenario import sn_state_scale
from cosmo.world import UpdateObservation


class AovGapUpdater:
    """Checks every `check_ms`; sends when the largest normalised gap exceeds `threshold`.

    The gap is between the SN's state and the one that the EN has acknowledged, component by
    component on the scales of R18, at the EN where it is largest. While an update is on its way the
    acknowledged state is known to be out of date, so the next one waits for the acknowledgement;
    repeating it every check would cost four times what the paper reports.
    """

    def __init__(
        self, setting: Setting, threshold: float, check_ms: float, timeout_ms: float
    ) -> None:
        self._scale = sn_state_scale(setting.scenario)
        self._threshold, self._check_ms = threshold, check_ms
        self._pending = Pending(setting, timeout_ms)

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Compare."""
        rows = self._pending.rows(nodes)
        self._pending.settle(nodes, rows)
        scale = self._scale[nodes.sn]
        size = scale.shape[1]
        moved = np.abs(nodes.sn_state[:, None, :size] - nodes.acknowledged_state[:, :, :size])
        gap = (moved / scale[:, None, :]).max(axis=(1, 2))
        send = (gap > self._threshold) & self._pending.idle(rows)
        self._pending.send(rows[send], nodes.time_ms[send])
        return send, np.full(len(nodes), self._check_ms)
