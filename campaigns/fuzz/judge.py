"""A case of the fuzzer, carried out through the command line's own `main`, and what must hold."""

import asyncio
import faulthandler
import gc
import io
import json
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars
from doors import DOORS

from cosmo.cli.main import main
from cosmo.live import daemon
from cosmo.live.serving import Serving

HANG_S = 10.0  # of computing, however busy the machine is
MOST_MB = 2000  # of memory
LOST_S = 600.0  # of waiting: stuck where no signal is heard
NOTICE = "compiling the engine, once on this machine …"
# gRPC's one poller of a process has events for the closed loop of a case before; a daemon has one.
_POLLER = re.compile(
    r"Exception in callback [^\n]*PollerCompletionQueue.*?RuntimeError: Event loop is closed\n",
    re.S,
)
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # that a daemon handles
_SHARES = ("success_rate", "decision_accuracy", "rejection_rate", "false_accept_rate")


@dataclass(frozen=True)
class Case:
    """Files by name, and a command line in their folder."""

    kind: str
    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    hopeless: bool = False  # certainly bad input: must be refused
    outputs: tuple[str, ...] = ()  # what the command may write: files, and folders with a /
    least_rows: int = 0  # of every CSV or Parquet file that it writes, if it is accepted
    door: str = ""  # of `doors`, instead of the command line


@dataclass(frozen=True)
class Found:
    """What came of a case."""

    code: int
    out: str
    err: str
    seconds: float
    wrong: str  # the first property that does not hold; empty if all do
    trace: str = ""

    @property
    def accepted(self) -> bool:
        """Whether the input was taken, and something came of it."""
        return self.code == 0 and not self.wrong


class _Hang(BaseException):
    """The watchdog barked."""


def judged(case: Case) -> Found:
    """Carry out a case in an empty folder, and judge it."""
    with tempfile.TemporaryDirectory(prefix="cosmo-fuzz-") as name, _working_in(Path(name)):
        folder = Path(name)
        for file, content in case.files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        before = _peak_mb()
        with _stopped_daemons():
            carried_out = DOORS[case.door] if case.door else main
            code, out, err, seconds, trace = _run(case.arguments, carried_out)
        wrong = trace and "a traceback"
        wrong = wrong or (before < MOST_MB < _peak_mb() and f"more than {MOST_MB} MB") or ""
        wrong = wrong or (seconds > HANG_S and f"a hang: {seconds:.0f} s") or ""
        wrong = wrong or _streams(code, out, err) or _folder(case, code, folder)
        if not wrong and code == 0:
            wrong = "accepted nonsense: certainly bad input" if case.hopeless else _sense(case, out)
        return Found(code, out, err, seconds, wrong, trace)


def _peak_mb() -> float:
    """The most memory that this process has ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0


@contextmanager
def _stopped_daemons() -> Iterator[None]:
    """A daemon that has begun to serve is told to stop, as by its operator, and one that stands by
    is told to serve.
    """
    start, stand_by = Serving.start, daemon._called

    async def start_and_stop(serving: Serving) -> None:
        await start(serving)
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGTERM)

    async def called_at_once(loop: asyncio.AbstractEventLoop, *rest: Any) -> bool:
        loop.call_later(0.01, signal.raise_signal, signal.SIGUSR1)
        return await stand_by(loop, *rest)

    Serving.start = start_and_stop  # type: ignore[assignment, method-assign]
    daemon._called = called_at_once  # type: ignore[assignment]
    switch_s = sys.getswitchinterval()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:  # all that the next case must find as it was
        for number, handler in before.items():
            signal.signal(number, handler)
        Serving.start = start  # type: ignore[method-assign]
        daemon._called = stand_by
        sys.setswitchinterval(switch_s)
        gc.unfreeze()


@contextmanager
def _working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _run(
    arguments: tuple[str, ...], carried_out: Callable[[], None]
) -> tuple[int, str, str, float, str]:
    """(exit code, output, errors, seconds, traceback) of `cosmo …`."""

    def bark(number: int, frame: Any) -> None:
        raise _Hang

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["cosmo", *arguments], out, err
    alarm = signal.signal(signal.SIGPROF, bark)
    faulthandler.dump_traceback_later(LOST_S, exit=True, file=before[2])
    signal.setitimer(signal.ITIMER_PROF, HANG_S)
    start, code, trace = time.process_time(), -1, ""
    try:
        carried_out()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else -1
    except BaseException:
        trace = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGPROF, alarm)
        seconds = time.process_time() - start
        sys.argv, sys.stdout, sys.stderr = before
    texts = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
    return code, texts[0], _POLLER.sub("", texts[1]), seconds, trace


def _streams(code: int, out: str, err: str) -> str:
    if code not in (0, 2):
        return f"exit code {code}"
    lines = [line for line in err.split("\n")[:-1] if line != NOTICE]
    odd = re.search(r".*(Traceback|\w+Warning: |Exception ignored).*", err)
    if odd:
        return f"on the error stream: {odd[0][:200]}"
    if code == 2 and (len(lines) != 1 or not lines[0].startswith("cosmo: ")):
        return f"{len(lines)} lines of error"
    if code == 2 and len(lines[0]) > 2000:
        return "a line of error that nobody reads"
    return "output of a command that was refused" if code == 2 and out else ""


def _folder(case: Case, code: int, folder: Path) -> str:
    """Inputs as they were, outputs whole or absent."""
    for name, content in case.files.items():
        if (folder / name).read_bytes() != content:
            return f"changed its input {name}"
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    there = {name for name in there if "__pycache__" not in name}
    new = sorted(there - set(case.files))
    if code != 0:
        return f"refused, but wrote {new[0]}" if new else ""
    for name in new:
        if name not in case.outputs and f"{name.partition('/')[0]}/" not in case.outputs:
            return f"left {name} behind"
        if _rows(folder / name) < case.least_rows:
            return f"accepted nonsense: fewer than {case.least_rows} rows in {name}"
    return ""


def _rows(table: Path) -> float:
    if table.suffix == ".csv":
        return table.read_bytes().count(b"\n") - 1
    return len(polars.read_parquet(table)) if table.suffix == ".parquet" else math.inf


def _sense(case: Case, out: str) -> str:
    """What was accepted must mean something."""
    if "--json" not in case.arguments:
        return ""
    try:
        told = json.loads(out, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        return "accepted nonsense: no JSON"
    for name, value in _metrics(told):
        if value is not None and (not math.isfinite(value) or abs(value) > 1e30):
            return f"accepted nonsense: {name} = {value}"
        if name in _SHARES and value is not None and not -1e-9 <= value <= 1 + 1e-9:
            return f"accepted nonsense: {name} = {value}"
    return ""


def _metrics(told: Any) -> Iterator[tuple[str, Any]]:
    for name, value in (told.get("metrics") or {}).items() if isinstance(told, dict) else ():
        if isinstance(value, dict):
            yield name, value.get("mean")
