"""Whether the decision log of a live EN can be from a site: what is refused is not played."""

import csv
import math
from pathlib import Path
from typing import Any

import polars

from cosmo.errors import InputError
from cosmo.workload.log_files import Log, read_log

_MARKS = {"action", "fate", "decided_ms"}  # no trace of another origin has all of them


def check_fits(path: Path, sns: int) -> None:
    """Refuse to play a decision log where an EN reaches another number of SNs than `sns`.

    A file that is no decision log, or cannot be read, is not looked at.
    """
    try:
        if not set(_header(path)) >= _MARKS:
            return
    except (OSError, ValueError, csv.Error, polars.exceptions.PolarsError):
        return
    log = decision_log(path)
    told = [(int(number_of(path, row, "action")), str(row["fate"])) for row in log.rows]
    offloads = [action for action, fate in told if fate != "REJECTED"]
    rejections = [action - 1 for action, fate in told if fate == "REJECTED" and action > 0]
    # A rejection is the action after the last SN; without one the log only says how many at least.
    wrong = min(rejections) != sns if rejections else max(offloads, default=0) > sns
    if wrong:
        seen = min(rejections) if rejections else max(offloads)
        raise InputError(
            f"'{path}': is a decision log of an EN with {seen} SN(s), an EN of the scenario reaches"
            f" {sns}; name the site that it came from with --scenario"
        )


def _header(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return list(polars.read_parquet_schema(path))
    with path.open(newline="", encoding="utf-8-sig") as file:
        return [name.strip() for name in next(csv.reader(file), [])]


def decision_log(path: Path) -> Log:
    """All rows of a decision log; InputError in one line if it cannot be read."""
    return read_log(path, "parquet" if path.suffix == ".parquet" else "csv")


def number_of(path: Path, row: dict[str, Any], name: str) -> float:
    """A finite number in a column of one row; InputError if it is none."""
    try:
        value = float(row[name])
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"'{path}': {name} = {str(row[name])[:40]!r}: must be a finite number")
    return value
