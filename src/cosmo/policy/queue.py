"""An estimate of a first-come-first-served queue: when each slot of a node will be free."""

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
    """Put a task on the slot that is free first, at each place; when it will be done, in ms."""
    slot = free[place].argmin(axis=1)
    finish: Floats = np.maximum(arrival, free[(*place, slot)]) + service
    free[(*place, slot)] = finish
    return finish
