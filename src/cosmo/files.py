"""Files that are either whole or not there: written under another name, then renamed."""

import io
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars

from cosmo.errors import InputError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its name if the block succeeds, else vanishes."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or Path())
    except OSError as error:
        raise InputError(f"'{path}': cannot be written ({error.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"'{path}': cannot be written ({error.strerror})") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder; what a killed `whole_file` left there is removed."""
    inside = list(folder.iterdir())
    for path in inside:
        if _LEFT.fullmatch(path.name):
            path.unlink(missing_ok=True)
    return all(_LEFT.fullmatch(path.name) for path in inside)


# Temporary names of `whole_file`: what it writes, and eight characters.
_LEFT = re.compile(r"\..+\.(json|npz|parquet|csv|html|md|tex|png|svg|pdf|toml)\.[a-z0-9_]{8}")


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
