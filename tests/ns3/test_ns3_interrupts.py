"""Ctrl-C, and a kill that reaches one process only: prompt, and nobody is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cosmo.ns3.tool import run_tool

SLOW = """
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


def _alive(session):
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


@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_an_interrupt_ends_the_processes_of_all_worlds(tmp_path, send):
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "tasks.csv").write_text("of an earlier run")
    command = ["simulate", "-m", "slow.py:Slow", "--engine", "ns3", "--tasks-out", "tasks.csv"]
    cosmo = subprocess.Popen(
        [sys.executable, "-m", "cosmo", *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert cosmo.poll() is None, cosmo.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)
    assert len(_alive(cosmo.pid)) == 2
    start = time.monotonic()
    send(cosmo.pid, signal.SIGINT)
    out, err = cosmo.communicate(timeout=60)
    assert time.monotonic() - start < 10
    assert _alive(cosmo.pid) == []
    assert (cosmo.returncode, out) == (130, "")
    assert err == "cosmo: interrupted, nothing was left half-written\n"
    assert (tmp_path / "tasks.csv").read_text() == "of an earlier run"
    visible = {path.name for path in tmp_path.iterdir() if path.name != "__pycache__"}
    assert visible == {"slow.py", "tasks.csv", "started"}


@pytest.mark.parametrize("cause", [KeyboardInterrupt, subprocess.TimeoutExpired])
def test_a_tool_ends_with_all_that_it_started(tmp_path, cause):
    note = tmp_path / "session"
    command = ["sh", "-c", f"sleep 100 & echo $$ > {note}.part; mv {note}.part {note}; wait"]

    def interrupt():
        while not note.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    interrupted = cause is KeyboardInterrupt
    if interrupted:
        threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(cause):
        run_tool(command, 60.0 if interrupted else 1.0)
    session = int(note.read_text())
    limit = time.monotonic() + 10
    while _alive(session) and time.monotonic() < limit:
        time.sleep(0.05)
    assert _alive(session) == []


def test_what_a_tool_says_is_heard():
    done = run_tool(["sh", "-c", "echo here; echo there >&2; exit 3"], 60.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, "here\n", "there\n")
