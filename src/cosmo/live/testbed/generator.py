"""The UEs as a process of its own: replays a file of tasks at ENs, and writes what became of them.

As light as a node, so that it can have a node's priority and stand in a namespace. It is started
as `python -m cosmo.live.testbed.generator JOB OUT ADDRESS…` by the test bed.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cosmo.live.load import Load, Replayed, replayed
from cosmo.live.realtime import new_loop


def write_job(load: Load, scale: float, path: Path) -> None:
    """What the process is to do."""
    with path.open("wb") as file:
        columns: dict[str, Any] = {"scale": np.array(scale), **load.columns()}
        np.savez(file, **columns)


def write_replayed(found: Replayed, path: Path) -> None:
    """What became of it."""
    with path.open("wb") as file:
        np.savez(
            file,
            fate=found.fate,
            where=np.array(found.where, np.str_),
            delay_ms=found.delay_ms,
            error=np.array(list(found.errors), np.str_),
            errors=np.array(list(found.errors.values()), np.int64),
            late_ms=np.array([found.late_p99_ms, found.late_most_ms]),
        )


def read_replayed(path: Path) -> Replayed:
    """The same, read back."""
    told = _read(path)
    late = told["late_ms"].tolist()
    return Replayed(
        fate=told["fate"],
        where=told["where"].tolist(),
        delay_ms=told["delay_ms"],
        errors=dict(zip(told["error"].tolist(), told["errors"].tolist(), strict=True)),
        late_p99_ms=late[0],
        late_most_ms=late[1],
    )


def _read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def main() -> None:
    """Replay, at the addresses of the ENs in their order."""
    job, out, *addresses = sys.argv[1:]
    columns = _read(Path(job))
    scale = float(columns.pop("scale"))
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        found = runner.run(replayed(Load(**columns), addresses, scale))
    write_replayed(found, Path(out))


if __name__ == "__main__":
    main()
