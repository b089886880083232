"""Work that is killed at random moments and then finished, and what must hold in the end.

`study` (with a training), `tune` and `report` must deliver the same bits as without kills; a report
must leave its study as it was. `live` plays daemons in real time, whose results are never the same
twice: it must deliver the same rows, with nothing missing in them. For all of them, what was
finished before a kill is kept as it is, no process outlives the killed one, and neither the folder
of results nor that of temporary files has anything left over.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars

from cosmo.arrays import read_arrays
from cosmo.study import load_study
from cosmo.study.checks import METRICS_FILE, finished

STUDY = """name = "chaos"
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
LIVE = """name = "live"
settings = ["episode.window_ms=300", "episode.warmup_ms=0", "live.most_late_ms=1000"]
engines = ["live"]
arrivals = ["poisson"]
rates = [120.0]
seeds = [0, 1]
episodes = 1

[[compare]]
methods = ["all-local", "aoi-threshold"]
"""
TUNE = (
    "tune aoi-threshold --over kappa=0.05:0.9 --trials 10 --seeds 0 --episodes 1 --rates 320"
    " --set episode.window_ms=1000 --set episode.warmup_ms=200 --json"
)
LIMIT_S = 600.0  # of an undisturbed run; none takes nearly that long
LEAVE_S = 30.0  # for processes whose parent was killed: daemons finish their tasks first
MARK = "COSMO_CHAOS"


@dataclass(frozen=True)
class Kind:
    """A kind of work: its command, and all that it delivers, from its folder and what it prints."""

    name: str
    command: Callable[[Path], list[str]]
    contents: Callable[[Path, bytes], dict[str, Any]]


def kinds(folder: Path) -> dict[str, Kind]:
    """All of them; their plans are written to a folder, in which the study is `whole-study`."""
    plans = {"study": folder / "study.toml", "live": folder / "live.toml"}
    plans["study"].write_text(STUDY)
    plans["live"].write_text(LIVE)
    whole = folder / "whole-study"

    def study(name: str) -> Callable[[Path], list[str]]:
        return lambda out: ["study", "run", str(plans[name]), "--out", str(out), "--workers", "1"]

    made = (
        Kind("study", study("study"), lambda out, _: study_contents(out)),
        Kind("tune", lambda out: [*TUNE.split(), "--out", str(out), "--workers", "1"], _tuned),
        Kind(
            "report",
            lambda out: ["report", str(whole), "--out", str(out)],
            lambda out, _: {"report": tree(out), "study": tree(whole)},
        ),
        Kind("live", study("live"), lambda out, _: _live(out)),
    )
    return {kind.name: kind for kind in made}


def study_contents(out: Path) -> dict[str, Any]:
    """All that a study delivers: tables and networks."""
    study = load_study(out)
    found: dict[str, Any] = {"metrics": study.metrics, "curves": study.curves}
    for path in sorted(out.glob("units/*/checkpoint/agents.npz")):
        found |= {f"{path.parts[-3]}/{name}": value for name, value in read_arrays(path).items()}
    return found


def _tuned(out: Path, printed: bytes) -> dict[str, Any]:
    trials = polars.read_parquet(out / "trials.parquet")
    units = {
        path.parent.name: polars.read_parquet(path) for path in out.glob(f"*/*/{METRICS_FILE}")
    }
    return {"printed": printed, "trials": trials, "units": units}


def _live(out: Path) -> dict[str, Any]:
    """What does not depend on time: which rows there are, and which of their cells are empty."""
    metrics = load_study(out).metrics
    known = metrics.select("scenario", "arrivals", "rate", "method", "seed", "episode")
    likely = metrics["success_rate"].is_between(0.0, 1.0).all()
    return {"rows": known, "filled": metrics.select(polars.all().is_not_null()), "likely": likely}


