"""Logs of tasks as files: CSV, Parquet, JSON lines, read row by row; bad rows are kept apart."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosmo.errors import InputError
from cosmo.files import MOST_CSV, read_bytes
from cosmo.workload.cells import one_line, read_cells


@dataclass(frozen=True)
class Log:
    """A log as it was read: rows by column, and where each of them is in the file."""

    header: list[str]
    rows: list[dict[str, Any]]
    lines: list[int]
    unit: str  # what a line is called
    bad: list[tuple[int, str]] = field(default_factory=list)  # (line, what is wrong with it)


def read_log(path: Path, kind: Literal["csv", "parquet", "jsonl"]) -> Log:
    """InputError in one line if the file cannot be read as that kind at all."""
    if kind == "jsonl":
        with one_line(f"'{path}'"):
            found = _read_jsonl(path)
    else:
        cells = read_cells(path, kind=kind)
        if len(set(cells.header)) < len(cells.header):
            raise InputError(f"'{path}': two columns have the same name")
        found = Log(cells.header, cells.rows(), list(cells.lines), cells.unit, cells.bad)
    if not found.rows and not found.bad:
        raise InputError(f"'{path}': has no row in it")
    return found


def _read_jsonl(path: Path) -> Log:
    log = Log([], [], [], "line")
    names: dict[str, None] = {}
    for line, text in enumerate(read_bytes(path, MOST_CSV).decode("utf-8-sig").split("\n"), 1):
        if not text.strip():
            continue
        try:
            told = json.loads(text)
        except (ValueError, RecursionError):
            told = None
        if isinstance(told, dict):
            log.rows.append(dict(_flat(told)))
            log.lines.append(line)
            names.update(dict.fromkeys(log.rows[-1]))
        else:
            log.bad.append((line, "must be a JSON object"))
    log.header.extend(names)
    return log


def _flat(told: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Objects inside of objects as `outer.inner`."""
    for name, value in told.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
