"""Trace files: tasks in and out as CSV or Parquet, one row a task."""

import csv
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS
from cosmo.tables import write_table
from cosmo.workload.cells import Cells, check_columns, header_of, read_cells
from cosmo.workload.table import Tasks

_AMOUNTS = ("input_bytes", "cycles", "deadline_ms")
_REQUIRED = ("time_ms", "ue", *_AMOUNTS)
_OPTIONAL = ("true_cycles",)
_OF_DECISIONS = {"action", "fate", "decided_ms"}  # no trace of another origin has all of them

Columns = dict[str, NDArray[np.float64]]
Rule = tuple[str, NDArray[np.bool_], str]  # a column, [row] whether it is right, what is allowed


def write_trace(path: Path, tasks: Tasks, ens: int) -> None:
    """Write tasks as a trace.

    Args:
        path: The file, `.csv` or `.parquet`.
        tasks: Tasks in order of time.
        ens: How many ENs there are: with several, a column says which EN a task is for. A column
            `true_cycles` is there where true demands are not as declared (R35).

    Raises:
        InputError: In one line, if the file cannot be written.

    """
    columns = {
        "time_ms": tasks.time_ms,
        "ue": tasks.ue,
        "input_bytes": tasks.input_bytes,
        "cycles": tasks.cycles,
        "deadline_ms": tasks.deadline_ms,
    }
    if ens > 1:
        columns["en"] = tasks.en
    if not tasks.as_declared:
        columns["true_cycles"] = tasks.work_cycles
    write_table(path, polars.DataFrame(columns))


def cached_trace(path: str, scenario: Scenario) -> Tasks:
    """`read_trace`, once for every episode of a trace, and again if the file has changed."""
    try:
        told = os.stat(path)
        stamp = told.st_mtime_ns, told.st_size
    except (OSError, ValueError):
        stamp = 0, 0  # reading it says what is wrong
    return _cached(path, stamp, scenario.en.count, scenario.ues, scenario.links.most_sns)


@lru_cache(maxsize=4)
def _cached(path: str, stamp: tuple[int, int], ens: int, ues: int, sns: int) -> Tasks:
    return _read(Path(path), ens, ues, sns)


def read_trace(path: Path, scenario: Scenario) -> Tasks:
    """Read and check tasks; a bad row is refused with its line (or row) number and the reason."""
    return _read(path, scenario.en.count, scenario.ues, scenario.links.most_sns)


def unread_columns(path: Path, scenario: Scenario) -> list[str]:
    """Names of a trace's columns that nothing is read from; none if it cannot be read at all."""
    read = {*_names(scenario.en.count), *_OPTIONAL}
    try:
        return [name for name in header_of(path) if name not in read]
    except (OSError, ValueError, csv.Error, polars.exceptions.PolarsError):
        return []  # reading it says what is wrong


def _names(ens: int) -> tuple[str, ...]:
    return (*_REQUIRED, "en") if ens > 1 else _REQUIRED


def _read(path: Path, ens: int, ues: int, sns: int) -> Tasks:
    cells, names = read_cells(path, "trace"), _names(ens)
    check_columns(path, cells.header, names)
    cells.check_whole()
    if not len(cells):
        raise InputError(f"trace = '{path}': has no tasks")
    read = (*names, *(name for name in _OPTIONAL if name in cells.header))
    columns = {name: cells.numbers(name) for name in read}
    columns.setdefault("en", np.zeros(len(cells)))
    time = columns["time_ms"]
    backwards = np.zeros(len(time), np.bool_)
    backwards[1:] = time[1:] < time[:-1]  # no difference, which infinities do not have
    rules = [
        ("time_ms", time >= 0, "must be 0 or greater"),
        ("time_ms", time < MOST_MS, "must be less than 1e9: count from the start of the trace"),
        ("time_ms", ~backwards, "must not be less than in the row before"),
    ]
    check_tasks(cells, columns, ens, ues, rules)
    check_fits(cells, sns)
    return Tasks(
        time_ms=time,
        en=columns["en"].astype(np.int64),
        ue=columns["ue"].astype(np.int64),
        **{name: columns[name] for name in (*_AMOUNTS, *_OPTIONAL) if name in columns},
    )


def check_tasks(
    cells: Cells, columns: Columns, ens: int, ues: int, more: Sequence[Rule] = ()
) -> None:
    """Refuse the first row with a number that no task can have, or that breaks one rule `more`."""

    def whole_below(name: str, count: int) -> Rule:
        value = columns[name]
        good = (value >= 0) & (value < count) & (value == np.floor(value))
        return name, good, f"must be a whole number from 0 to {count - 1} ({name}.count = {count})"

    rules = [*_finite(columns), *more, whole_below("ue", ues), whole_below("en", ens)]
    for name in (*_AMOUNTS, *_OPTIONAL):
        if name in columns:
            rules.append((name, columns[name] > 0, "must be greater than 0"))
            limit = f"must be at most {MOST_AMOUNT:g}"
            rules.append((name, columns[name] <= MOST_AMOUNT, limit))
    _check(cells, columns, rules)


def _finite(columns: Columns) -> list[Rule]:
    return [(name, np.isfinite(columns[name]), "must be a finite number") for name in columns]


def _check(cells: Cells, columns: Columns, rules: Sequence[Rule]) -> None:
    bad = [(int(np.argmin(good)), name, text) for name, good, text in rules if not good.all()]
    if bad:
        row, name, text = min(bad)
        raise cells.refused(row, f"{name} = {columns[name][row]:g}: {text}")


def check_fits(cells: Cells, sns: int) -> None:
    """Refuse the decision log of an EN that reaches another number of SNs than `sns`.

    A table that is no decision log is not looked at.
    """
    if not set(cells.header) >= _OF_DECISIONS:
        return
    actions, rejected = cells.numbers("action"), np.array(cells.texts("fate")) == "REJECTED"
    _check(cells, {"action": actions}, _finite({"action": actions}))
    # A rejection is the action after the last SN; without one the log only says how many at least.
    rejections = actions[rejected & (actions > 0)] - 1
    seen = min(rejections) if len(rejections) else max(actions[~rejected], default=0)
    if seen > sns or (len(rejections) and seen != sns):
        raise InputError(
            f"'{cells.path}': is a decision log of an EN with {seen:g} SN(s), an EN of the scenario"
            f" reaches {sns}; name the site that it came from with --scenario"
        )
