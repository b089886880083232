"""Tables of others, CSV or Parquet: read once, with lines for what is refused in them."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.files import MOST_CSV, MOST_TABLE, opened, read_bytes
from cosmo.tables import read_parquet


@dataclass(frozen=True)
class Cells:
    """A table of others: texts of a CSV file, values of a Parquet file."""

    path: Path
    header: list[str]
    content: list[list[str]] | polars.DataFrame  # without rows that are `bad`
    lines: Sequence[int]  # where each row is in the file
    unit: str  # what a line is called
    bad: list[tuple[int, str]]  # (line, what is wrong with it)

    def __len__(self) -> int:
        return len(self.lines)

    def rows(self) -> list[dict[str, Any]]:
        """Cells by column; texts without spaces around them."""
        if isinstance(self.content, polars.DataFrame):
            return self.content.rows(named=True)
        return [dict(zip(self.header, map(str.strip, row), strict=True)) for row in self.content]

    def texts(self, name: str) -> list[str]:
        """A column as texts."""
        if isinstance(self.content, polars.DataFrame):
            return list(map(str, self.content[name].to_list()))
        place = self.header.index(name)
        return [row[place] for row in self.content]

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column as numbers; NaN where a column of numbers in Parquet has none.

        InputError in one line names the first cell that is no number.
        """
        if isinstance(self.content, polars.DataFrame) and self.content[name].dtype.is_numeric():
            column = self.content[name].cast(polars.Float64).fill_null(float("nan"))
            return column.to_numpy().copy()
        texts = self.texts(name)
        try:
            return np.array(list(map(float, texts)), np.float64)
        except ValueError:
            row, text = next((row, text) for row, text in enumerate(texts) if not _is_number(text))
            raise self.refused(row, f"{name} = {text!r}: must be a number") from None

    def refused(self, row: int, why: str) -> InputError:
        """The one line that refuses a row."""
        return InputError(f"'{self.path}', {self.unit} {self.lines[row]}: {why}")

    def check_whole(self) -> None:
        """Refuse a table with rows that are bad."""
        if self.bad:
            line, why = self.bad[0]
            raise InputError(f"'{self.path}', {self.unit} {line}: {why}")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_cells(path: Path, field: str = "", kind: str = "") -> Cells:
    """A table of others; InputError in one line if it cannot be read as what it should be.

    Args:
        path: The file.
        field: What names it, for the error.
        kind: `csv` or `parquet`; by suffix if it is not given.

    """
    where = f"{field} = '{path}'" if field else f"'{path}'"
    kind = kind or path.suffix[1:]
    if kind not in ("csv", "parquet"):
        raise InputError(f"{where}: must end in .csv or .parquet")
    with one_line(where):
        if kind == "csv":
            return _csv_cells(path)
        table = read_parquet(path, f"{where}: not a Parquet file")
    return Cells(path, table.columns, table, range(1, len(table) + 1), "row", [])


def header_of(path: Path) -> list[str]:
    """The names of the columns; OSError, ValueError, csv.Error or PolarsError if it has none."""
    if path.suffix == ".parquet":
        with opened(path, MOST_TABLE) as file:
            return list(polars.read_parquet_schema(file))
    return _header(_csv_reader(path))


def check_columns(path: Path, header: Iterable[str], needed: Sequence[str]) -> None:
    """Refuse a table that has not all of them."""
    missing = [name for name in needed if name not in header]
    if missing:
        raise InputError(f"'{path}': column {missing[0]} is missing, needed: {','.join(needed)}")


@contextmanager
def one_line(where: str) -> Iterator[None]:
    """InputError, in one line that begins with `where`, for a file that cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror or error})") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: not a text file in UTF-8") from None


def _csv_cells(path: Path) -> Cells:
    reader = _csv_reader(path)
    rows, lines, bad = [], [], []
    try:
        header = _header(reader)
        for row in reader:
            if not row:
                continue
            if len(row) == len(header):
                rows.append(row)
                lines.append(reader.line_num)
            else:
                wrong = f"{len(row)} values, must be {len(header)} as in the header"
                bad.append((reader.line_num, wrong))
    except csv.Error as error:
        raise InputError(f"'{path}', line {reader.line_num}: {error}") from None
    return Cells(path, header, rows, lines, "line", bad)


def _csv_reader(path: Path) -> Any:
    text = io.StringIO(read_bytes(path, MOST_CSV).decode("utf-8-sig"), newline="")
    first = next((line for line in text if line.strip()), "")
    text.seek(0)
    # Spreadsheets of half the world separate by semicolons; a header says so by having no comma.
    separator = next((sign for sign in (",", ";", "\t") if sign in first), ",")
    return csv.reader(text, delimiter=separator, skipinitialspace=True)


def _header(reader: Iterable[list[str]]) -> list[str]:
    return [name.strip() for name in next((row for row in reader if row), [])]
