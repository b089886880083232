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
        """Shape of one sample: (numbers of a transition,)."""
        return (self._rows.shape[2],)

    def write(self, runs: Ints, rows: Floats) -> None:
        """One or several transitions of each run, in order."""
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
    """Consecutive decisions of one stream of an episode, two at a time (R22).

    A row starts with the number of its episode; decisions of a stream are written in order, those
    of other streams in between.
    """

    def __init__(self, runs: int, capacity: int, width: int, streams: int = 1) -> None:
        super().__init__(runs, capacity, width)
        # [run, slot] which row is the decision before, counted from the run's first; -1: none.
        self._before = np.full((runs, capacity), -1)
        self._latest = np.full((runs * streams, 2), -1)  # row of each stream, and its episode

    @property
    def sample_shape(self) -> tuple[int, ...]:
        """Shape of one sample: (2, numbers of a transition), for two consecutive decisions."""
        return (2, self._rows.shape[2])

    def write(self, runs: Ints, rows: Floats, streams: Ints | None = None) -> None:
        """One or several decisions, in order; `streams` counts those of all runs, by default one
        each.
        """
        streams = runs if streams is None else streams
        ahead = np.zeros_like(self.written)
        before, numbers = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for place, (run, stream) in enumerate(zip(runs, streams, strict=True)):
            latest, episode = self._latest[stream]
            before[place] = latest if episode == rows[place, 0] else -1
            numbers[place] = self.written[run] + ahead[run]
            self._latest[stream] = numbers[place], rows[place, 0]
            ahead[run] += 1
        kept = numbers >= (self.written + ahead - self._rows.shape[1])[runs]
        self._before[runs[kept], numbers[kept] % self._rows.shape[1]] = before[kept]
        super().write(runs, rows)

    def _oldest(self) -> Ints:
        """[run] the first row that is still there."""
        return np.maximum(self.written - self._rows.shape[1], 0)

    def held(self) -> Ints:
        """How many pairs each run can draw from."""
        return np.asarray((self._before >= self._oldest()[:, None]).sum(axis=1))

    def sample(self, run: int, count: int, random: np.random.Generator) -> Floats:
        """`count` pairs of consecutive rows of one stream: [count, 2, width]."""
        seconds = np.flatnonzero(self._before[run] >= self._oldest()[run])
        chosen = seconds[random.integers(0, len(seconds), count)]
        first = self._before[run, chosen] % self._rows.shape[1]
        pairs: Floats = self._rows[run, np.stack([first, chosen], axis=1)]
        return pairs

    def saved(self) -> Arrays:
        """All that is in it."""
        return super().saved() | {"before": self._before, "latest": self._latest}

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        super().restore(kept)
        self._before, self._latest = kept["before"], kept["latest"]
