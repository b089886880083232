"""The last so many numbers, and their quantiles."""

import math

import numpy as np


class Window:
    """Remembers the last `size` samples; all are counted."""

    def __init__(self, size: int) -> None:
        self._samples = np.zeros(size)
        self.count, self.total, self.most = 0, 0.0, 0.0

    def add(self, sample: float) -> None:
        """One more."""
        self._samples[self.count % len(self._samples)] = sample
        self.count += 1
        self.total += sample
        self.most = max(self.most, sample)

    def quantile(self, share: float) -> float:
        """Of those that are remembered; NaN if there is none."""
        held = min(self.count, len(self._samples))
        return float(np.quantile(self._samples[:held], share)) if held else math.nan


class Overhead:
    """What the path adds to what the books say: p99, worked out anew every now and then."""

    def __init__(self, most_ms: float) -> None:
        self._window, self.most_ms, self._p99 = Window(512), most_ms, 0.0

    def add(self, sample_ms: float) -> None:
        """A task took so much longer on its way than the books say."""
        self._window.add(max(sample_ms, 0.0))
        if self._window.count % 32 == 0 or self._window.count < 8:
            self._p99 = self._window.quantile(0.99)

    def quantile(self, share: float) -> float:
        """Of what was measured lately; NaN if nothing was."""
        return self._window.quantile(share)

    def guard_ms(self) -> float:
        """What to subtract from budgets."""
        return min(self._p99, self.most_ms)


class Lead:
    """How much earlier messages must leave so that an emulated link, the real way included, takes
    as long as it should on average; found by correcting it after every message.
    """

    def __init__(self, step: float = 0.05) -> None:
        self._step = step
        self.ms = 0.0

    def correct(self, extra_ms: float) -> None:
        """A message and its answer took so much longer than they should, or shorter."""
        self.ms = max(self.ms + self._step * extra_ms, 0.0)
