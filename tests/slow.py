"""A command that takes its time, to be interrupted."""

import subprocess
import sys
import time

METHOD = """
from pathlib import Path
import time
from cosmo import Method

class Slow(Method):
    '''Takes its time.'''
    def dispatcher(self, setting):
        return self
    def decide(self, tasks):
        Path("started").touch()
        time.sleep(0.02)
        return [0] * len(tasks)
"""


def slow_simulation(folder, *options):
    """`cosmo simulate` in a session of its own, at work, about to write over an older file."""
    (folder / "slow.py").write_text(METHOD)
    (folder / "tasks.csv").write_text("of an earlier run")
    command = ["simulate", "--method", "slow.py:Slow", "--tasks-out", "tasks.csv", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "cosmo", *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 120
    while not (folder / "started").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)
    return process


def check_interrupted(process, folder):
    """It says so, and leaves everything as it was."""
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    *before, last = err.splitlines()
    assert last == "cosmo: interrupted, nothing was left half-written"
    assert before in ([], ["compiling the engine, once on this machine …"])
    assert (folder / "tasks.csv").read_text() == "of an earlier run"
    visible = {path.name for path in folder.iterdir() if path.name != "__pycache__"}
    assert visible == {"slow.py", "tasks.csv", "started"}
