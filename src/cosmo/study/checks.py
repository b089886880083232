"""Whether a unit is finished, and its files are still what it wrote.

`done.json` is written last; it says what was done and holds the digest of every file of the unit.
"""

import shutil
from pathlib import Path
from typing import Any

from cosmo.errors import InputError
from cosmo.files import digest_of, read_record, write_record
from cosmo.policy.controller import AGENTS, DESCRIPTION

FORMAT = 1
DONE, CHECKPOINT = "done.json", "checkpoint"
METRICS_FILE, CURVES_FILE, BOUNDS_FILE = "metrics.parquet", "curves.parquet", "bounds.parquet"
TUNED_FILE, TRIALS_FILE = "tuned.parquet", "trials.parquet"
STATE = f"{CHECKPOINT}/state.npz"  # only of use to a training that goes on: need not be there
_TABLES = (METRICS_FILE, CURVES_FILE, BOUNDS_FILE, TUNED_FILE, TRIALS_FILE)
_FILES = (
    *_TABLES,
    *(f"{CHECKPOINT}/{name}" for name in (DESCRIPTION, AGENTS, CURVES_FILE)),
    STATE,
)


def write_done(folder: Path, told: dict[str, Any]) -> None:
    """Say that the unit in this folder is finished: `told`, and what its files are."""
    files = {name: digest_of(folder / name) for name in _FILES if (folder / name).is_file()}
    write_record(folder / DONE, {"format": FORMAT, **told, "written": files})


def finished(folder: Path) -> bool:
    """Whether a unit's folder holds its results, as they were written."""
    return (folder / DONE).exists() and not _damaged(folder)


def damage(folder: Path) -> str:
    """What is wrong with a unit that was finished, in one line; "" if nothing is."""
    return next(iter(_damaged(folder).values()), "") if (folder / DONE).exists() else ""


def discard(folder: Path) -> None:
    """Remove what is damaged, so that the unit is done again; a whole checkpoint is kept."""
    damaged = _damaged(folder)
    if DONE in damaged:
        whole = False  # nobody knows
    else:
        state = _wrong(folder, STATE, _written(folder).get(STATE))
        whole = not state and not any(name.startswith(CHECKPOINT) for name in damaged)
    if not whole:
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    for name in (DONE, *_TABLES):
        (folder / name).unlink(missing_ok=True)


def _written(folder: Path) -> dict[str, str]:
    """What `done.json` says about files; raises InputError if it cannot be believed."""
    told = read_record(folder / DONE, "nothing is finished", "cosmo study", FORMAT)
    written = told.get("written")
    if not isinstance(written, dict) or not written.keys() & {
        METRICS_FILE,
        BOUNDS_FILE,
        TUNED_FILE,
    }:
        raise InputError(f"'{folder / DONE}': has no checksums")
    return written


def _damaged(folder: Path) -> dict[str, str]:
    """The files that are not what was written, and what is wrong with them."""
    try:
        written = _written(folder)
    except InputError as error:
        return {DONE: str(error)}
    found = {name: _wrong(folder, name, digest) for name, digest in written.items()}
    return {name: wrong for name, wrong in found.items() if wrong and name != STATE}


def _wrong(folder: Path, name: str, digest: str | None) -> str:
    try:
        same = digest_of(folder / name) == digest
    except OSError as error:
        return f"'{folder / name}': cannot be read ({error.strerror})"
    return "" if same else f"'{folder / name}': is not what was written; the file is damaged"
