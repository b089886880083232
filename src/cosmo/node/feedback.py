"""What an EN hears of its own tasks, when it can know (R29)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DONE = 1  # the result is there (of a local task: it has finished)
REFUSED = 2  # the node had no room; of an SN the EN learns it by a notice (R27)
GIVEN_UP = 3  # by the EN itself: rejected, or abandoned
EXPIRED = 4  # no answer by the deadline, where SNs may fail (R38); a later answer is not heard


@dataclass(slots=True)
class Feedback:
    """Tasks of ENs that have ended, one a row; those of one world in order of time.

    Whether a rejection was right is not here: no node can know it.
    """

    world: NDArray[np.int64]
    en: NDArray[np.int64]
    task: NDArray[np.int64]  # counts the EN's own tasks, as in `DispatchObservation`
    action: NDArray[np.int64]
    fate: NDArray[np.int64]  # DONE, REFUSED, GIVEN_UP or EXPIRED
    in_time: NDArray[np.bool_]  # DONE within the deadline
    time_ms: NDArray[np.float64]  # when the EN learned of it

    def __len__(self) -> int:
        return len(self.world)

    def rows(self, chosen: NDArray[np.bool_]) -> "Feedback":
        """Some of the rows."""
        return Feedback(*(getattr(self, name)[chosen] for name in self.__slots__))
