"""A trace as episodes: its own windows first, then resampled ones, never the same tasks twice.

Episode k of run 0 is the k-th whole window of the trace, as it was recorded. All further episodes
of run 0, and every episode of the other runs, are put together of blocks that are drawn from the
trace with replacement (a moving-block bootstrap), so that intervals over episodes and over runs say
how much another stretch of the same traffic might have differed. Resampled episodes are not
independent of one another, as all of them come from one trace: `widening` says what that costs.
"""

import math
from collections.abc import Iterable

import numpy as np

from cosmo.scenario import Scenario
from cosmo.seeds import Purpose, stream
from cosmo.workload.table import Tasks
from cosmo.workload.trace import cached_trace

_FEWEST = 4  # blocks in the shortest trace: one block could only be drawn as it is


def trace_of(scenario: Scenario) -> Tasks:
    """The tasks of the scenario's trace, all of them; raises InputError if it cannot be read."""
    return cached_trace(scenario.workload.trace, scenario)


def duration_ms(tasks: Tasks) -> float:
    """How long a trace is: from 0 to the full second after its last task."""
    return 1000.0 * (math.floor(float(tasks.time_ms[-1]) / 1000.0) + 1.0) if len(tasks) else 0.0


def whole_windows(tasks: Tasks, window_ms: float) -> int:
    """How many episodes a trace has as it was recorded, at least 1: a short one is one episode."""
    return max(1, math.floor(duration_ms(tasks) / window_ms))


def recorded_windows(scenario: Scenario, tasks: Tasks) -> float:
    """The length of a trace in windows of the scenario, at least 1; not rounded."""
    return max(1.0, duration_ms(tasks) / scenario.episode.window_ms)


def is_as_recorded(windows: float, seed: int, number: int) -> bool:
    """Whether episode `number` of run `seed` is a window of a trace with so many of them."""
    return seed == 0 and number < math.floor(windows)


def widening(windows: float, played: Iterable[tuple[int, int]]) -> float:
    """What intervals over these episodes (seed, number) of a trace are to be multiplied by.

    Let v be the variance of one window's mean. If N episodes were independent, their mean would
    have v / N. Here a share a of them is the trace as recorded, and the others are drawn from the
    whole of it: their mean is off the truth by what is drawn, and by as much as the trace is. With
    W windows recorded that makes v / N + (1 - a²) v / W, so that the half-width grows by
    √(1 + (1 - a²) N / W), and more episodes of the same trace never make it arbitrarily small.
    """
    recorded = [is_as_recorded(windows, seed, number) for seed, number in played]
    share = sum(recorded) / len(recorded)
    return math.sqrt(1.0 + (1.0 - share**2) * len(recorded) / windows)


def mean_rate(tasks: Tasks, ens: int) -> float:
    """Tasks a second in one cell, over the whole trace; three digits after the point."""
    length = duration_ms(tasks)
    return max(round(1000.0 * len(tasks) / length / ens, 3), 0.001) if length else 0.001


def tasks_a_window(scenario: Scenario, tasks: Tasks) -> float:
    """How many tasks of a trace an episode has, on average."""
    whole = max(duration_ms(tasks) / scenario.episode.window_ms, 1.0)
    return len(tasks) / whole


def window(scenario: Scenario, tasks: Tasks, seed: int, number: int) -> Tasks:
    """The tasks of episode `number` of run `seed`; times start at the episode's start."""
    length = scenario.episode.window_ms
    if is_as_recorded(recorded_windows(scenario, tasks), seed, number):
        return _piece(tasks, number * length, length)
    return _resampled(scenario, tasks, stream(seed, Purpose.ARRIVALS, number))


def _resampled(scenario: Scenario, tasks: Tasks, random: np.random.Generator) -> Tasks:
    """Blocks of the trace, one after the other, as long as an episode (or as a shorter trace)."""
    recorded = duration_ms(tasks)
    length = min(scenario.episode.window_ms, recorded)
    block = min(scenario.workload.block_ms, recorded / _FEWEST)
    if not length:
        return tasks
    starts = np.arange(0.0, length, block)
    pieces = [
        _piece(
            tasks, float(random.uniform(0.0, recorded - block)), min(block, length - start), start
        )
        for start in starts.tolist()
    ]
    columns = zip(*(piece.columns for piece in pieces), strict=True)
    return Tasks(*(np.concatenate(column) for column in columns))


def _piece(tasks: Tasks, start_ms: float, length_ms: float, to_ms: float = 0.0) -> Tasks:
    """The tasks of a stretch of a trace, moved to where they are wanted."""
    first, last = np.searchsorted(tasks.time_ms, [start_ms, start_ms + length_ms])
    time, *others = tasks.taken(slice(first, last)).columns
    if start_ms == to_ms:
        return Tasks(time, *others)
    # Rounding must not move a task before the start, or to the end.
    moved = np.clip(time - start_ms, 0.0, np.nextafter(length_ms, 0.0)) + to_ms
    return Tasks(np.minimum(moved, np.nextafter(to_ms + length_ms, 0.0)), *others)
