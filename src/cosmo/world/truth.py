"""What no policy in the field could know: for yardsticks, labels, training and measurement.

No policy receives it unasked: `Batch.truth()` and `Batch.settled()` are there for who asks by name.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Truth(NamedTuple):
    """The true state behind pending EN decisions (R15), with their rows."""

    delay_ms: Floats  # [row, route] end-to-end delay on route 0 (local), k (the k-th SN reached)
    feasible: Bools  # [row, route] the node has room and the delay is within the deadline
    sn_state: Floats  # [row, k, field] the SNs' states at this very moment
    sn_up: Bools  # [row, k] whether the SN is up (R38)
    place: Ints  # [row] the task's number in its episode, where ENs count their own (R41)

    def rows(self, chosen: Any) -> "Truth":
        """Some of the rows."""
        return Truth(*(column[chosen] for column in self))


@dataclass(slots=True)
class Settled:
    """Tasks whose outcome became final since the last turn; those of one world in order of time."""

    world: Ints
    task: Ints
    en: Ints
    action: Ints
    outcome: Ints  # codes of `cosmo.world.records`
    time_ms: Floats

    def __len__(self) -> int:
        return len(self.world)
