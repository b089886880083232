"""From finished tasks to both agents' rewards: one utility stream, two horizons.

An EN transition is complete when its task is final. An SN transition is complete when its interval
is over and all tasks decided in it are final; it is written in order (R1, R21).
"""

import math

import numpy as np
from numpy.typing import NDArray

from cosmo.learn.config import TrainingConfig

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Intervals:
    """The SN decisions of one episode of many runs (one SN each), and what happened after each.

    `turn.act` opens them and says how many tasks were decided in each. Tasks that are decided after
    the window's end belong to the last one, so that every task is in one of them.
    """

    def __init__(
        self, runs: int, window_ms: float, config: TrainingConfig, returns: int = 0
    ) -> None:
        """`returns` is how often an SN comes back from an outage at most, and is asked anew."""
        self.most = most = math.ceil(window_ms / min(config.sn.intervals_ms)) + 2 + returns
        self.count = np.zeros(runs, np.int64)
        self.seen = np.zeros((runs, most, config.sn_inputs), np.float32)
        self.before = np.zeros((runs, most, config.sn.hidden), np.float32)
        self.action = np.zeros((runs, most), np.int64)
        self.start_ms = np.zeros((runs, most))
        self.length_ms = np.ones((runs, most))
        self.reward = np.zeros((runs, most))
        self.pending = np.zeros((runs, most), np.int64)
        self._written = np.zeros(runs, np.int64)

    def settle(self, runs: Ints, intervals: Ints, utility: NDArray[np.float64]) -> None:
        """Tasks of these intervals became final."""
        np.add.at(self.reward, (runs, intervals), utility)
        np.subtract.at(self.pending, (runs, intervals), 1)

    def complete(self, over: NDArray[np.bool_]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """(run, interval, terminal) of transitions that can be written now, in order.

        The last one waits until the run's episode is over.
        """
        found = []
        for run, (first, count) in enumerate(
            zip(self._written.tolist(), self.count.tolist(), strict=True)
        ):
            ready = count if over[run] else count - 1
            waiting = np.flatnonzero(self.pending[run, first:ready])
            end = first + int(waiting[0]) if len(waiting) else max(ready, first)
            found += [(run, n, n == count - 1) for n in range(first, end)]
            self._written[run] = end
        runs, numbers, terminal = zip(*found, strict=True) if found else ((), (), ())
        return np.array(runs, np.int64), np.array(numbers, np.int64), np.array(terminal, np.bool_)
