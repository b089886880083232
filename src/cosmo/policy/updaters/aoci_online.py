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
from cosmo.policy.updaters.aoci_formulas import mean, next_beta, threshold
from cosmo.policy.updaters.pending import Pending
from cosmo.policy.updaters.periodic import Answer

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class AociThreshold:
    """Learns H for many independent channels; all times in one unit, cost in that unit squared."""

    def __init__(self, channels: int, cost: float, beta: float, largest_beta: float) -> None:
        self.cost, self.largest_beta = cost, largest_beta
        self.beta = np.full(channels, beta)
        self.cycles = np.zeros(channels)
        self.deliveries = np.zeros(channels)
        self.changes = np.zeros(channels)
        self.delay_sum = np.zeros(channels)

    def delivered(self, rows: Rows, delay: Floats, changed: NDArray[np.bool_]) -> None:
        """An update was acknowledged after `delay`, and was new to the receiver or not."""
        self.deliveries[rows] += 1
        self.changes[rows] += changed
        self.delay_sum[rows] += delay

    def cycle(self, rows: Rows, length: Floats, updates: Floats) -> None:
        """A cycle of these channels has ended."""
        self.beta[rows] = next_beta(
            self.beta[rows],
            self.cycles[rows],
            self.mean_delay(rows),
            length,
            updates,
            self.cost,
            self.largest_beta,
        )
        self.cycles[rows] += 1

    def mean_delay(self, rows: Rows) -> Floats:
        """E[Y] so far."""
        found: Floats = mean(self.delay_sum[rows], self.deliveries[rows])
        return found

    def threshold(self, rows: Rows) -> Floats:
        """H; p counts as 1 until there is a change."""
        share = mean(self.changes[rows], self.deliveries[rows])
        found: Floats = threshold(self.beta[rows], self.mean_delay(rows), share)
        return found


class AociOnlineUpdater(Updater):
    """Sends when nothing is on its way and AoCI has reached the learned threshold.

    Looks every `check_ms` while an update is on its way, else when AoCI will have got there.
    """

    def __init__(self, site: Site, cost_ms2: float, check_ms: float, timeout_ms: float) -> None:
        self._pending = Pending(site, timeout_ms)
        self.check_ms, self.timeout_ms = check_ms, timeout_ms
        channels = self._pending.channels
        first_guess = float(np.sqrt(2.0 * cost_ms2))  # right for p = 1 and no delay
        self.learner = AociThreshold(channels, cost_ms2, first_guess, largest_beta=1000.0)
        self.new_ms = np.zeros(channels)  # generation of the newest update that was new
        self.cycle_updates = np.zeros(channels)
        self._sent = np.full((channels, RAW), np.nan)
        self.held = np.full((channels, RAW), np.nan)  # nothing yet: the first is new

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Take note of acknowledgements, then send or wait."""
        rows, now = self._pending.rows(nodes), nodes.time_ms
        acknowledged = self._pending.settle(nodes, rows)
        if acknowledged.any():
            self._note(rows[acknowledged], now[acknowledged])
        left = self.new_ms[rows] + self.learner.threshold(rows) - now
        idle = self._pending.idle(rows)
        send = idle & (left <= 0.0)
        sending = rows[send]
        self._pending.send(sending, now[send])
        self._sent[sending] = nodes.sn_state[send, :RAW]
        self.cycle_updates[sending] += 1
        checks = np.where(idle & ~send, np.ceil(left / self.check_ms), 1.0)
        return send, np.maximum(checks, 1.0) * self.check_ms

    def _note(self, rows: Rows, now: Floats) -> None:
        changed = (self._sent[rows] != self.held[rows]).any(axis=1)
        self.learner.delivered(rows, now - self._pending.sent_ms[rows], changed)
        rows = rows[changed]
        generated = self._pending.sent_ms[rows]
        self.learner.cycle(rows, generated - self.new_ms[rows], self.cycle_updates[rows])
        self.held[rows] = self._sent[rows]
        self.new_ms[rows] = generated
        self.cycle_updates[rows] = 0
