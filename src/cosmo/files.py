"""Files that are either whole or not there: written under another name, then renamed."""

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cosmo import checksums
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
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(f"'{path}': cannot be written ({error.strerror})") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same for a folder: what was there before is replaced."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise InputError(f"'{path}': cannot be written ({error.strerror})") from None
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"'{path}': cannot be written ({error.strerror})") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def made_folder(folder: Path, clean: bool = True) -> bool:
    """Make sure of an output folder; whether it is empty.

    What a killed `whole_file` left there does not count and is removed, unless not `clean`.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        inside = list(folder.iterdir())
        left = [path for path in inside if _LEFT.fullmatch(path.name)]
        for path in left if clean else ():
            path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"--out = '{folder}': cannot be made a folder ({error.strerror})"
        ) from None
    return len(left) == len(inside)


@contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Make sure of an output folder, and refuse to work in it while another run does.

    The folder itself is locked, and the system lets go of it however this process ends. Where
    folders cannot be locked, as on some network disks, nothing is refused. A folder that is new
    and still empty when the block fails is removed.
    """
    new = not os.path.exists(folder)
    made_folder(folder, clean=False)
    handle = os.open(folder, os.O_RDONLY)
    try:
        _lock(folder, handle)
        yield
    except BaseException:
        if new:
            with suppress(OSError):
                folder.rmdir()
        raise
    finally:
        os.close(handle)


def _lock(folder: Path, handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"--out = '{folder}': another run is at work in it; wait for it, or choose another"
            " folder"
        ) from None
    except OSError:
        pass


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """A JSON file of ours, sealed with a digest of its content; it must have a `format`."""
    with whole_file(path) as temporary:
        text = json.dumps(checksums.sealed_record(record), indent=2)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_record(path: Path, absent: str, writer: str, version: int) -> dict[str, Any]:
    """A JSON file of ours: `writer` wrote it, in format `version`, or it is refused."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(f"'{path.parent}': {absent} (no {path.name})") from None
    except (ValueError, RecursionError):
        raise InputError(f"'{path}': is not JSON; the file is damaged") from None
    if not isinstance(told, dict) or "format" not in told:
        raise InputError(f"'{path}': was not written by {writer}")
    if told["format"] != version:
        raise InputError(
            f"'{path}': format {told['format']}, written by cosmo {told.get('version', '?')};"
            f" this version reads format {version}"
        )
    if not checksums.record_holds(told):
        raise InputError(f"'{path}': is not what was written; the file is damaged")
    return {name: value for name, value in told.items() if name != checksums.SEAL}


# Temporary names of `whole_file`: what it writes, and eight characters.
_LEFT = re.compile(r"\..+\.(json|npz|parquet|csv|html|md|tex|png|svg|pdf|toml|txt)\.[a-z0-9_]{8}")


def file_name(text: str) -> str:
    """A name that somebody chose, as part of a file's name: other names give other files.

    It has letters, digits and `._+-` only, 60 at most. If that changes the name, a digest of it
    is added.
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60]
    if plain and plain == text:
        return text
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
