"""`admission-control`, compiled: `policy.dispatchers.admission`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, Dispatcher
from cosmo.policy.dispatchers import AdmissionDispatcher
from cosmo.policy.dispatchers.admission import BINS, rejected_share
from cosmo.world.compiled import compiled

Floats = NDArray[np.float64]
_rejected_share = compiled(rejected_share)


class Admission(NamedTuple):
    """Parameters, and what ENs have counted."""

    threshold: float
    aggression: float
    most: float
    bin_ms: float
    step: NDArray[np.int64]  # [world, EN, bin]
    ended: Floats
    successes: Floats


def admission_of(dispatcher: Dispatcher) -> Admission:
    """Of a dispatcher, as it begins; empty if it goes by something else."""
    if not isinstance(dispatcher, AdmissionDispatcher):
        none, cells = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0))
        return Admission(0.0, 0.0, 0.0, 0.0, none, cells, cells)
    return Admission(
        threshold=float(dispatcher.threshold),
        aggression=float(dispatcher.aggression),
        most=float(dispatcher.most),
        bin_ms=float(dispatcher.bin_ms),
        step=dispatcher.step,
        ended=dispatcher.ended,
        successes=dispatcher.successes,
    )


@compiled
def note_end(admission, turn, row):
    """`AdmissionDispatcher.observe`."""
    told = turn.feedback[row]
    if told.fate == GIVEN_UP:
        return
    step = np.int64(told.time_ms // admission.bin_ms)
    world, en, place = told.world, told.en, step % BINS
    if admission.step[world, en, place] != step:
        admission.step[world, en, place] = step
        admission.ended[world, en, place] = 0.0
        admission.successes[world, en, place] = 0.0
    admission.ended[world, en, place] += 1.0
    admission.successes[world, en, place] += 1.0 if told.in_time else 0.0


@compiled
def turned_away(admission, draw, task):
    """`AdmissionDispatcher.would_decide`, before the rule behind it is asked."""
    first = np.int64(task.time_ms // admission.bin_ms) - BINS + 1
    ended, successes = 0.0, 0.0
    for place in range(BINS):
        if admission.step[task.world, task.en, place] >= first:
            ended += admission.ended[task.world, task.en, place]
            successes += admission.successes[task.world, task.en, place]
    a = admission
    return draw < _rejected_share(ended, successes, a.threshold, a.aggression, a.most)
