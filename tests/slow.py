"""Waiting for states, not for times; a command that takes its time, to be interrupted."""

import gc
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

METHOD = """
from pathlib import Path
import time
from cosmo import Dispatcher, Method

class Slow(Method, Dispatcher):
    '''Takes its time.'''
    def dispatcher(self, site):
        return self
    def decide(self, tasks):
        Path("started").touch()
        time.sleep(0.02)
        return [0] * len(tasks)
"""


LIMIT_S = 120.0  # of every wait: long after the slowest machine, and still an end


def wait_until(state, what):
    """Return what `state()` says as soon as that is true; fails if it never is."""
    limit = time.monotonic() + LIMIT_S
    while not (found := state()):
        assert time.monotonic() < limit, f"waited {LIMIT_S:g} s in vain until {what}"
        time.sleep(0.02)
    return found


@contextmanager
def computing():
    """Afterwards `.s` has the seconds that this thread computed in the block.

    Neither other threads nor other processes count, nor does the collection of garbage that earlier
    tests left behind.
    """
    taken = SimpleNamespace(s=0.0)
    gc.disable()
    start_s = time.thread_time()
    try:
        yield taken
    finally:
        taken.s = time.thread_time() - start_s
        gc.enable()


def alive(session):
    """Processes of a session that have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                told = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(told[3]) == session and told[0] != "Z":
                found.append(int(folder.name))
    return found


@contextmanager
def usual_signals():
    """As in a terminal: a test may itself run where an interrupt is ignored, as under nohup."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    try:
        yield usual
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def slow_simulation(folder, *options):
    """`cosmo simulate` in a session of its own, at work, about to write over an older file."""
    (folder / "slow.py").write_text(METHOD)
    (folder / "tasks.csv").write_text("of an earlier run")
    command = ["simulate", "--method", "slow.py:Slow", "--tasks-out", "tasks.csv", *options]
    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", "cosmo", *command],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    started = folder / "started"
    wait_until(lambda: started.exists() or process.poll() is not None, "the policy is at work")
    assert process.poll() is None, process.communicate()
    return process


def check_interrupted(process, folder):
    """It says so, and leaves everything as it was."""
    out, err = process.communicate(timeout=LIMIT_S)
    assert (process.returncode, out) == (130, "")
    *before, last = err.splitlines()
    assert last == "cosmo: interrupted, nothing was left half-written"
    assert before in ([], ["compiling the engine, once on this machine …"])
    assert (folder / "tasks.csv").read_text() == "of an earlier run"
    visible = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert visible == {"slow.py", "tasks.csv", "started"}
