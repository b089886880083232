"""The decision log of a live EN as a recording for the episode viewer.

A node knows what it decided, what statuses it had of its SNs, and how its tasks ended. Nobody
knows what was true: true backlogs and delays of the ways that were not taken are not in such a
recording. Logs of before have no statuses either.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cosmo.errors import InputError
from cosmo.report.recording import FORMAT
from cosmo.workload.cells import Cells
from cosmo.workload.decision_logs import decision_cells

_NUMBERS = (
    "time_ms", "ue", "input_bytes", "cycles", "deadline_ms", "decided_ms", "action", "ended_ms",
    "rerun",
)  # fmt: skip
_OF_STATUSES = ("status_age_ms", "status")  # logs of before have none
_FATES = ("DONE", "LATE", "REFUSED", "REJECTED", "EXPIRED", "FAILED")
_MOST_NODES = 10_000  # an action beyond is none
_MOST_WHOLE = {"action": _MOST_NODES, "ue": 2**32 - 1}
_MOST_NUMBERS = 10_000_000  # tasks times nodes: a page for people has far fewer


def is_decision_log(path: Path) -> bool:
    """By its suffix: recordings of the simulator are JSON."""
    return path.suffix in (".csv", ".parquet")


def read_decisions(path: Path) -> dict[str, Any]:
    """A recording of a log (CSV or Parquet); InputError in one line if it is none."""
    cells = decision_cells(path, (*_NUMBERS, "kind", "fate"))
    table, rows = _table(cells), len(cells)
    told = max((text.count(";") + 1 for text in table["status_age_ms"] if text), default=0)
    sns = max(_number_of_sns(table), told)
    if rows * (sns + 1) > _MOST_NUMBERS:
        raise InputError(
            f"'{path}': has {rows} tasks and {sns} SNs, tasks times nodes must be at most"
            f" {_MOST_NUMBERS}"
        )
    actions = [int(action) for action in table["action"]]
    inside = [_present(table, node, sns) for node in range(sns + 1)]
    times = [_short(time) for time in table["time_ms"]]
    done = sum(fate == "DONE" for fate in table["fate"])
    return {
        "format": FORMAT,
        "live": True,
        "window_ms": max(*table["time_ms"], *(end for end in table["ended_ms"] if end == end)),
        "warmup_ms": 0.0,
        "ens": 1,
        "sns": sns,
        "reach": [list(range(sns))],
        "status": any(table["status"]),
        "metrics": {"success_rate": _short(done / rows)},
        "tasks": {
            "task": list(range(rows)),
            "time": times,
            "en": [0] * rows,
            "ue": [int(ue) for ue in table["ue"]],
            "kind": table["kind"],
            "action": actions,
            "bytes": table["input_bytes"],
            "cycles": table["cycles"],
            "deadline": table["deadline_ms"],
            "decided": [_short(time) for time in table["decided_ms"]],
            "finished": [_short(time) for time in table["ended_ms"]],
            "rerun": [bool(again) for again in table["rerun"]],
            "outcome": table["fate"],
            "age": _told(cells, table, "status_age_ms", sns, lambda numbers: numbers[0]),
            "semantic": _told(cells, table, "status", sns, list),
            "en_requests": inside[0],
            "sn_requests": [list(counts) for counts in zip(*inside[1:], strict=True)]
            if sns
            else [[] for _ in range(rows)],
        },
        "updates": {"time": [], "sn": [], "send": [], "interval": []},
    }


def _number_of_sns(table: dict[str, list[Any]]) -> int:
    """The log does not say how many SNs there are: a rejection is the action after the last."""
    both = list(zip(table["action"], table["fate"], strict=True))
    rejections = [int(action) for action, fate in both if fate == "REJECTED" and action > 0]
    offloads = [int(action) for action, fate in both if fate != "REJECTED"]
    return max(min(rejections) - 1 if rejections else 0, *offloads, 0)


def _present(table: dict[str, list[Any]], node: int, sns: int) -> list[int]:
    """How many tasks a node (0 the EN, k the k-th SN) has when each task is generated.

    A task is there from its decision to its answer; one that was taken up again by the EN counts
    where it was sent first.
    """
    stays = [
        (decided, ended)
        for action, decided, ended, fate in zip(
            table["action"], table["decided_ms"], table["ended_ms"], table["fate"], strict=True
        )
        if action == node and fate not in ("REJECTED", "REFUSED") and decided == decided
    ]
    came = sorted(decided for decided, _ in stays)
    left = sorted(ended for _, ended in stays)
    return [bisect_left(came, time) - bisect_right(left, time) for time in table["time_ms"]]


def _table(cells: Cells) -> dict[str, list[Any]]:
    """The columns as lists, checked; what is not known of a time is NaN."""
    found: dict[str, list[Any]] = {name: cells.texts(name) for name in ("kind", "fate")}
    for name in _OF_STATUSES:
        found[name] = cells.texts(name) if name in cells.header else [""] * len(cells)
    for name in _NUMBERS:
        texts = enumerate(cells.texts(name))
        found[name] = [_number(cells, row, name, text) for row, text in texts]
    for row, fate in enumerate(found["fate"]):
        if fate not in _FATES:
            raise cells.refused(row, f"fate = {fate!r}: must be one of {', '.join(_FATES)}")
    return found


def _number(cells: Cells, row: int, name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    allowed = "a finite number"
    # A task that was answered before anybody decided has no time of its decision.
    right = math.isfinite(number) or (name == "decided_ms" and math.isnan(number))
    if name in _MOST_WHOLE:
        allowed = f"a whole number from -1 to {_MOST_WHOLE[name]}"
        right = right and number == int(number) and -1 <= number <= _MOST_WHOLE[name]
    if not right:
        raise cells.refused(row, f"{name} = {text!r}: must be {allowed}")
    return number


def _told(
    cells: Cells, table: dict[str, list[Any]], name: str, sns: int, of: Callable[[list[float]], Any]
) -> list[Any]:
    """What the log has of each SN, by task: null where nothing had been heard of any, or of one."""
    found: list[Any] = []
    for row, text in enumerate(table[name]):
        parts = [
            of([_number(cells, row, name, number) for number in part.split()])
            if part.strip()
            else None
            for part in text.split(";")
        ]
        found.append([*parts, *[None] * (sns - len(parts))] if text else None)
    return found


def _short(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.7g}")
