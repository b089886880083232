"""Work killed at random moments, and files damaged: identical results, or a refusal.

    python campaigns/chaos.py --kills 2 --flips 200       what continuous integration does
    make chaos KILLS=200 FLIPS=5000                       an evening

A small study with a training is carried out undisturbed. Then it is carried out again while its
processes are killed (-9, all at once) at random moments, and resumed, until it is finished: its
tables, curves and networks must be the same bit by bit. Then files of the finished study are
damaged one at a time: bits flipped, cut, emptied or deleted. Whatever is read back must be what was
written, or refused in one line; a unit that cannot be believed must say so.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars

from cosmo import InputError
from cosmo.arrays import read_arrays
from cosmo.policy.controller import load_controller
from cosmo.study import LocalExecutor, conduct, load_plan, load_study, progress_of

PLAN = """name = "chaos"
settings = ["episode.window_ms=1000", "episode.warmup_ms=200"]
arrivals = ["poisson"]
rates = [320.0]
seeds = [0]
episodes = 2

[training]
settings = [
  "episodes=6", "validate_every=2", "encoder.collection_episodes=2", "encoder.epochs=2",
  "en.batch=16", "sn.batch=16",
]

[[compare]]
methods = ["cosmo", "all-local", "random", "aoi-threshold"]
"""
LIMIT_S = 600.0  # of an undisturbed run; none takes nearly that long


def started(plan: Path, out: Path) -> subprocess.Popen[bytes]:
    """The study, in a session of its own."""
    command = [sys.executable, "-m", "cosmo", "study", "run", str(plan), "--out", str(out)]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(
        [*command, "--workers", "1"], stdout=nowhere, stderr=nowhere, start_new_session=True
    )


def finished(plan: Path, out: Path) -> float:
    """Carry it out to the end; how many seconds that took."""
    start = time.monotonic()
    code = started(plan, out).wait(LIMIT_S)
    if code != 0:
        raise SystemExit(f"the study in {out} ended with exit code {code}")
    return time.monotonic() - start


def contents(out: Path) -> dict[str, Any]:
    """All that a study delivers: tables and networks."""
    study = load_study(out)
    found: dict[str, Any] = {"metrics": study.metrics, "curves": study.curves}
    for path in sorted(out.glob("units/*/checkpoint/agents.npz")):
        found |= {f"{path.parts[-3]}/{name}": value for name, value in read_arrays(path).items()}
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Bit by bit."""
    if one.keys() != other.keys():
        return False
    return all(_equal(one[name], other[name]) for name in one)


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, polars.DataFrame):
        return bool(one.equals(other))
    if isinstance(one, dict):
        return same(one, other)
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and one.tobytes() == other.tobytes()
    return bool(one == other)


def kills(plan: Path, folder: Path, whole: dict[str, Any], count: int, took_s: float) -> int:
    """Kill and resume; how many studies ended with other results."""
    wrong, done, round_number = 0, 0, 0
    while done < count:
        out = folder / f"killed-{round_number}"
        round_number += 1
        while done < count:
            process = started(plan, out)
            try:
                process.wait(random.uniform(0.0, took_s))
                break  # it was faster
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                done += 1
        rest_s = finished(plan, out)
        took_s = max(0.7 * took_s, rest_s)  # as busy as the machine is now
        left = [path.name for path in out.rglob(".*.????????") if path.is_file()]
        if left or not same(contents(out), whole):
            wrong += 1
            print(f"WRONG: {out} differs after kills, or has {left}", flush=True)
        else:
            shutil.rmtree(out)
        print(f"{done} of {count} kills, {round_number} studies", flush=True)
    return wrong


def harmed(path: Path) -> str:
    """Damage a file; how."""
    content = bytearray(path.read_bytes())
    how = random.choice(("flip", "flip", "flip", "flip", "cut", "empty", "delete", "zeros"))
    if how == "delete":
        path.unlink()
    elif how == "empty" or not content:
        path.write_bytes(b"")
    elif how == "cut":
        path.write_bytes(content[: random.randrange(len(content))])
    else:
        place = random.randrange(len(content))
        if how == "zeros":
            content[place : place + 64] = bytes(len(content[place : place + 64]))
        else:
            content[place] ^= 1 << random.randrange(8)
        path.write_bytes(content)
    return how


