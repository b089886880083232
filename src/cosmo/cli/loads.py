"""The name of a scenario's load, and notes about its trace."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from cosmo.control.simulate import widened_at
from cosmo.scenario import Scenario
from cosmo.workload import duration_ms, trace_of, unread_columns, whole_windows


def load_text(scenario: Scenario) -> str:
    """The load of a scenario in a few words."""
    workload = scenario.workload
    if workload.trace:
        return f"trace {workload.trace}"
    return f"{workload.arrivals}, {workload.rate:g} tasks/s"


def windows_of_trace(scenario: Scenario) -> int:
    """Number of windows of the trace, 0 without a trace; InputError if it cannot be read."""
    if not scenario.workload.trace:
        return 0
    return whole_windows(trace_of(scenario), scenario.episode.window_ms)


def resampling_notices(scenario: Scenario, seed: int, episodes: int) -> list[str]:
    """A line if some episodes are not windows of the trace as it was recorded."""
    windows = windows_of_trace(scenario)
    as_recorded = min(windows, episodes) if seed == 0 else 0
    if not windows or as_recorded == episodes:
        return []
    return [
        *overplayed_notices(scenario, [seed], episodes),
        f"{episodes - as_recorded} of {episodes} episodes are resampled from blocks of"
        f" {scenario.workload.block_ms:g} ms: the trace has {windows} whole window(s) of"
        f" {scenario.episode.window_ms:g} ms, played as recorded in run 0",
    ]


def unread_notices(scenario: Scenario) -> list[str]:
    """A line if its trace has columns that are not read."""
    path = scenario.workload.trace
    names = unread_columns(Path(path), scenario) if path else []
    if not names:
        return []
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return [f"trace {path}: not read: {', '.join(names[:5])}{more}"]


def overplayed_notices(scenario: Scenario, seeds: Sequence[int], episodes: int) -> list[str]:
    """A line if more is played from a trace than was recorded, since that adds no information."""
    if not scenario.workload.trace:
        return []
    recorded_s = duration_ms(trace_of(scenario)) / 1000.0
    played_s = len(seeds) * episodes * scenario.episode.window_ms / 1000.0
    if played_s <= recorded_s:
        return []
    widened = widened_at(scenario, list(product(seeds, range(episodes))))
    return [
        f"{scenario.name}: {played_s:g} s are played of {recorded_s:g} s recorded: intervals are"
        f" {widened:.1f} times as wide as those of independent episodes, and more runs or episodes"
        " hardly narrow them; a longer trace does"
    ]
