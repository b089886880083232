"""Books of one's own, compiled: `policy.dispatchers.books`, with the pauses of `back_off`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DONE, REFUSED, Dispatcher
from cosmo.policy.dispatchers import BackOffDispatcher, SelfTrackingDispatcher
from cosmo.world.compiled import compiled

Floats = NDArray[np.float64]


class Books(NamedTuple):
    """What ENs have written down of SNs."""

    slot_free: Floats  # [world, EN, k, slot]
    finish: Floats  # [world, EN, k, entry]
    reserved: Floats
    pause_ms: float
    paused_until: Floats  # [world, EN, k]


def books_of(dispatcher: Dispatcher) -> Books:
    """The books of a dispatcher, as it begins; empty if it keeps none."""
    if not isinstance(dispatcher, SelfTrackingDispatcher):
        nothing = np.zeros((0, 0, 0, 0))
        return Books(nothing, nothing, nothing, 0.0, np.zeros((0, 0, 0)))
    pause_ms, paused = 0.0, np.full(dispatcher.finish.shape[:3], -np.inf)
    if isinstance(dispatcher, BackOffDispatcher):
        pause_ms, paused = float(dispatcher.pause_ms), dispatcher.paused_until
    return Books(dispatcher.slot_free, dispatcher.finish, dispatcher.reserved, pause_ms, paused)


@compiled
def by_books(known, books, turn, row, column, needed, arrival):
    """`SelfTrackingDispatcher.would_decide`: the wait at an SN, and whether it may be sent to."""
    task, sn = turn.dispatch[row], turn.reached[row, column]
    free = books.slot_free[task.world, task.en, column]
    earliest = free[0]
    for slot in range(1, free.size):
        earliest = min(earliest, free[slot])
    reserved, held = 0.0, 0
    finish = books.finish[task.world, task.en, column]
    for entry in range(finish.size):
        if finish[entry] > task.time_ms:
            reserved += books.reserved[task.world, task.en, column, entry]
            held += 1
    room = known.sn_storage[sn] - reserved >= needed and held < known.sn_queue[sn]
    paused = books.paused_until[task.world, task.en, column] > task.time_ms
    return max(earliest - arrival, 0.0), room and not paused


@compiled
def write(known, books, turn, row, column, arrival, needed):
    """`SelfTrackingDispatcher.write`: what was sent where."""
    task, sn = turn.dispatch[row], turn.reached[row, column]
    free = books.slot_free[task.world, task.en, column]
    slot = 0
    for k in range(1, free.size):
        if free[k] < free[slot]:
            slot = k
    done = max(arrival, free[slot]) + task.cycles / known.sn_speed[sn]
    free[slot] = done
    finish = books.finish[task.world, task.en, column]
    entry = 0
    for k in range(1, finish.size):
        if finish[k] < finish[entry]:
            entry = k
    finish[entry] = done
    books.reserved[task.world, task.en, column, entry] = needed


@compiled
def pause(books, turn, row):
    """`BackOffDispatcher.observe`."""
    told, most = turn.feedback[row], books.paused_until.shape[2]
    failed = told.fate == REFUSED or (told.fate == DONE and not told.in_time)
    if failed and told.action >= 1 and told.action <= most:
        until = books.paused_until[told.world, told.en]
        until[told.action - 1] = max(until[told.action - 1], told.time_ms + books.pause_ms)
