"""From finished tasks to both agents' rewards: one utility stream, two horizons.

An EN transition is complete when its task is final. An SN transition is complete when its interval
is over and all tasks decided in it are final; it is written in order (R1, R21).
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Intervals:
    """The SN decisions of one episode of many runs (one SN each), and what happened after each."""

    def __init__(
        self, runs: int, window_ms: float, shortest_ms: float, inputs: int, hidden: int
    ) -> None:
        most = math.ceil(window_ms / shortest_ms) + 2
        self._window_ms = window_ms
        self.count = np.zeros(runs, np.int64)
        self.seen = np.zeros((runs, most, inputs), np.float32)
        self.hidden = np.zeros((runs, most, hidden), np.float32)
        self.action = np.zeros((runs, most), np.int64)
        self.start_ms = np.zeros((runs, most))
        self.interval_ms = np.ones((runs, most))
        self.reward = np.zeros((runs, most))
        self.pending = np.zeros((runs, most), np.int64)
        self._written = np.zeros(runs, np.int64)

    def open(
        self,
        runs: Ints,
        seen: Floats,
        hidden: Floats,
        action: Ints,
        now: NDArray[np.float64],
        interval_ms: NDArray[np.float64],
        cost: NDArray[np.float64],
    ) -> None:
        """SNs have decided; the update's cost is the interval's first reward."""
        place = runs, self.count[runs]
        self.seen[place], self.hidden[place], self.action[place] = seen, hidden, action
        self.start_ms[place], self.interval_ms[place] = now, interval_ms
        self.reward[place] -= cost
        self.count[runs] += 1

    def join(self, runs: Ints, now: NDArray[np.float64]) -> Ints:
        """The interval that an EN decision falls into: [u_n, u_n+1)."""
        last = self.count[runs] - 1
        # R5: at the very start of the next interval the EN decides before the SN does.
        following = self.start_ms[runs, last] + self.interval_ms[runs, last]
        interval: Ints = last + ((now >= following) & (following < self._window_ms))
        self.pending[runs, interval] += 1
        return interval

    def settle(self, runs: Ints, intervals: Ints, utility: NDArray[np.float64]) -> None:
        """Tasks of these intervals became final."""
        np.add.at(self.reward, (runs, intervals), utility)
        np.subtract.at(self.pending, (runs, intervals), 1)

    def complete(self, over: NDArray[np.bool_]) -> list[tuple[int, int, bool]]:
        """(run, interval, terminal) of transitions that can be written now, in order."""
        found = []
        for run in range(len(self.count)):
            while True:
                n = int(self._written[run])
                last = n == self.count[run] - 1
                if n >= self.count[run] or self.pending[run, n] or (last and not over[run]):
                    break
                found.append((run, n, bool(last)))
                self._written[run] += 1
        return found
