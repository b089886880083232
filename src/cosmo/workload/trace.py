"""Trace files: tasks in and out as CSV or Parquet, one row a task."""

import csv
import os
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.files import MOST_TABLE, opened
from cosmo.scenario import Scenario
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS
from cosmo.tables import csv_text, read_parquet, write_table
from cosmo.workload.decision_fit import check_fits
from cosmo.workload.table import Tasks

_REQUIRED = ("time_ms", "ue", "input_bytes", "cycles", "deadline_ms")
_OPTIONAL = ("true_cycles",)

Columns = dict[str, NDArray[np.float64]]


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
        if path.suffix == ".parquet":
            with opened(path, MOST_TABLE) as file:
                header = list(polars.read_parquet_schema(file))
        else:
            header = [name.strip() for name in next(csv.reader(csv_text(path)), [])]
    except (OSError, ValueError, csv.Error, polars.exceptions.PolarsError):
        return []  # reading it says what is wrong
    return [name for name in header if name not in read]


def _names(ens: int) -> tuple[str, ...]:
    return (*_REQUIRED, "en") if ens > 1 else _REQUIRED


def _read(path: Path, ens: int, ues: int, sns: int) -> Tasks:
    names = _names(ens)
    if path.suffix == ".parquet":
        columns, lines, unit = _read_parquet(path, names)
    elif path.suffix == ".csv":
        columns, lines, unit = _read_csv(path, names)
    else:
        raise InputError(f"trace = '{path}': must end in .csv or .parquet")
    if not len(lines):
        raise InputError(f"trace = '{path}': has no tasks")
    if ens == 1:
        columns["en"] = np.zeros(len(lines))
    _check(path, columns, lines, unit, ens, ues)
    check_fits(path, sns)
    return Tasks(
        time_ms=columns["time_ms"],
        en=columns["en"].astype(np.int64),
        ue=columns["ue"].astype(np.int64),
        input_bytes=columns["input_bytes"],
        cycles=columns["cycles"],
        deadline_ms=columns["deadline_ms"],
        **{name: columns[name] for name in _OPTIONAL if name in columns},
    )


def _missing(path: Path, header: list[str], names: tuple[str, ...]) -> None:
    absent = [name for name in names if name not in header]
    if absent:
        raise InputError(f"{path}: column {absent[0]} is missing, needed: {','.join(names)}")


def _read_csv(path: Path, names: tuple[str, ...]) -> tuple[Columns, NDArray[np.int64], str]:
    try:
        reader = csv.reader(csv_text(path))
        header = [name.strip() for name in next(reader, [])]
        _missing(path, header, names)
        rows, lines = [], []
        for row in reader:
            if row:
                rows.append(row)
                lines.append(reader.line_num)
                if len(row) != len(header):
                    raise InputError(
                        f"{path}, line {reader.line_num}: {len(row)} values, "
                        f"must be {len(header)} as in the header"
                    )
    except OSError as error:
        raise InputError(f"trace = '{path}': cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise InputError(f"trace = '{path}': not a text file in UTF-8") from None
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None
    columns = {}
    for name in (*names, *(each for each in _OPTIONAL if each in header)):
        place = header.index(name)
        texts = [row[place] for row in rows]
        try:
            columns[name] = np.array(list(map(float, texts)))
        except ValueError:
            _refuse_text(path, name, texts, lines)
    return columns, np.array(lines, np.int64), "line"


def _refuse_text(path: Path, name: str, texts: list[str], lines: list[int]) -> None:
    for text, line in zip(texts, lines, strict=True):
        try:
            float(text)
        except ValueError:
            raise InputError(f"{path}, line {line}: {name} = {text!r}: must be a number") from None


def _read_parquet(path: Path, names: tuple[str, ...]) -> tuple[Columns, NDArray[np.int64], str]:
    try:
        table = read_parquet(path, f"trace = '{path}': not a Parquet file")
    except OSError as error:
        reason = error.strerror or "no such file"
        raise InputError(f"trace = '{path}': cannot be read ({reason})") from None
    _missing(path, table.columns, names)
    columns = {}
    for name in (*names, *(each for each in _OPTIONAL if each in table.columns)):
        if not table[name].dtype.is_numeric():
            raise InputError(f"{path}: column {name} must hold numbers, not {table[name].dtype}")
        columns[name] = table[name].cast(polars.Float64).fill_null(float("nan")).to_numpy().copy()
    return columns, np.arange(1, len(table) + 1, dtype=np.int64), "row"


def _check(
    path: Path, columns: Columns, lines: NDArray[np.int64], unit: str, ens: int, ues: int
) -> None:
    time = columns["time_ms"]
    backwards = np.zeros(len(time), np.bool_)
    backwards[1:] = time[1:] < time[:-1]  # no difference, which infinities do not have

    def whole_below(name: str, count: int) -> NDArray[np.bool_]:
        value = columns[name]
        return np.asarray((value >= 0) & (value < count) & (value == np.floor(value)))

    whole = "must be a whole number from 0 to"
    rules = [(name, np.isfinite(columns[name]), "must be a finite number") for name in columns] + [
        ("time_ms", time >= 0, "must be 0 or greater"),
        ("time_ms", time < MOST_MS, "must be less than 1e9: count from the start of the trace"),
        ("time_ms", ~backwards, "must not be less than in the row before"),
        ("ue", whole_below("ue", ues), f"{whole} {ues - 1} (ue.count = {ues})"),
        ("en", whole_below("en", ens), f"{whole} {ens - 1} (en.count = {ens})"),
    ]
    for name in ("input_bytes", "cycles", "deadline_ms", *_OPTIONAL):
        if name in columns:
            rules.append((name, columns[name] > 0, "must be greater than 0"))
            limit = f"must be at most {MOST_AMOUNT:g}"
            rules.append((name, columns[name] <= MOST_AMOUNT, limit))
    bad = [(int(np.argmin(good)), name, text) for name, good, text in rules if not good.all()]
    if bad:
        row, name, text = min(bad)
        value = columns[name][row]
        raise InputError(f"{path}, {unit} {lines[row]}: {name} = {value:g}: {text}")
