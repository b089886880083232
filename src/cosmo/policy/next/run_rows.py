"""Worlds arranged by the training run whose networks act in them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.int64]


class RunRows:
    """Arranges all worlds of a run in one row, so that its networks are called once."""

    def __init__(self, runs: Sequence[int], count: int) -> None:
        self.run = np.array(runs, np.int64)
        self._column = np.zeros(len(runs), np.int64)
        for run in range(count):
            own = np.flatnonzero(self.run == run)
            self._column[own] = np.arange(len(own))
        self._shape = count, int(self._column.max()) + 1

    @property
    def worlds(self) -> int:
        """The number of worlds."""
        return len(self.run)

    def spread(self, worlds: Ints, rows: NDArray[np.floating]) -> Floats:
        """Arrange rows of these worlds as [run, column, …]; places without a row are 0."""
        if self._shape == (1, 1):  # a real node: one controller, one world
            return rows[None]
        found = np.zeros((*self._shape, *rows.shape[1:]), rows.dtype)
        found[self.run[worlds], self._column[worlds]] = rows
        return found

    def gathered(self, worlds: Ints, spread: Floats) -> Floats:
        """The inverse of `spread`: one row for each of these worlds."""
        if self._shape == (1, 1):
            return np.asarray(spread[0])
        return np.asarray(spread[self.run[worlds], self._column[worlds]])
