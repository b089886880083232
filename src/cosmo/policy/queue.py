"""First come, first served onto the earliest slot, as books: the one queue of every policy."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def first_slots(slots: Ints, before: Sequence[int] = ()) -> Floats:
    """[*before, *node, slot] when each slot of nodes will be free: at once; missing ones never."""
    free = np.zeros((*before, *slots.shape, int(slots.max())))
    free[..., np.arange(free.shape[-1]) >= slots[..., None]] = np.inf
    return free


def append(free: Floats, place: tuple[Ints, ...], arrival: Floats, service: Floats) -> Floats:
    """Put a task that arrives then on the earliest slot at each place; when it will be done."""
    slot = free[place].argmin(axis=1)
    finish: Floats = np.maximum(arrival, free[(*place, slot)]) + service
    free[(*place, slot)] = finish
    return finish
