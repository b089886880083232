"""Daemons whose wall clock jumps by an hour under load, forwards and back: nothing changes.

A few lines of C stand between their processes and that clock, so that gRPC's own code is fooled as
well as Python's; the clock of the machine goes on for all others.
"""

import mmap
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from cosmo.live import Client
from cosmo.live.processes import nodes
from live.nodes import config
from slow import wait_until

CALLS = 30
SOURCE = Path(__file__).with_name("wall_clock.c")


def test_jumps_of_the_wall_clock_change_nothing(tmp_path, monkeypatch):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler here (cc)")
    library, moved = tmp_path / "wall_clock.so", tmp_path / "offset"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True)
    moved.write_bytes(bytes(8))
    told = {"method.use": "all-offload", "behaviour.silent_ms": 5000.0}
    en, sn = config("en", told, ["127.0.0.1:1"]), config("sn", told)
    with monkeypatch.context() as fooled:
        fooled.setenv("LD_PRELOAD", str(library))
        fooled.setenv("WALL_CLOCK_OFFSET", str(moved))
        with nodes([en], [sn]) as ([here], _), moved.open("r+b") as file:
            fooled.undo()
            with mmap.mmap(file.fileno(), 8) as offset:
                _check(here, offset)


def _check(here, offset):
    def jump(seconds):
        offset[:] = seconds.to_bytes(8, "little", signed=True)

    with Client(here.address) as client:
        for seconds in (0, 3600, -3600, 0):
            jump(seconds)
            for _ in range(CALLS):
                answer = client.submit(b"x" * 1000, deadline_ms=20_000.0, cycles=27_000.0)
                assert (answer.fate.name, answer.where, answer.rerun) == ("DONE", "sn0", False)
    assert here.said("sn lost") == []
    assert here.said("who decides has changed") == []
    jump(86_400 * 400)  # it was fooled: lines of its log are dated by that clock
    here.process.send_signal(signal.SIGHUP)
    [line] = wait_until(lambda: here.said("reloaded"), "it dates a line")
    assert int(line["time"][:4]) > int(here.said("serving")[0]["time"][:4])
