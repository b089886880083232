"""Age of changed information with a threshold that is learned online.

AoCI at the receiver is the time since the newest delivered update *that brought something new* was
generated. A cycle runs from the generation of one such update to that of the next; it lasts X and
holds N updates. The average of X²/2 (the area under the age, up to a constant) plus a cost for each
update, per unit of time, is least for the root β of

    E[X²/2 + cost·N − β·X] = 0,

which a stochastic approximation finds from what is observed: after the k-th cycle

    β ← β + η_k·(X²/2 + cost·N − β·X),   η_k = 1 / ((k + 2)·E[Y]),

with Y the delay from sending to acknowledgement. If a delivery brings news with probability p,
then (1 − p)/p updates on average fail to before one does, and the optimal policy sends whenever the
channel is idle and AoCI ≥ H = max(0, β − E[Y]·(1 − p)/p).
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import RAW, Site, UpdateObservation, Updater
from cosmo.policy.updaters.pending import Pending
from cosmo.policy.updaters.periodic import Answer

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class AociThreshold:
    """Learns H for many independent channels; all times in one unit, cost in that unit squared."""

    def __init__(self, channels: int, cost: float, beta: float, largest_beta: float) -> None:
        self._cost, self._largest = cost, largest_beta
        self._beta = np.full(channels, beta)
        self._cycles = np.zeros(channels)
        self._deliveries = np.zeros(channels)
        self._changes = np.zeros(channels)
        self._delay_sum = np.zeros(channels)

    def delivered(self, rows: Rows, delay: Floats, changed: NDArray[np.bool_]) -> None:
        """An update was acknowledged after `delay`, and was new to the receiver or not."""
        self._deliveries[rows] += 1
        self._changes[rows] += changed
        self._delay_sum[rows] += delay

    def cycle(self, rows: Rows, length: Floats, updates: Floats) -> None:
        """A cycle of these channels has ended."""
        step = 1.0 / ((self._cycles[rows] + 2.0) * self.mean_delay(rows))
        error = 0.5 * length**2 + self._cost * updates - self._beta[rows] * length
        self._beta[rows] = np.clip(self._beta[rows] + step * error, 0.0, self._largest)
        self._cycles[rows] += 1

    def mean_delay(self, rows: Rows) -> Floats:
        """E[Y] so far."""
        mean: Floats = self._delay_sum[rows] / np.maximum(self._deliveries[rows], 1.0)
        return mean

    def threshold(self, rows: Rows) -> Floats:
        """H; p counts as 1 until there is a change."""
        share = self._changes[rows] / np.maximum(self._deliveries[rows], 1.0)
        share = np.where(share > 0, share, 1.0)
        limit: Floats = self._beta[rows] - self.mean_delay(rows) * (1.0 - share) / share
        return np.maximum(0.0, limit)


class AociOnlineUpdater(Updater):
    """Sends when nothing is on its way and AoCI has reached the learned threshold.

    Looks every `check_ms` while an update is on its way, else when AoCI will have got there.
    """

    def __init__(self, site: Site, cost_ms2: float, check_ms: float, timeout_ms: float) -> None:
        self._pending = Pending(site, timeout_ms)
        self._check_ms = check_ms
        channels = self._pending.channels
        first_guess = float(np.sqrt(2.0 * cost_ms2))  # right for p = 1 and no delay
        self._learner = AociThreshold(channels, cost_ms2, first_guess, largest_beta=1000.0)
        self._new_ms = np.zeros(channels)  # generation of the newest update that was new
        self._cycle_updates = np.zeros(channels)
        self._sent = np.full((channels, RAW), np.nan)
        self._held = np.full((channels, RAW), np.nan)  # nothing yet: the first is new

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Take note of acknowledgements, then send or wait."""
        rows, now = self._pending.rows(nodes), nodes.time_ms
        acknowledged = self._pending.settle(nodes, rows)
        if acknowledged.any():
            self._note(rows[acknowledged], now[acknowledged])
        left = self._new_ms[rows] + self._learner.threshold(rows) - now
        idle = self._pending.idle(rows)
        send = idle & (left <= 0.0)
        sending = rows[send]
        self._pending.send(sending, now[send])
        self._sent[sending] = nodes.sn_state[send, :RAW]
        self._cycle_updates[sending] += 1
        checks = np.where(idle & ~send, np.ceil(left / self._check_ms), 1.0)
        return send, np.maximum(checks, 1.0) * self._check_ms

    def _note(self, rows: Rows, now: Floats) -> None:
        changed = (self._sent[rows] != self._held[rows]).any(axis=1)
        self._learner.delivered(rows, now - self._pending.sent_ms[rows], changed)
        rows = rows[changed]
        generated = self._pending.sent_ms[rows]
        self._learner.cycle(rows, generated - self._new_ms[rows], self._cycle_updates[rows])
        self._held[rows] = self._sent[rows]
        self._new_ms[rows] = generated
        self._cycle_updates[rows] = 0
