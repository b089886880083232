"""R34: how many tasks of one episode any policy whatever can have served in time, at most.

A linear program that knows every arrival. Time is cut into cells of a grid. Its unknowns are the ms
that a slot of a node gives to a task within a cell; c/rate ms of them are one success:

    maximise   Σ y / service                            over (task, node, cell)
    such that  Σ y / service ≤ 1                        of each task: it succeeds once
               Σ y ≤ slots · cell                       of each node and cell
               0 ≤ y ≤ what the cell has of the time in which the node can work on the task

A node can work on a task from when it can be there at the earliest until when it must be done at
the latest: the EN from its decision on, an SN after the upload and until the return still makes the
deadline. Both transfers take what they take on an idle link, at the best start where rates change.

Everything else is relaxed, so that no policy can do better: tasks may be served in part, in turns
and by several nodes, nobody queues on a link, storage and queues have no end, the load of others at
the SNs is not there, and tasks that are not measured take nothing. Cells of the grid cut time but
round nothing, so that a finer grid can only lower the bound. The result is not the solver's optimum
but what its dual solution proves (weak duality), rounded down to whole tasks: it is a bound however
exact the solver was.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import EngineError, InputError
from cosmo.measure.windows import Windows, service_windows
from cosmo.scenario import Scenario
from cosmo.workload import Episode

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID_MS = 10.0
MOST_UNKNOWNS = 1_000_000
_WHOLE = 1e-6  # what a sum may miss a whole number of tasks by


@dataclass(frozen=True, slots=True)
class ClairvoyantBound:
    """The most successes of one episode, and what it took to find them."""

    successes: int  # no policy has more among the measured tasks
    measured: int
    unknowns: int
    seconds: float

    @property
    def success_rate(self) -> float:
        """The bound of R17's success rate; NaN if no task is measured."""
        return self.successes / self.measured if self.measured else math.nan


@dataclass(frozen=True, slots=True)
class _Pieces:
    """The unknowns, one a row: parts of windows that lie within one cell."""

    task: Ints
    cell: Ints  # of all nodes, numbered from 0
    service_ms: Floats
    longest_ms: Floats  # of the piece
    capacity_ms: Floats  # [cell]


def clairvoyant_bound(
    scenario: Scenario, episode: Episode, grid_ms: float = GRID_MS
) -> ClairvoyantBound:
    """The bound of an episode of a scenario, for every policy on the embedded engine.

    Raises InputError for a grid that is none, for a program of more than `MOST_UNKNOWNS` unknowns
    (some 1.4 GB) and for another engine, EngineError if the solver finds no solution.
    """
    start = time.perf_counter()
    if not (math.isfinite(grid_ms) and grid_ms > 0.0):
        raise InputError(f"grid_ms = {grid_ms:g}: must be greater than 0")
    if scenario.engine != "embedded":
        raise InputError(f"engine = {scenario.engine!r}: the bound is of the engine 'embedded'")
    measured = episode.tasks.time_ms >= scenario.episode.warmup_ms
    windows = service_windows(scenario, episode, measured)
    pieces = _cut(windows, grid_ms)
    most = int(measured.sum())
    proved = _proved_most(pieces, len(measured)) if len(pieces.task) else 0.0
    return ClairvoyantBound(
        successes=min(math.floor(proved + _WHOLE), most),
        measured=most,
        unknowns=len(pieces.task),
        seconds=time.perf_counter() - start,
    )


def _cut(windows: Windows, grid_ms: float) -> _Pieces:
    """Windows cut along the grid."""
    # Sizes are found before anything is made: a fine grid may need more memory than there is.
    first, end = np.floor(windows.from_ms / grid_ms), np.ceil(windows.until_ms / grid_ms)
    if (total := float((end - first).sum())) > MOST_UNKNOWNS:
        raise InputError(
            f"grid_ms = {grid_ms:g}: makes a program of {total:.0f} unknowns, more than the"
            f" {MOST_UNKNOWNS} that are allowed; a coarser grid or a shorter window makes less"
        )
    count = (end - first).astype(np.int64)
    window = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(window)) - np.repeat(np.cumsum(count) - count, count)
    place = first[window] + step
    longest = np.minimum((place + 1.0) * grid_ms, windows.until_ms[window])
    longest -= np.maximum(place * grid_ms, windows.from_ms[window])
    node = windows.node[window]
    cells = np.stack([node, place.astype(np.int64)], axis=1)
    used, cell = np.unique(cells, axis=0, return_inverse=True)
    slots = np.zeros(1 + int(node.max(initial=0)))
    slots[windows.node] = windows.slots
    return _Pieces(
        task=windows.task[window],
        cell=cell.reshape(-1),
        service_ms=windows.service_ms[window],
        longest_ms=np.maximum(longest, 0.0),
        capacity_ms=slots[used[:, 0]] * grid_ms,
    )


def _proved_most(pieces: _Pieces, tasks: int) -> float:
    """Successes that the program's dual solution proves to be the most."""
    # Both take a while to import, and only this needs them.
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    unknowns, cells = len(pieces.task), len(pieces.capacity_ms)
    gain = 1.0 / pieces.service_ms
    each = np.arange(unknowns)
    rows = np.concatenate([pieces.task, tasks + pieces.cell])
    entries = np.concatenate([gain, np.ones(unknowns)])
    limits = np.concatenate([np.ones(tasks), pieces.capacity_ms])
    shape = tasks + cells, unknowns
    table = coo_array((entries, (rows, np.concatenate([each, each]))), shape).tocsc()
    bounds = np.stack([np.zeros(unknowns), pieces.longest_ms], axis=1)
    found = linprog(-gain, A_ub=table, b_ub=limits, bounds=bounds, method="highs-ds")
    if found.status != 0:
        raise EngineError(f"the bound's linear program was not solved: {found.message}")
    # Any prices that are not negative prove a bound: what the limits cost, and what an unknown
    # gains beyond the prices of what it takes.
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    beyond = np.maximum(gain - table.T @ prices, 0.0)
    return math.fsum(prices * limits) + math.fsum(beyond * pieces.longest_ms)
