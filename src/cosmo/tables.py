"""Tables in files: CSV or Parquet, by suffix, whole or not there."""

import io
from pathlib import Path

import polars

from cosmo.errors import InputError
from cosmo.files import whole_file


def table_format(path: Path) -> str:
    """`csv` or `parquet`, by suffix."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"'{path}': must end in .csv or .parquet")
    return path.suffix[1:]


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
