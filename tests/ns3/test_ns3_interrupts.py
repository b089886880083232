"""Ctrl-C, and a kill that reaches one process only: prompt, and nobody is left behind."""

import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from cosmo.ns3.tool import run_tool
from slow import check_interrupted, slow_simulation


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
    cosmo = slow_simulation(tmp_path, "--engine", "ns3")
    assert len(_alive(cosmo.pid)) == 2
    start = time.monotonic()
    send(cosmo.pid, signal.SIGINT)
    check_interrupted(cosmo, tmp_path)
    assert time.monotonic() - start < 10
    assert _alive(cosmo.pid) == []


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