def readers(out: Path, plan: Path) -> dict[str, Callable[[], Any]]:
    """Every way in which something is read back, and what it then means."""
    training, known = next(out.glob("units/cosmo-*/checkpoint")), load_plan(plan)

    def state() -> Any:
        progress = progress_of(out, known)
        if progress.damaged or progress.done < len(progress.units):
            raise InputError("said to be damaged, or not finished")
        return progress.done

    def controller() -> Any:
        found = load_controller(training)
        return {"told": dict(found.description), **read_arrays(training / "agents.npz")}

    def resumed() -> Any:
        return read_arrays(training / "state.npz")

    def tables() -> Any:
        study = load_study(out)
        told = {"plan": study.plan.model_dump(), "resolved": study.plan.resolved()}
        return {"metrics": study.metrics, "curves": study.curves, **told}

    return {"state": state, "controller": controller, "training": resumed, "tables": tables}


def _concerned(path: Path) -> tuple[str, ...]:
    """The ways that read a file."""
    if "checkpoint" in path.parts:
        return "state", "controller", "training"
    return ("state",) if path.parts[0] == "units" else ("state", "tables")


def flips(plan: Path, out: Path, count: int) -> tuple[int, Counter[str]]:
    """Damage and read; how often something else came back, and what was said."""
    ways = readers(out, plan)
    whole = {name: read() for name, read in ways.items()}
    files = sorted(path for path in out.rglob("*") if path.is_file())
    files = [path for path in files if "tensorboard" not in path.parts and path.name != "plan.toml"]
    wrong, said = 0, Counter[str]()
    for _ in range(count):
        path = random.choice(files)
        before = path.read_bytes()
        how = harmed(path)
        told = []
        for name in _concerned(path.relative_to(out)):
            read = ways[name]
            try:
                if not _equal(read(), whole[name]):
                    wrong += 1
                    print(f"WRONG: {how} of {path}: {name} is something else", flush=True)
                told.append("identical")
            except InputError as error:
                told.append("refused" if "\n" not in str(error) else "more than a line")
            except Exception as error:
                wrong += 1
                print(f"WRONG: {how} of {path}: {name}: {error!r}", flush=True)
        said["refused" if "refused" in told else "identical"] += 1
        path.write_bytes(before)
    return wrong, said


def repaired(plan: Path, out: Path, whole: dict[str, Any]) -> int:
    """A damaged unit is done again: whether that gives what was there."""
    unit = next(out.glob("units/all-local-*"))
    (unit / "metrics.parquet").write_bytes(b"PAR1")
    (out / "metrics.parquet").unlink()
    progress = conduct(load_plan(plan), out, LocalExecutor(1))
    return 0 if list(progress.damaged) == [unit.name] and same(contents(out), whole) else 1


def main() -> None:
    """Parse, run, tell."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--kills", type=int, default=50)
    options.add_argument("--flips", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    random.seed(chosen.seed)
    with tempfile.TemporaryDirectory(prefix="cosmo-chaos-") as name:
        folder = Path(name)
        plan, out = folder / "plan.toml", folder / "whole"
        plan.write_text(PLAN)
        took_s = finished(plan, out)
        whole = contents(out)
        print(f"undisturbed: {took_s:.0f} s", flush=True)
        wrong, said = flips(plan, out, chosen.flips)
        print(f"{chosen.flips} times damaged: {dict(said)}, {wrong} wrong", flush=True)
        spoilt = repaired(plan, out, whole)
        spoilt += kills(plan, folder, whole, chosen.kills, took_s)
        print(f"{chosen.kills} kills: {spoilt} studies differ")
        sys.exit(1 if wrong or spoilt else 0)


if __name__ == "__main__":
    main()
