"""Decision logs of live ENs as one trace of the site they came from.

Files of several ENs, and of several starts, are brought together by the column `epoch_ms`, the wall
clock's time at which each task was generated. An EN's files are those of one folder below the one
that is given, or those whose names differ only in the number at their end (`a.csv`, `a-1.csv`).
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.workload.cells import Cells, read_cells
from cosmo.workload.logs import Imported
from cosmo.workload.table import Tasks
from cosmo.workload.trace import Columns, check_fits, check_tasks

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
    parts: list[Columns] = []
    for name, paths in files.items():
        for path in paths:
            cells = decision_cells(path, _NEEDED)
            clock = "epoch_ms" if "epoch_ms" in cells.header else "time_ms"
            if clock == "time_ms" and count > 1:
                raise InputError(
                    f"'{path}': column epoch_ms is missing, so that it cannot be brought together"
                    " with others; daemons of this version write it"
                )
            check_fits(cells, scenario.links.most_sns)
            columns = {field: cells.numbers(field) for field in (clock, *_NUMBERS)}
            columns["en"] = np.full(len(cells), float(ens[name]))
            check_tasks(cells, columns, scenario.en.count, scenario.ues)
            columns["time"] = columns.pop(clock)
            parts.append(columns)
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
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


def decision_cells(path: Path, needed: Sequence[str]) -> Cells:
    """A decision log; InputError in one line if it is none, with these columns and a task."""
    cells = read_cells(path, kind="parquet" if path.suffix == ".parquet" else "csv")
    missing = [name for name in needed if name not in cells.header]
    if missing:
        raise InputError(
            f"'{path}': is not a decision log (column {missing[0]} is missing; a daemon writes one"
            " where log.decisions says)"
        )
    cells.check_whole()
    if not len(cells):
        raise InputError(f"'{path}': has no task in it")
    return cells