def tree(folder: Path) -> dict[str, str]:
    """Digests of all files in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def same(one: Any, other: Any) -> bool:
    """Bit by bit."""
    if isinstance(one, polars.DataFrame):
        return bool(one.equals(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return bool(one.dtype == other.dtype) and one.tobytes() == other.tobytes()
    return bool(one == other)


class Killed:
    """One kind of work: done once undisturbed, then killed and finished again and again."""

    def __init__(self, kind: Kind, folder: Path) -> None:
        self.name, self._kind, self._folder = kind.name, kind, folder
        self._temporary = folder / f"tmp-{kind.name}"
        self._temporary.mkdir()
        self._mark = f"{os.getpid()}-{kind.name}"
        self._took_s = 0.0
        self._whole: dict[str, Any] = {}
        self.rounds = self.done = 0
        self.wrong: list[str] = []

    def undisturbed(self) -> float:
        """Do it once; how many seconds that took."""
        out = self._folder / f"whole-{self._kind.name}"
        self._took_s, self._whole = self._finished(out)
        self._check_left(out)
        return self._took_s

    def round(self, most: int) -> None:
        """Kill it up to so many times, until it is faster than that, and have it finished."""
        out = self._folder / f"{self._kind.name}-{self.rounds}"
        self.rounds += 1
        before, kept = len(self.wrong), dict[str, str]()
        for _ in range(most):
            process = self._started(out)
            try:
                process.wait(random.uniform(0.0, self._took_s))
                break  # it was faster
            except subprocess.TimeoutExpired:
                self._kill(process)
                self.done += 1
            kept |= _finished_units(out)
        rest_s, contents = self._finished(out)
        self._took_s = max(0.7 * self._took_s, rest_s)  # as busy as the machine is now
        if not same(contents, self._whole):
            parts = [
                name for name in self._whole if not same(contents.get(name), self._whole[name])
            ]
            self.wrong.append(f"{out} differs after kills: {parts}")
        if not kept.items() <= _finished_units(out).items():
            self.wrong.append(f"{out}: a unit that was finished is another one now")
        self._check_left(out)
        if len(self.wrong) == before:
            shutil.rmtree(out)

    def _started(self, out: Path, printed: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """The command, in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "cosmo", *self._kind.command(out)],
            stdout=printed,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {MARK: self._mark, "TMPDIR": str(self._temporary)},
        )

    def _finished(self, out: Path) -> tuple[float, dict[str, Any]]:
        """Do the work to its end: the seconds that took, and what it has delivered."""
        start = time.monotonic()
        process = self._started(out, subprocess.PIPE)
        printed, _ = process.communicate(timeout=LIMIT_S)
        if process.returncode != 0:
            raise SystemExit(f"{self._kind.name} in {out}: exit code {process.returncode}")
        return time.monotonic() - start, self._kind.contents(out, printed)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """With its group, or alone, as a machine without memory does; the rest must leave."""
        random.choice((os.kill, os.killpg))(process.pid, signal.SIGKILL)
        process.wait()
        end = time.monotonic() + LEAVE_S
        while (left := marked(self._mark)) and time.monotonic() < end:
            time.sleep(0.05)
        for number, command in left.items():
            self.wrong.append(f"process {number} has outlived its parent: {command}")
            with suppress(ProcessLookupError):  # it has left in this moment
                os.kill(number, signal.SIGKILL)

    def _check_left(self, out: Path) -> None:
        names = [path.name for path in out.rglob(".*.????????")]
        names += [path.name for path in self._temporary.iterdir()]
        if names:
            self.wrong.append(f"{out}: left over: {', '.join(names)}")
        shutil.rmtree(self._temporary)
        self._temporary.mkdir()


def _finished_units(out: Path) -> dict[str, str]:
    """Digests of the results of units that are finished."""
    units = [path for path in out.glob("units/*") if finished(path)]
    return {
        path.name: hashlib.sha256((path / METRICS_FILE).read_bytes()).hexdigest()
        for path in units
        if (path / METRICS_FILE).exists()
    }


def marked(mark: str) -> dict[int, str]:
    """Processes, by number, that this campaign started under a mark, and whatever they started."""
    found, text = {}, f"{MARK}={mark}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in (folder / "environ").read_bytes().split(b"\0"):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command:  # else it has ended and is waited for
                    found[int(folder.name)] = command.strip()[:120]
        except OSError:
            continue
    return found
