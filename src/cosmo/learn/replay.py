"""Replay memories of many runs side by side; each samples its own rows with its own stream."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class Replay:
    """The last `capacity` transitions of each run, as rows of numbers; sampled uniformly."""

    def __init__(self, runs: int, capacity: int, width: int) -> None:
        self._rows = np.zeros((runs, capacity, width), np.float32)
        self.written = np.zeros(runs, np.int64)  # transitions so far, dropped ones included

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Of one sample."""
        return (self._rows.shape[2],)

    def write(self, runs: Ints, rows: Floats) -> None:
        """One or several transitions of each run, in order."""
        self._put(runs, rows)

    def _put(self, runs: Ints, rows: Floats) -> tuple[Ints, Ints]:
        """Write, and return (run, slot) of what was written."""
        capacity = self._rows.shape[1]
        order = np.argsort(runs, kind="stable")
        runs, rows = runs[order], rows[order]
        counts = np.bincount(runs, minlength=len(self.written))
        rank = np.arange(len(runs)) - (np.cumsum(counts) - counts)[runs]
        kept = rank >= (counts - capacity)[runs]  # of more than fits, the last ones stay
        runs, rank = runs[kept], rank[kept]
        place = runs, (self.written[runs] + rank) % capacity
        self._rows[place] = rows[kept]
        self.written += counts
        return place

    def held(self) -> Ints:
        """How many samples each run can draw from."""
        return np.minimum(self.written, self._rows.shape[1])

    def sample(self, run: int, count: int, random: np.random.Generator) -> Floats:
        """`count` transitions, with replacement."""
        held = min(int(self.written[run]), self._rows.shape[1])
        drawn: Floats = self._rows[run, random.integers(0, held, count)]
        return drawn

    def saved(self) -> Arrays:
        """All that is in it; rows that were never written are left out."""
        used = int(np.minimum(self.written, self._rows.shape[1]).max())
        return {"rows": self._rows[:, :used], "written": self.written}

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        self._rows[:, : kept["rows"].shape[1]] = kept["rows"]
        self.written = kept["written"]


class SequenceReplay(Replay):
    """Consecutive decisions of one episode, two at a time (R22).

    A row starts with the number of its episode; decisions of an episode are written in order.
    """

    def __init__(self, runs: int, capacity: int, width: int) -> None:
        super().__init__(runs, capacity, width)
        self._follows = np.zeros((runs, capacity), np.bool_)  # on the row before, in its episode

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Two decisions."""
        return (2, self._rows.shape[2])

    def write(self, runs: Ints, rows: Floats) -> None:
        """One or several decisions of each run, in order."""
        capacity = self._rows.shape[1]
        empty = self.written == 0
        run, slot = self._put(runs, rows)
        episode = self._rows[:, :, 0]
        self._follows[run, slot] = episode[run, slot] == episode[run, slot - 1]
        self._follows[empty & (self.written <= capacity), 0] = False
        full = np.flatnonzero(self.written >= capacity)
        self._follows[full, self.written[full] % capacity] = False  # the oldest follows on none

    def held(self) -> Ints:
        """How many pairs each run can draw from."""
        return np.asarray(self._follows.sum(axis=1))

    def sample(self, run: int, count: int, random: np.random.Generator) -> Floats:
        """`count` pairs of consecutive rows of one episode: [count, 2, width]."""
        seconds = np.flatnonzero(self._follows[run])
        chosen = seconds[random.integers(0, len(seconds), count)]
        pairs: Floats = self._rows[run, np.stack([chosen - 1, chosen], axis=1)]
        return pairs

    def saved(self) -> Arrays:
        """All that is in it."""
        return super().saved() | {"follows": self._follows}

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        super().restore(kept)
        self._follows = kept["follows"]
