"""Decision logs of live ENs as one trace of the site they came from.

Files of several ENs, and of several starts, are brought together by the column `epoch_ms`, the wall
clock's time at which each task was generated. An EN's files are those of one folder below the one
that is given, or those whose names differ only in the number at their end (`a.csv`, `a-1.csv`).
"""

import re
from pathlib import Path

import numpy as np

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.workload.decision_fit import check_fits, decision_log, number_of
from cosmo.workload.log_files import Log
from cosmo.workload.logs import Imported
from cosmo.workload.table import Tasks

_NUMBERS = ("ue", "input_bytes", "cycles", "deadline_ms")
_NEEDED = ("time_ms", *_NUMBERS, "action", "fate")
_LATER_FILE = re.compile(r"-\d+$")


def merged_decisions(place: Path, scenario: Scenario) -> Imported:
    """One log, or all logs of a folder, as tasks of `scenario`.

    Raises InputError in one line if they do not fit: more ENs, UEs or SNs than the scenario has, or
    several files without `epoch_ms`.
    """
    files = _files(place)
    ens = {name: number for number, name in enumerate(sorted(files))}
    if len(ens) > scenario.en.count:
        raise InputError(
            f"'{place}': has logs of {len(ens)} ENs ({', '.join(ens)[:80]}), the scenario"
            f" {scenario.name!r} has {scenario.en.count}; name their site with --scenario"
        )
    count = sum(map(len, files.values()))
    columns: dict[str, list[float]] = {name: [] for name in ("time", "en", *_NUMBERS)}
    for name, paths in files.items():
        for path in paths:
            log = _checked(path, scenario)
            clock = "epoch_ms" if "epoch_ms" in log.header else "time_ms"
            if clock == "time_ms" and count > 1:
                raise InputError(
                    f"'{path}': column epoch_ms is missing, so that it cannot be brought together"
                    " with others; daemons of this version write it"
                )
            columns["time"] += _column(path, log, clock)
            columns["en"] += [ens[name]] * len(log.rows)
            for field in _NUMBERS:
                columns[field] += _column(path, log, field)
    table = {name: np.array(values, np.float64) for name, values in columns.items()}
    order = np.argsort(table["time"], kind="stable")
    table = {name: values[order] for name, values in table.items()}
    tasks = Tasks(
        time_ms=np.round(table["time"] - table["time"][0], 6),
        en=table["en"].astype(np.int64),
        ue=table["ue"].astype(np.int64),
        **{name: table[name] for name in ("input_bytes", "cycles", "deadline_ms")},
    )
    named = ", ".join(f"{name} is EN {number}" for name, number in ens.items())
    return Imported(tasks, [f"{count} log(s): {named}"])


def _files(place: Path) -> dict[str, list[Path]]:
    """The files of each EN by its name."""
    if not place.is_dir():
        return {place.stem: [place]}
    found: dict[str, list[Path]] = {}
    for path in sorted(place.rglob("*")):
        if path.suffix in (".csv", ".parquet") and path.is_file():
            inside = path.relative_to(place).parent.parts
            name = inside[0] if inside else _LATER_FILE.sub("", path.stem)
            found.setdefault(name, []).append(path)
    if not found:
        raise InputError(f"'{place}': has no decision log (.csv or .parquet) in it")
    return found


def _checked(path: Path, scenario: Scenario) -> Log:
    log = decision_log(path)
    missing = [name for name in _NEEDED if name not in log.header]
    if missing:
        raise InputError(f"'{path}': is not a decision log (column {missing[0]} is missing)")
    if log.bad:
        line, text = log.bad[0]
        raise InputError(f"'{path}', {log.unit} {line}: {text}")
    check_fits(path, scenario.links.most_sns)
    for line, row in zip(log.lines, log.rows, strict=True):
        ue = number_of(path, row, "ue")
        if not (0 <= ue < scenario.ues and ue == int(ue)):
            raise InputError(
                f"'{path}', {log.unit} {line}: ue = {ue:g}: must be a whole number from 0 to"
                f" {scenario.ues - 1}, the UEs of a cell (--set ue.count=NUMBER)"
            )
    return log


def _column(path: Path, log: Log, name: str) -> list[float]:
    found = [number_of(path, row, name) for row in log.rows]
    for line, value in zip(log.lines, found, strict=True):
        if name in ("input_bytes", "cycles", "deadline_ms") and not value > 0.0:
            raise InputError(f"'{path}', {log.unit} {line}: {name} = {value:g}: must be over 0")
    return found
