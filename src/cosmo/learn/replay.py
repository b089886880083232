"""Replay memories of many runs side by side; each samples its own rows with its own stream."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


class Replay:
    """The last `capacity` transitions of each run, as rows of numbers; sampled uniformly."""

    def __init__(self, runs: int, capacity: int, width: int) -> None:
        self._rows = np.zeros((runs, capacity, width), np.float32)
        self.width = width
        self.written = np.zeros(runs, np.int64)  # transitions so far, dropped ones included

    def write(self, runs: Ints, rows: Floats) -> None:
        """One or several transitions of each run, in order."""
        capacity = self._rows.shape[1]
        for run, row in zip(runs.tolist(), rows, strict=True):
            self._rows[run, self.written[run] % capacity] = row
            self.written[run] += 1

    def held(self, run: int) -> int:
        """How many transitions a run can sample from."""
        return int(min(self.written[run], self._rows.shape[1]))

    def sample(self, run: int, count: int, random: np.random.Generator) -> Floats:
        """`count` transitions, with replacement."""
        drawn: Floats = self._rows[run, random.integers(0, self.held(run), count)]
        return drawn


class SequenceReplay(Replay):
    """Consecutive decisions of one episode, two at a time (R22).

    A row starts with the number of its episode; decisions of an episode are written in order.
    """

    def sample(self, run: int, count: int, random: np.random.Generator) -> Floats:
        """`count` pairs of consecutive rows of one episode: [count, 2, width]."""
        capacity, held = self._rows.shape[1], self.held(run)
        oldest = int(self.written[run]) - held
        order = (oldest + np.arange(held)) % capacity
        episode = self._rows[run, order, 0]
        starts = np.flatnonzero(episode[1:] == episode[:-1])
        chosen = starts[random.integers(0, len(starts), count)]
        pairs: Floats = np.stack(
            [self._rows[run, order[chosen]], self._rows[run, order[chosen + 1]]], axis=1
        )
        return pairs

    def ready(self, run: int, count: int) -> bool:
        """Whether there are enough decisions to sample from."""
        return self.held(run) > count
