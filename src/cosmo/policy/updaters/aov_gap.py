"""Age of version by content: send when the state has moved away from what the EN holds."""

import numpy as np

from cosmo.node import RAW, Site, UpdateObservation, Updater
from cosmo.policy.updaters.pending import Pending
from cosmo.policy.updaters.periodic import Answer


class AovGapUpdater(Updater):
    """Checks every `check_ms`; sends when the largest normalised gap exceeds `threshold`.

    The gap is between the SN's state and the one that an EN holds, component by component on the
    scales of R18, at the EN where it is largest. While an update is on its way the EN is taken to
    hold it already: comparing with what is acknowledged would repeat it at every check, waiting for
    the acknowledgement would cap the cost below the paper's. What is not acknowledged within
    `timeout_ms` may be lost, and nobody knows which of the two states the EN holds: moving away
    from either is a reason to send.
    """

    def __init__(self, site: Site, threshold: float, check_ms: float, timeout_ms: float) -> None:
        self._scale, self._idle = site.state_scale(site.sn), site.sn.idle_state
        self.threshold, self.check_ms, self.timeout_ms = threshold, check_ms, timeout_ms
        self._pending = Pending(site, timeout_ms)
        self._sent = np.zeros((self._pending.channels, RAW))

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Compare."""
        rows = self._pending.rows(nodes)
        self._pending.settle(nodes, rows)
        scale = self._scale[nodes.sn]
        # R14: an EN that has heard nothing takes the SN to be idle.
        held = np.where(nodes.heard[:, :, None], nodes.acknowledged, self._idle[nodes.sn][:, None])
        own = nodes.sn_state[:, :RAW]
        gap = (np.abs(own[:, None] - held) / scale[:, None]).max(axis=2)
        gap = np.where(nodes.reached, gap, 0.0).max(axis=1)
        unsure = self._pending.unconfirmed(nodes, rows)
        gap_to_sent = (np.abs(own - self._sent[rows]) / scale).max(axis=1)
        lost = unsure & self._pending.idle(rows)
        gap = np.where(lost, np.maximum(gap, gap_to_sent), np.where(unsure, gap_to_sent, gap))
        send = gap > self.threshold
        self._pending.send(rows[send], nodes.time_ms[send])
        self._sent[rows[send]] = own[send]
        return send, np.full(len(nodes), self.check_ms)
