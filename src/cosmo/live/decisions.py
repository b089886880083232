"""The decision log: a row a task, in the columns of a trace, so that a simulation can replay it.

Rows are kept until a file is full or the node stops; files appear whole, in order of generation,
with times that start at 0. What is kept is lost if the process is killed.
"""

import csv
from collections.abc import Callable
from pathlib import Path

from cosmo.errors import InputError
from cosmo.files import whole_file
from cosmo.live.items import Fate, Item

COLUMNS = (
    "time_ms", "ue", "input_bytes", "cycles", "deadline_ms",  # of a trace
    "kind", "decided_ms", "action", "fate", "ended_ms", "rerun",
)  # fmt: skip


class DecisionLog:
    """Writes `FILE`, then `FILE` with -1, -2, … before its suffix; nothing without a file."""

    def __init__(self, path: str, rows: int, failed: Callable[[str], None]) -> None:
        self._path, self._most, self._failed = Path(path) if path else None, rows, failed
        if self._path is not None and self._path.suffix not in (".csv", ".parquet"):
            raise InputError(f"log.decisions = {path!r}: must end in .csv or .parquet")
        self._rows: list[tuple[object, ...]] = []
        self._files = 0

    def add(self, item: Item, fate: Fate, now: float) -> None:
        """A task has been answered."""
        if self._path is None:
            return
        self._rows.append(
            (
                *(item.generated_ms, item.ue, item.input_bytes, item.cycles, item.deadline_ms),
                *(item.kind, item.decided_ms, item.action, fate.name, now, int(item.rerun)),
            )
        )
        if len(self._rows) >= self._most:
            self.close()

    def close(self) -> None:
        """Write what there is."""
        if self._path is None or not self._rows:
            return
        rows, self._rows = sorted(self._rows, key=lambda row: row[0]), []  # type: ignore[arg-type, return-value]
        first = float(rows[0][0])  # type: ignore[arg-type]
        moved = {COLUMNS.index(name) for name in ("time_ms", "decided_ms", "ended_ms")}
        shifted = [
            tuple(
                round(float(value) - first, 6) if place in moved else value  # type: ignore[arg-type]
                for place, value in enumerate(row)
            )
            for row in rows
        ]
        number = f"-{self._files}" if self._files else ""
        path = self._path.with_name(f"{self._path.stem}{number}{self._path.suffix}")
        self._files += 1
        try:
            _write(path, shifted)
        except (InputError, ImportError) as error:
            self._failed(str(error))


def _write(path: Path, rows: list[tuple[object, ...]]) -> None:
    with whole_file(path) as temporary:
        if path.suffix == ".csv":
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(COLUMNS)
                writer.writerows(rows)
            return
        import polars  # of the extra [lab]: a node without it writes CSV

        columns = zip(*rows, strict=True)
        polars.DataFrame(dict(zip(COLUMNS, columns, strict=True))).write_parquet(temporary)
