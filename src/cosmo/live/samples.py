"""Statistics of delay samples in ms: histograms, quantiles of recent samples, path overhead."""

import math
from bisect import bisect_left
from itertools import accumulate

import numpy as np

# Upper bounds of a histogram's buckets in ms: from a decision of a simple rule to a long deadline.
BOUNDS_MS = (
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0,
    1000.0, 2500.0,
)  # fmt: skip


class Histogram:
    """All samples since the start, in ms: how many are within each bound, and their sum."""

    def __init__(self) -> None:
        self._within = [0] * (len(BOUNDS_MS) + 1)
        self.count, self.total, self.most = 0, 0.0, 0.0

    def add(self, sample_ms: float) -> None:
        """Count one sample, in ms."""
        self._within[bisect_left(BOUNDS_MS, sample_ms)] += 1
        self.count += 1
        self.total += sample_ms
        self.most = max(self.most, sample_ms)

    def cumulative(self) -> list[int]:
        """The number of samples up to each bound, and of all."""
        return list(accumulate(self._within))


class Window(Histogram):
    """A histogram that also remembers the last `size` samples."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._samples = np.zeros(size)

    def add(self, sample_ms: float) -> None:
        """Count and remember one sample."""
        self._samples[self.count % len(self._samples)] = sample_ms
        super().add(sample_ms)

    def quantile(self, share: float) -> float:
        """Of the samples that are remembered, in ms; NaN if there is none."""
        held = min(self.count, len(self._samples))
        return float(np.quantile(self._samples[:held], share)) if held else math.nan


class PathOverhead:
    """How much longer tasks take on the network path than expected: the p99 of recent samples."""

    def __init__(self, most_ms: float) -> None:
        self.window, self.most_ms, self._p99 = Window(512), most_ms, 0.0

    def add(self, sample_ms: float) -> None:
        """Add how much longer than expected the transfer of one task took, in ms."""
        self.window.add(max(sample_ms, 0.0))
        if self.window.count % 32 == 0 or self.window.count < 8:
            self._p99 = self.window.quantile(0.99)

    def guard_ms(self) -> float:
        """The time to subtract from tasks' remaining time, in ms; at most `most_ms`."""
        return min(self._p99, self.most_ms)


class EmulationLead:
    """How much earlier messages must leave so that an emulated link takes its specified time.

    The real path is part of that time. The lead is corrected after every message.
    """

    def __init__(self, step: float = 0.05) -> None:
        self._step = step
        self.ms = 0.0

    def correct(self, extra_ms: float) -> None:
        """Correct by one round trip, which took `extra_ms` longer than specified (or shorter)."""
        self.ms = max(self.ms + self._step * extra_ms, 0.0)
