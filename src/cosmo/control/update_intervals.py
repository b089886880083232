"""A lower limit on the intervals between decisions of SNs, so that every simulated episode ends."""

from collections.abc import Sequence

import numpy as np

from cosmo.errors import InputError
from cosmo.node import Method, UpdateObservation

LEAST_MEAN_MS = 0.1  # between two decisions of an SN; single ones may be closer
_START = 1000  # decisions that are allowed at once


class IntervalCheck:
    """Counts the decisions of all SNs in a batch of worlds, and refuses too many."""

    def __init__(self, method: Method, sns: int, worlds: int) -> None:
        self._method, self._channels, self._decisions = method, sns * worlds, 0

    def note(self, nodes: UpdateObservation) -> None:
        """Count decisions; InputError if intervals are less than 0.1 ms on average."""
        self._decisions += len(nodes)
        if self._decisions > _START and len(nodes):
            self.check(self._decisions, float(np.max(nodes.time_ms)))

    def check(self, decisions: int, time_ms: float) -> None:
        """The same of so many decisions until a time, as compiled code counts them."""
        if decisions > self._channels * (time_ms / LEAST_MEAN_MS + _START):
            raise InputError(
                f"method {type(self._method).__name__}: intervals of the updater must be at least"
                f" {LEAST_MEAN_MS:g} ms on average"
            )


def check_intervals(intervals_ms: Sequence[float]) -> None:
    """InputError if an interval that an agent may choose is shorter than 0.1 ms or infinite."""
    if not len(intervals_ms) or not all(LEAST_MEAN_MS <= each < np.inf for each in intervals_ms):
        raise InputError(
            f"intervals_ms = {list(intervals_ms)}: must be {LEAST_MEAN_MS:g} ms or longer, and"
            " finite"
        )
