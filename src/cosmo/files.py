"""Files that are either whole or not there: written under another name, then renamed.

What is read is a regular file of a size that its kind may have: a device, a pipe or a folder under
a file's name is refused, and so is a file that nobody could have meant.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from cosmo import checksums
from cosmo.errors import InputError

_MB = 10**6
# What is read at most, in bytes.
MOST_DOCUMENT = 16 * _MB  # TOML of people: scenarios, plans, daemons
MOST_RECORD = 256 * _MB  # JSON: of trainings and studies, recorded episodes
MOST_CSV = 512 * _MB  # traces and decision logs
MOST_TABLE = 2000 * _MB  # Parquet, and traces of others that are imported
MOST_ARRAYS = 16_000 * _MB  # checkpoints, with the memories of many runs
MOST_NETWORK = 2000 * _MB  # agents of others: ONNX, Stable-Baselines3
MOST_KEY = _MB  # certificates and keys

_TEMPORARY = "cosmo-run-"  # begins the names of temporary folders


def opened(path: Path, most_bytes: int) -> BinaryIO:
    """A regular file, opened to be read; the caller closes it.

    Raises OSError, whose `strerror` says why in a few words, if there is none, if it is not a
    regular file (it is not waited for, as one would for a pipe), or if it is too large.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if found.st_size > most_bytes:
            raise _too_large(path, most_bytes)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file; OSError as `opened` raises it."""
    with opened(path, most_bytes) as file:
        content = file.read(most_bytes + 1)  # some files of the system say that they are empty
    if len(content) > most_bytes:
        raise _too_large(path, most_bytes)
    return content


def digest_of(path: Path) -> str:
    """SHA-256 of a regular file's content, in hexadecimal; OSError as `opened` raises it."""
    with opened(path, MOST_ARRAYS) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _too_large(path: Path, most_bytes: int) -> OSError:
    return OSError(errno.EFBIG, f"larger than {most_bytes // _MB} MB", str(path))


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


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder among the system's temporary files that is gone after the block.

    A killed process cannot remove its own. Each is locked by its process, however that ends; those
    of this user that are not locked any more are removed here.
    """
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY}*"):
        with suppress(OSError):
            left = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(left).st_uid == os.geteuid():
                    fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(left)
    folder, handle = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _locked_folder() -> tuple[Path, int]:
    """A new temporary folder, and its lock; not one that another process has just removed."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
        try:
            handle = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            continue
        except OSError:
            pass  # there are no locks on this disk, so that nobody removes it either
        if folder.exists():
            return folder, handle
        os.close(handle)


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
        raise InputError(f"out = '{folder}': cannot be made a folder ({error.strerror})") from None
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
            f"out = '{folder}': another run is at work in it; wait for it, or choose another folder"
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
        told = json.loads(read_bytes(path, MOST_RECORD).decode())
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"'{path.parent}': {absent} (no {path.name})") from None
    except OSError as error:
        raise InputError(f"'{path}': cannot be read ({error.strerror})") from None
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
_LEFT = re.compile(
    r"\..+\.(json|npz|parquet|csv|html|md|tex|png|svg|pdf|toml|txt|onnx)\.[a-z0-9_]{8}"
)


def file_name(text: str) -> str:
    """A name that somebody chose, as part of a file's name: other names give other files.

    It has letters, digits and `._+-` only, 60 at most. If that changes the name, a digest of it
    is added.
    """
    plain = re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60]
    if plain and plain == text:
        return text
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")
