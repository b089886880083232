"""The decision log: a row a task, in the columns of a trace, so that a simulation can replay it.

Rows are kept until a file is full, the first of them is some seconds old, or the node stops; files
appear whole, in order of generation, with times that start at 0; `epoch_ms` is the time of
generation by the wall clock, in ms since 1970. What is kept is lost if the process is killed. A
thread writes, so that no task waits for a disk; rows for which a slow disk has no time are lost.

What the EN had been told of its SNs when it decided is kept as text: `status_age_ms` and `status`
have a part for each SN, separated by semicolons, which is empty while nothing has been heard of it;
the numbers of a status are separated by spaces.
"""

import csv
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cosmo.errors import InputError
from cosmo.files import whole_file
from cosmo.live.tasks import Fate, Item
from cosmo.node import DispatchObservation

COLUMNS = (
    "time_ms", "ue", "input_bytes", "cycles", "deadline_ms",  # of a trace
    "kind", "decided_ms", "action", "fate", "ended_ms", "rerun", "epoch_ms",
    "status_age_ms", "status",
)  # fmt: skip


_MOST_FILES = 2  # that wait to be written


class DecisionLog:
    """Writes `FILE`, then `FILE` with -1, -2, … before its suffix; never over what is there."""

    def __init__(
        self, path: str, rows: int, failed: Callable[[str], None], seconds: float = math.inf
    ) -> None:
        self._path, self._most, self._failed = Path(path) if path else None, rows, failed
        if self._path is not None and self._path.suffix not in (".csv", ".parquet"):
            raise InputError(f"log.decisions = {path!r}: must end in .csv or .parquet")
        self._rows: list[tuple[object, ...]] = []
        self._files = 0
        self._thread = ThreadPoolExecutor(1, "decisions")  # starts with its first file
        self._writing: list[Future[None]] = []
        self._seconds, self._lock = seconds, threading.RLock()
        self._timer: threading.Timer | None = None

    @property
    def wanted(self) -> bool:
        """Whether anything is logged."""
        return self._path is not None

    def note(self, seen: DispatchObservation, item: Item) -> None:
        """A decision was taken: keep what the EN knew, for when the task has been answered."""
        if self._path is not None and seen.status.shape[2]:
            item.known = (seen.time_ms[0] - seen.status_ms[0], seen.status[0].copy())

    def add(self, item: Item, fate: Fate, now: float) -> None:
        """A task has been answered."""
        if self._path is None:
            return
        epoch_ms = round(1000.0 * time.time() - (now - item.generated_ms), 3)
        with self._lock:
            self._rows.append(
                (
                    *(item.generated_ms, item.ue, item.input_bytes, item.cycles, item.deadline_ms),
                    *(item.kind, item.decided_ms, item.action, fate.name, now, int(item.rerun)),
                    *(epoch_ms, item.known),
                )
            )
            if len(self._rows) >= self._most:
                self._hand_over()
            elif self._timer is None and math.isfinite(self._seconds):
                self._timer = threading.Timer(self._seconds, self._hand_over)
                self._timer.daemon = True
                self._timer.start()

    def close(self, wait: bool = True) -> None:
        """Write what there is, at the latest when the process ends."""
        self._hand_over()
        self._thread.shutdown(wait)

    def _hand_over(self) -> None:
        with self._lock:
            self._hand_over_alone()

    def _hand_over_alone(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._path is None or not self._rows:
            return
        rows, self._rows = self._rows, []
        self._writing = [each for each in self._writing if not each.done()]
        if len(self._writing) >= _MOST_FILES:
            self._failed(f"{len(rows)} rows are lost: {_MOST_FILES} files are still to be written")
            return
        path = self._next_path(self._path)
        self._writing.append(self._thread.submit(self._write, path, rows))

    def _next_path(self, path: Path) -> Path:
        """The next name that is not taken, as it may be by files of an earlier start."""
        while True:
            number = f"-{self._files}" if self._files else ""
            found = path.with_name(f"{path.stem}{number}{path.suffix}")
            self._files += 1
            if not found.exists():
                return found

    def _write(self, path: Path, unordered: list[tuple[object, ...]]) -> None:
        rows = sorted(unordered, key=lambda row: row[0])  # type: ignore[arg-type, return-value]
        first = float(rows[0][0])  # type: ignore[arg-type]
        moved = {COLUMNS.index(name) for name in ("time_ms", "decided_ms", "ended_ms")}
        shifted = [
            (
                *(
                    round(float(value) - first, 6) if place in moved else value  # type: ignore[arg-type]
                    for place, value in enumerate(told)
                ),
                *_known_told(known),
            )
            for *told, known in rows
        ]
        try:
            _write(path, shifted)
        except Exception as error:  # nobody else hears of what goes wrong in a thread
            self._failed(f"{path}: {error}")


def _known_told(known: Any) -> tuple[str, str]:
    """Ages and statuses of the SNs as text; empty if the method goes by none."""
    if known is None:
        return "", ""
    heard = [
        None if math.isnan(age) else (age, numbers) for age, numbers in zip(*known, strict=True)
    ]
    return (
        ";".join("" if each is None else f"{each[0]:.6g}" for each in heard),
        ";".join("" if each is None else " ".join(f"{n:.6g}" for n in each[1]) for each in heard),
    )


def _harmless(row: tuple[object, ...]) -> tuple[object, ...]:
    """With the quote that has a spreadsheet take a client's kind for text, not for a formula."""
    place = COLUMNS.index("kind")
    quote = "'" if str(row[place]).startswith(("=", "+", "-", "@")) else ""
    return *row[:place], f"{quote}{row[place]}", *row[place + 1 :]


def _write(path: Path, rows: list[tuple[object, ...]]) -> None:
    with whole_file(path) as temporary:
        if path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                writer.writerows(map(_harmless, rows))
            return
        import polars  # of the extra [lab]: a node without it writes CSV

        columns = zip(*rows, strict=True)
        polars.DataFrame(dict(zip(COLUMNS, columns, strict=True))).write_parquet(temporary)
