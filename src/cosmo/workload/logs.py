"""Any log of tasks as a trace of a scenario.

What the log says stays; what it does not say is filled by a rule, and `Imported.notes` says which.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS
from cosmo.seeds import Purpose, stream
from cosmo.workload.generate import deadlines_ms
from cosmo.workload.log_columns import Source, reader_of, sources_of
from cosmo.workload.log_files import Log
from cosmo.workload.table import Tasks

Floats = NDArray[np.float64]
_LISTED = 5  # bad rows that are named
_FILLED = ("input_bytes", "cycles", "deadline_ms")
_NAMES = ("en", "ue")


@dataclass(frozen=True)
class Imported:
    """Tasks of a log, and what was done to make them."""

    tasks: Tasks
    notes: list[str]


def tasks_of_log(
    log: Log,
    scenario: Scenario,
    columns: Sequence[str] = (),
    *,
    bad_rows: Literal["fail", "skip"] = "fail",
    duplicates: Literal["keep", "drop"] = "keep",
    speed: float | None = None,
    zone: tzinfo = UTC,
    seed: int = 0,
) -> Imported:
    """The tasks of a log, in order of time, which starts at 0 with the first of them.

    `columns` says which column a field is in, and in which unit (`log_columns`); `speed` is the
    cycles that a slot does in a ms, for demands in CPU time; `zone` is that of dates without one;
    what the log does not say is drawn with `seed`.
    Raises InputError in one line for a bad row (unless these are skipped) and what does not fit.
    """
    if speed is not None and not (math.isfinite(speed) and speed > 0):
        raise InputError(f"--speed = {speed:g}: must be greater than 0")
    sources = sources_of(columns, log.header, speed)
    values, kept, bad = _numbers(log, sources, speed, zone)
    notes = _about_bad(log, bad, bad_rows)
    if not kept:
        raise InputError("the log has no row that is a task")
    order = np.argsort(values["time_ms"], kind="stable")
    if (np.diff(values["time_ms"]) < 0).any():
        notes.append("rows were not in order of time; they are sorted")
    names = {
        name: [str(log.rows[kept[k]].get(sources[name].column, "")) for k in order]
        for name in _NAMES
        if name in sources
    }
    values = {name: column[order] for name, column in values.items()}
    keep = _first_of_each(values, names)
    if not keep.all():
        count = int((~keep).sum())
        notes.append(f"{count} rows are like another one in all fields; duplicates = {duplicates}")
        if duplicates == "drop":
            values = {name: column[keep] for name, column in values.items()}
            names = {
                name: [each for each, ok in zip(texts, keep, strict=True) if ok]
                for name, texts in names.items()
            }
    time = values["time_ms"] - values["time_ms"][0]
    if time[-1] >= MOST_MS:
        raise InputError(
            f"time_ms = {time[-1]:g}: the log must be shorter than 1e9 ms; is its unit right?"
        )
    one = np.zeros(len(time), np.int64)
    en, ues = _placed("en", names, scenario.en.count, one, notes), scenario.ues
    ue = _placed("ue", names, ues, en, notes) if "ue" in names else _in_turn(en, ues)
    return Imported(filled(scenario, time, en, ue, values, seed, notes), notes)


def _numbers(
    log: Log, sources: dict[str, Source], speed: float | None, zone: tzinfo
) -> tuple[dict[str, Floats], list[int], list[tuple[int, str]]]:
    """Numbers by field, the rows they are of, and bad rows; NaN where a cell is empty."""
    numeric = {name: source for name, source in sources.items() if name not in _NAMES}
    readers = {name: reader_of(source, speed, zone) for name, source in numeric.items()}
    found: list[list[float]] = []
    kept: list[int] = []
    bad = list(log.bad)
    for place, row in enumerate(log.rows):
        try:
            numbers = [_read(name, readers[name], row, numeric[name]) for name in numeric]
        except ValueError as error:
            bad.append((log.lines[place], str(error)))
            continue
        found.append(numbers)
        kept.append(place)
    table = np.array(found, np.float64).reshape(len(found), len(numeric))
    return dict(zip(numeric, table.T, strict=True)), kept, sorted(bad)


def _read(name: str, read: Callable[[Any], float], row: dict[str, Any], source: Source) -> float:
    cell = row.get(source.column)
    try:
        value = read(cell)
        if name == "time_ms" and math.isnan(value):
            raise ValueError("must not be empty")
        if name != "time_ms" and value > MOST_AMOUNT:
            raise ValueError(f"must be at most {MOST_AMOUNT:g} in the unit of {name}")
    except ValueError as error:
        raise ValueError(f"{source.column} = {str(cell)[:60]!r}: {error}") from None
    return value


def _about_bad(log: Log, bad: list[tuple[int, str]], rule: str) -> list[str]:
    if not bad:
        return []
    if rule == "fail":
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        line, text = bad[0]
        raise InputError(f"{log.unit} {line}: {text}{more}; --bad-rows skip leaves such rows out")
    listed = "; ".join(f"{log.unit} {line}: {text}" for line, text in bad[:_LISTED])
    dots = "; …" if len(bad) > _LISTED else ""
    return [f"{len(bad)} of {len(log.bad) + len(log.rows)} rows are left out: {listed}{dots}"]


def _first_of_each(values: dict[str, Floats], names: dict[str, list[str]]) -> NDArray[np.bool_]:
    """Whether no earlier row is the same in all that is read."""
    seen: set[tuple[Any, ...]] = set()
    keep = np.ones(len(values["time_ms"]), np.bool_)
    numbers = (np.nan_to_num(column, nan=-1.0).tolist() for column in values.values())
    for place, row in enumerate(zip(*numbers, *names.values(), strict=True)):
        keep[place] = row not in seen
        seen.add(row)
    return keep


def _placed(
    name: str,
    names: dict[str, list[str]],
    places: int,
    within: NDArray[np.int64],
    notes: list[str],
) -> NDArray[np.int64]:
    """Names as numbers: whole numbers below `places` as they are, others in order of appearance
    within their group (the devices of an EN are its own).
    """
    kind, setting = ("ENs", "en.count") if name == "en" else ("UEs in each cell", "ue.count")
    if name not in names:
        if places > 1:
            notes.append(f"{name}: no column; tasks take the {places} {kind} in turn")
        return np.arange(len(within), dtype=np.int64) % places
    texts = names[name]
    if all(text.isascii() and text.isdecimal() and int(text) < places for text in set(texts)):
        return np.array([int(text) for text in texts], np.int64)
    seen: dict[tuple[int, str], int] = {}
    most: Counter[int] = Counter()  # names of a group so far
    found = np.empty(len(texts), np.int64)
    for row, key in enumerate(zip(within.tolist(), texts, strict=True)):
        if key not in seen:
            seen[key] = most[key[0]]
            most[key[0]] += 1
        found[row] = seen[key]
    needed = max(most.values())
    if needed > places and name == "en":
        raise InputError(
            f"en: the log names {needed}, the scenario has {places}; add --set {setting}={needed}"
        )
    first = ", ".join(f"{text[:30]} is {number}" for (_, text), number in list(seen.items())[:3])
    shared = f", several on one (--set {setting}={needed} gives each its own)"
    on = f"{min(needed, places)} {kind}{shared * (needed > places)}"
    notes.append(f"{name}: {len(seen)} names on {on}: {first}{', …' * (len(seen) > 3)}")
    return found % places


def _in_turn(en: NDArray[np.int64], ues: int) -> NDArray[np.int64]:
    """R2: the tasks of each cell take its UEs in turn."""
    found = np.empty(len(en), np.int64)
    for cell in np.unique(en):
        here = en == cell
        found[here] = np.arange(int(here.sum())) % ues
    return found


def filled(
    scenario: Scenario, time: Floats, en: NDArray[np.int64], ue: NDArray[np.int64],
    values: dict[str, Floats], seed: int, notes: list[str],
) -> Tasks:  # fmt: skip
    """The tasks, with what is missing filled as the scenario's own tasks are made (R2, R3).

    `values` are [task], NaN where a log says nothing; `notes` gets a line for each that is filled.
    """
    count, load = len(time), scenario.workload
    drawn = {
        "input_bytes": np.round(
            stream(seed, Purpose.INPUT_BYTES, 0).uniform(*load.input_bytes, count)
        ),
        "cycles": np.round(stream(seed, Purpose.CYCLES, 0).uniform(*load.cycles, count)),
    }
    rules = {
        "input_bytes": f"drawn from {load.input_bytes[0]:g} to {load.input_bytes[1]:g} bytes",
        "cycles": f"drawn from {load.cycles[0]:g} to {load.cycles[1]:g} cycles",
        "deadline_ms": "made by the scenario's rule for deadlines (workload.deadline)",
    }
    columns: dict[str, Floats] = {}
    for name in _FILLED:
        given = values.get(name, np.full(count, np.nan))
        missing = np.isnan(given)
        if name == "deadline_ms":
            slack = stream(seed, Purpose.SLACK, 0).uniform(*load.deadline.slack_ms, count)
            drawn[name] = np.empty(count)
            for cell in range(scenario.en.count):
                here = en == cell
                drawn[name][here] = deadlines_ms(
                    scenario,
                    cell,
                    columns["input_bytes"][here],
                    columns["cycles"][here],
                    slack[here],
                )
        if missing.any():
            notes.append(f"{name}: {int(missing.sum())} of {count} are {rules[name]}")
        columns[name] = np.where(missing, drawn[name], given)
    true = values.get("true_cycles")
    if true is not None:
        columns["true_cycles"] = np.where(np.isnan(true), columns["cycles"], true)
    return Tasks(time_ms=time, en=en, ue=ue, **columns)
