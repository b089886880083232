"""Tables in files: CSV or Parquet, by suffix, whole or not there."""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars

from cosmo.errors import InputError
from cosmo.files import MOST_TABLE, opened, whole_file


def table_format(path: Path) -> str:
    """`csv` or `parquet`, by suffix."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"'{path}': must end in .csv or .parquet")
    return path.suffix[1:]


def read_parquet(path: Path, wrong: str) -> polars.DataFrame:
    """A Parquet file as a table; if it is none, InputError in one line that begins with `wrong`.

    Raises OSError if there is no such regular file, or if it is too large.
    """
    try:
        with opened(path, MOST_TABLE) as file, _without_panics():
            return polars.read_parquet(file)
    except OSError:
        raise
    except BaseException as error:  # at a flipped bit Polars may panic, which is no Exception
        if not isinstance(error, Exception | polars.exceptions.PanicException):
            raise
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{wrong} ({reason[:200]})") from None


@contextmanager
def _without_panics() -> Iterator[None]:
    """What compiled code writes to the error stream by itself is not shown: its error says it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def write_table(path: Path, table: polars.DataFrame) -> None:
    """Write a table as CSV or Parquet, by suffix."""
    kind = table_format(path)
    content = io.BytesIO()  # written by ourselves: Polars does not tell why a disk refuses
    if kind == "csv":
        table.write_csv(content)
    else:
        table.write_parquet(content)
    with whole_file(path) as temporary:
        temporary.write_bytes(content.getbuffer())
