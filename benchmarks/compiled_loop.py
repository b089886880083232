"""The engine without a call from Python a decision: the one place here that knows the kernel."""

import time
from collections.abc import Sequence
from typing import Any

import numba

from cosmo import Scenario, Worlds
from cosmo.workload import Episode
from cosmo.world import kernel
from cosmo.world.turns import EN_ROWS, STALLED, UNFINISHED

LARGE = 6e5  # cycles

_njit: Any = numba.njit  # its types do not know that `_nrt` can be switched off

# Compiled into the loop that drives it.
_advance = _njit(_nrt=False, forceinline=True)(kernel.advance.py_func)


def _loop(constants: Any, state: Any, turn: Any) -> None:
    """Local if there is room; else offload small tasks and reject large ones."""
    while True:
        _advance(constants, state, turn)
        if turn.counts[UNFINISHED] == 0 or turn.counts[STALLED] > 0:
            return
        for row in range(turn.counts[EN_ROWS]):
            task = turn.seen.dispatch[row]
            turn.answers.action[row] = 0 if task.local_room else 1 if task.cycles < LARGE else 2


_drive = _njit(_nrt=False)(_loop)


def engine_seconds(scenario: Scenario, episodes: Sequence[Episode]) -> float:
    """Wall time of the engine alone for these episodes."""
    worlds = Worlds(scenario, episodes)
    start = time.perf_counter()
    _drive(worlds._constants, worlds._state, worlds._turn)
    took = time.perf_counter() - start
    assert worlds.all_over, "a world asked for more room, which is not the engine's alone to give"
    return took
