"""Columns of other people's logs: which field of a task each one is, and in which unit.

`time_ms=timestamp:epoch_s` reads: the field time_ms is in the column `timestamp`, in seconds.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from cosmo.errors import InputError, did_you_mean
from cosmo.scenario.fields import MOST_AMOUNT

_TIMES = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
_EPOCHS = {f"epoch_{name}": by for name, by in _TIMES.items()}
_BYTES = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
_WORK = {"cycles": 1.0, "kcycles": 1e3, "Mcycles": 1e6, "Gcycles": 1e9}
_CPU = {"cpu_s": 1e3, "cpu_ms": 1.0, "cpu_us": 1e-3}  # ms of one slot, times its speed
ISO, NAME = "iso", "name"
# The units of each field by name; the first is the one that is meant if none is given.
UNITS: dict[str, dict[str, float]] = {
    "time_ms": {"ms": 1.0, **_TIMES, **_EPOCHS, ISO: 1.0},
    "input_bytes": _BYTES,
    "cycles": _WORK | _CPU,
    "true_cycles": _WORK | _CPU,
    "deadline_ms": {"ms": 1.0, **_TIMES},
    "ue": {NAME: 1.0},
    "en": {NAME: 1.0},
}  # fmt: skip


@dataclass(frozen=True)
class Source:
    """Where a field of a task comes from."""

    field: str
    column: str
    unit: str


def sources_of(
    mapping: Iterable[str], header: Iterable[str], speed: float | None
) -> dict[str, Source]:
    """The columns that are named, and those that have a field's own name; by field.

    InputError for an unknown field, column or unit, a field that is named twice, and a demand in
    CPU time without a speed.
    """
    names, found = list(header), {}
    for text in mapping:
        source = _parsed(text)
        if source.field in found:
            raise InputError(f"--column {text}: {source.field} is there twice")
        if source.column not in names:
            close = did_you_mean(source.column, names) or f" (columns: {', '.join(names)[:200]})"
            raise InputError(f"--column {text}: the log has no column {source.column!r}{close}")
        if source.unit in _CPU and speed is None:
            raise InputError(
                f"--column {text}: give --speed, the cycles that a slot does in a ms, to turn CPU"
                " time into cycles"
            )
        found[source.field] = source
    for field, units in UNITS.items():
        if field not in found and field in names:
            found[field] = Source(field, field, next(iter(units)))
    if "time_ms" not in found:
        raise InputError(
            "--column: no column says when tasks came; give one as time_ms=COLUMN:UNIT, e.g."
            f" time_ms=timestamp:epoch_s (columns: {', '.join(names)[:200]})"
        )
    return found


def _parsed(text: str) -> Source:
    field, equals, rest = text.partition("=")
    if not equals or not rest:
        raise InputError(f"--column {text}: must look like time_ms=timestamp:epoch_s")
    if field not in UNITS:
        close = did_you_mean(field, UNITS)
        raise InputError(f"--column {text}: field must be one of {', '.join(UNITS)}{close}")
    column, colon, unit = rest.rpartition(":")
    if not colon:
        return Source(field, rest, next(iter(UNITS[field])))
    if unit not in UNITS[field]:
        allowed = ", ".join(UNITS[field])
        raise InputError(f"--column {text}: unit {unit!r} must be one of {allowed}")
    return Source(field, column, unit)


def reader_of(source: Source, speed: float | None, zone: tzinfo) -> Callable[[Any], float]:
    """A function from a cell to a number in the field's own unit; ValueError says what is wrong.

    NaN of an empty cell.
    """
    factor = UNITS[source.field][source.unit] * (speed or 1.0 if source.unit in _CPU else 1.0)
    least = -math.inf if source.field == "time_ms" else 0.0

    def read(cell: Any) -> float:
        if cell is None or cell == "":
            return math.nan
        if source.unit == ISO or isinstance(cell, datetime):
            return _moment(cell, zone)
        try:
            value = float(cell) * factor
        except (TypeError, ValueError, OverflowError):
            raise ValueError("must be a number") from None
        if not math.isfinite(value) or abs(value) > MOST_AMOUNT * 1e3:
            raise ValueError("must be a finite number that is not too large")
        if value < least or (value == 0.0 and source.field != "time_ms"):
            raise ValueError("must be greater than 0")
        return value

    return read


def _moment(cell: Any, zone: tzinfo) -> float:
    """Milliseconds since 1970 of a date and time; without a zone of its own it is in `zone`."""
    try:
        found = cell if isinstance(cell, datetime) else datetime.fromisoformat(str(cell).strip())
        return (found if found.tzinfo else found.replace(tzinfo=zone)).timestamp() * 1000.0
    except (ValueError, OverflowError):
        raise ValueError("must be a date and time as 2026-01-31T13:45:00.250+01:00") from None
