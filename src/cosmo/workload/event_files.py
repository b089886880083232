"""Files of what happens at nodes (R37 to R39): speeds, outages and tenants' tasks, one a row.

Columns are time_ms, event, node, factor, input_bytes, cycles, true_cycles. `event` is `speed`
(factor), `down`, `up`, or `task` (a tenant's: input_bytes, cycles, and true_cycles if they are
others); `node` is `en:0` or `sn:1`. What an event does not need is left empty, and not read.
"""

import math
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars

from cosmo.scenario import Scenario
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS
from cosmo.tables import write_table
from cosmo.workload.cells import Cells, check_columns, read_cells
from cosmo.workload.node_events import Event, node_events
from cosmo.workload.table import FAILS, RETURNS, SPEED, BackgroundTasks, Episode, NodeEvents

EVENT_COLUMNS = ("time_ms", "event", "node", "factor", "input_bytes", "cycles", "true_cycles")
_WHAT = {"speed": SPEED, "down": FAILS, "up": RETURNS}
_NODE = re.compile(r"(en|sn):(\d{1,6})")


class Happenings(NamedTuple):
    """What a file says."""

    nodes: NodeEvents
    tenants: BackgroundTasks


def events_of(scenario: Scenario) -> Happenings:
    """The events of the scenario's file (`workload.events`), read again only if it has changed."""
    path = scenario.workload.events
    try:
        found = os.stat(path)
        stamp = found.st_mtime_ns, found.st_size
    except (OSError, ValueError):
        stamp = 0, 0  # reading it says what is wrong
    return _cached(path, stamp, scenario.en.count, scenario.sn.count)


@lru_cache(maxsize=4)
def _cached(path: str, stamp: tuple[int, int], ens: int, sns: int) -> Happenings:
    return read_events(Path(path), ens, sns)


def read_events(path: Path, ens: int, sns: int) -> Happenings:
    """Read and check a file; a bad row is refused with its line (or row) number and the reason."""
    happens: list[Event] = []
    tasks: list[tuple[float, ...]] = []
    last, down = 0.0, set[int]()
    cells = read_cells(path, "events")
    check_columns(path, cells.header, ("time_ms", "event", "node"))
    cells.check_whole()
    for number, row in enumerate(cells.rows()):
        read = _Row(cells, number, row)
        time = read.number("time_ms", MOST_MS, zero=True)
        if time < last:
            read.refuse("time_ms", "must not be less than in the row before")
        last, event = time, row["event"]
        if event not in (*_WHAT, "task"):
            read.refuse("event", "must be speed, down, up or task")
        kind, number = read.node(ens, sns)
        if event != "speed" and kind == "en":
            read.refuse("node", "must be an SN (ENs never fail, and have no tenants)")
        node = number if kind == "en" else ens + number
        if event == "task":
            size, cycles = (read.number(name, MOST_AMOUNT) for name in ("input_bytes", "cycles"))
            true = (
                cycles if read.is_empty("true_cycles") else read.number("true_cycles", MOST_AMOUNT)
            )
            tasks.append((time, number, size, cycles, true))
            continue
        if event != "speed" and (node in down) == (event == "down"):
            read.refuse("event", f"sn:{number} is {event} already")
        down.symmetric_difference_update({node} if event != "speed" else ())
        factor = read.number("factor", MOST_AMOUNT) if event == "speed" else math.nan
        happens.append((time, node, _WHAT[event], factor))
    return Happenings(node_events(happens), _tenants(tasks))


def write_events(path: Path, episode: Episode, ens: int) -> None:
    """Write what happens at the nodes of an episode, in order of time; tenants' tasks last (R5)."""
    events, other = episode.events, episode.background
    names = np.array(["speed", "down", "up"])[events.what]
    kinds = [f"en:{node}" if node < ens else f"sn:{node - ens}" for node in events.node.tolist()]
    none = [None] * len(other)
    table = {
        "time_ms": [*events.time_ms.tolist(), *other.time_ms.tolist()],
        "event": [*names.tolist(), *["task"] * len(other)],
        "node": [*kinds, *(f"sn:{sn}" for sn in other.sn.tolist())],
        "factor": [*(None if f != f else f for f in events.factor.tolist()), *none],
        "input_bytes": [*[None] * len(events), *other.input_bytes.tolist()],
        "cycles": [*[None] * len(events), *other.cycles.tolist()],
        "true_cycles": [
            *[None] * len(events),
            *(none if other.as_declared else other.work_cycles.tolist()),
        ],
    }
    texts = ("event", "node")
    schema = {k: polars.String if k in texts else polars.Float64 for k in EVENT_COLUMNS}
    frame = polars.DataFrame(table, schema=schema)
    write_table(path, frame.sort("time_ms", maintain_order=True))


class _Row:
    """The cells of a row: texts of a CSV file, values of a Parquet file."""

    def __init__(self, table: Cells, row: int, cells: dict[str, Any]) -> None:
        self._table, self._row, self._cells = table, row, cells

    def refuse(self, name: str, allowed: str) -> None:
        """Raise the one-line InputError for a field of this row."""
        value = self._cells.get(name)
        shown = "missing" if value is None else f"{value:g}" if _is_number(value) else repr(value)
        raise self._table.refused(self._row, f"{name} = {shown}: {allowed}")

    def is_empty(self, name: str) -> bool:
        """Whether a cell says nothing."""
        value = self._cells.get(name)
        return value is None or value == "" or (_is_number(value) and math.isnan(value))

    def number(self, name: str, most: float, *, zero: bool = False) -> float:
        """A finite number, greater than 0, or 0 where that is allowed."""
        try:
            found = float(self._cells.get(name, ""))
        except (TypeError, ValueError):
            self.refuse(name, "must be a number")
        if not (0.0 <= found <= most and (found > 0.0 or zero)):
            self.refuse(
                name, f"must be {'0 or greater' if zero else 'greater than 0'}, up to {most:g}"
            )
        return found

    def node(self, ens: int, sns: int) -> tuple[str, int]:
        """Kind and number of a node of the site."""
        found = _NODE.fullmatch(str(self._cells["node"]))
        if found is None:
            self.refuse("node", "must look like en:0 or sn:1")
        assert found is not None
        kind, number = found[1], int(found[2])
        count = ens if kind == "en" else sns
        if number >= count:
            self.refuse("node", f"must be from {kind}:0 to {kind}:{count - 1}")
        return kind, number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _tenants(tasks: list[tuple[float, ...]]) -> BackgroundTasks:
    time, sn, size, cycles, true = np.array(tasks, np.float64).reshape(len(tasks), 5).T
    declared = bool((cycles == true).all())
    return BackgroundTasks(time, sn.astype(np.int64), size, cycles, None if declared else true)
