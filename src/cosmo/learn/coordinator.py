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
    """The SN decisions of one episode of many runs, and what happened after each.

    A run has a stream of them for each link: one SN's decisions about one EN (`turn`). `turn.act`
    opens them and says how many tasks of that EN were decided in each. Tasks that are decided after
    the window's end belong to the last one, so that every task is in one of each stream.
    """

    def __init__(
        self, streams: int, window_ms: float, config: TrainingConfig, returns: int = 0
    ) -> None:
        """`returns` is how often an SN comes back from an outage at most, and is asked anew."""
        self.most = most = math.ceil(window_ms / min(config.sn.intervals_ms)) + 2 + returns
        self.count = np.zeros(streams, np.int64)
        self.seen = np.zeros((streams, most, config.sn_inputs), np.float32)
        self.before = np.zeros((streams, most, config.sn.hidden), np.float32)
        self.action = np.zeros((streams, most), np.int64)
        self.start_ms = np.zeros((streams, most))
        self.length_ms = np.ones((streams, most))
        self.reward = np.zeros((streams, most))
        self.pending = np.zeros((streams, most), np.int64)
        self._written = np.zeros(streams, np.int64)

    def settle(self, streams: Ints, intervals: Ints, utility: NDArray[np.float64]) -> None:
        """Tasks of these intervals became final."""
        np.add.at(self.reward, (streams, intervals), utility)
        np.subtract.at(self.pending, (streams, intervals), 1)

    def complete(self, over: NDArray[np.bool_]) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """(stream, interval, terminal) of transitions that can be written now, in order.

        The last one of a stream waits until its episode is `over`.
        """
        found = []
        for stream, (first, count) in enumerate(
            zip(self._written.tolist(), self.count.tolist(), strict=True)
        ):
            ready = count if over[stream] else count - 1
            waiting = np.flatnonzero(self.pending[stream, first:ready])
            end = first + int(waiting[0]) if len(waiting) else max(ready, first)
            found += [(stream, n, n == count - 1) for n in range(first, end)]
            self._written[stream] = end
        streams, numbers, terminal = zip(*found, strict=True) if found else ((), (), ())
        ids, places = np.array(streams, np.int64), np.array(numbers, np.int64)
        return ids, places, np.array(terminal, np.bool_)
