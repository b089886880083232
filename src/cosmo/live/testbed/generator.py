"""The UEs as a process of its own: replays a file of tasks at ENs, and writes what became of them.

It also plays what else happens to nodes: changes of their speed, and tasks of tenants. As light as
a node, so that it can have a node's priority and stand in a namespace. It is started as `python -m
cosmo.live.testbed.generator JOB OUT ADDRESS…` by the test bed, with the addresses of all ENs, then
of all SNs, and prints when the episode's time is 0, in seconds of the machine's monotonic clock.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cosmo.live.load import Changes, Load, Replayed, replayed
from cosmo.live.realtime import new_loop

_CHANGE = "change_"  # before the names of the columns of changes


def write_job(
    load: Load, scale: float, path: Path, ens: int, changes: Changes | None = None
) -> None:
    """What the process is to do at so many ENs, and at all nodes."""
    columns: dict[str, Any] = {"scale": np.array(scale), "ens": np.array(ens), **load.columns()}
    if changes is not None:
        columns |= {f"{_CHANGE}{name}": column for name, column in changes.columns().items()}
    with path.open("wb") as file:
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
    """Replay, at the addresses of the nodes in their order."""
    job, out, *nodes = sys.argv[1:]
    columns = _read(Path(job))
    scale, ens = float(columns.pop("scale")), int(columns.pop("ens"))
    names = [name for name in columns if name.startswith(_CHANGE)]
    theirs = {name.removeprefix(_CHANGE): columns.pop(name) for name in names}
    changes = Changes(**theirs) if theirs else None
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        told = replayed(Load(**columns), nodes[:ens], scale, changes, nodes, _announce)
        found = runner.run(told)
    write_replayed(found, Path(out))


def _announce(start_s: float) -> None:
    print(start_s, flush=True)


if __name__ == "__main__":
    main()
