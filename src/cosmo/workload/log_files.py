"""Logs of tasks as files: CSV, Parquet, JSON lines, read row by row; bad rows are kept apart."""

import csv
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cosmo.errors import InputError
from cosmo.files import MOST_CSV, read_bytes
from cosmo.tables import csv_text, read_parquet


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
    readers: dict[str, Callable[[Path], Log]] = {
        "csv": _read_csv, "parquet": _read_parquet, "jsonl": _read_jsonl,
    }  # fmt: skip
    try:
        found = readers[kind](path)
    except OSError as error:
        raise InputError(f"'{path}': cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise InputError(f"'{path}': not a text file in UTF-8") from None
    if not found.rows and not found.bad:
        raise InputError(f"'{path}': has no row in it")
    return found


def _read_csv(path: Path) -> Log:
    text = csv_text(path)
    first = text.readline()
    text.seek(0)
    # Spreadsheets of half the world separate by semicolons; a header says so by having no comma.
    separator = next((sign for sign in (",", ";", "\t") if sign in first), ",")
    reader = csv.reader(text, delimiter=separator)
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(set(header)) < len(header):
            raise InputError(f"'{path}': two columns have the same name")
        log = Log(header, [], [], "line")
        for row in reader:
            if len(row) == len(header):
                log.rows.append(dict(zip(header, row, strict=True)))
                log.lines.append(reader.line_num)
            elif row:
                wrong = f"{len(row)} values, must be {len(header)} as in the header"
                log.bad.append((reader.line_num, wrong))
    except csv.Error as error:
        raise InputError(f"'{path}', line {reader.line_num}: {error}") from None
    return log


def _read_parquet(path: Path) -> Log:
    table = read_parquet(path, f"'{path}': not a Parquet file")
    rows = table.rows(named=True)
    return Log(table.columns, rows, list(range(1, len(rows) + 1)), "row")


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
