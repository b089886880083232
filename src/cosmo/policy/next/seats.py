"""Which run's networks act in which world."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


class Seats:
    """Worlds of a run sit side by side in its row, so that a run's networks are called once."""

    def __init__(self, runs: Sequence[int], count: int) -> None:
        self.run = np.array(runs, np.int64)
        self._seat = np.zeros(len(runs), np.int64)
        for run in range(count):
            own = np.flatnonzero(self.run == run)
            self._seat[own] = np.arange(len(own))
        self._shape = count, int(self._seat.max()) + 1

    @property
    def worlds(self) -> int:
        """How many there are."""
        return len(self.run)

    def spread(self, worlds: Ints, rows: NDArray[np.floating]) -> Floats:
        """[run, seat, …] from rows of these worlds."""
        if self._shape == (1, 1):  # a real node: one controller, one world
            return rows[None]
        found = np.zeros((*self._shape, *rows.shape[1:]), rows.dtype)
        found[self.run[worlds], self._seat[worlds]] = rows
        return found

    def gathered(self, worlds: Ints, spread: Floats) -> Floats:
        """The inverse."""
        if self._shape == (1, 1):
            return np.asarray(spread[0])
        return np.asarray(spread[self.run[worlds], self._seat[worlds]])
