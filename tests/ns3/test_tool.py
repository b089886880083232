"""Tools of others end with all that they started, whenever the signal comes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cosmo.ns3 import tool
from cosmo.ns3.tool import run_tool
from slow import LIMIT_S, alive, usual_signals, wait_until

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(scope="session", autouse=True)
def ns3():
    """None is needed here."""


def _nobody_is_left(session):
    wait_until(lambda: not alive(session), f"all of session {session} have ended")


def _group(note, deaf=""):
    """A tool of two processes that writes down its session once both run, and who is deaf is."""
    told = f"echo $$ > {note}.part; mv {note}.part {note}"
    stay = "trap '' TERM"
    script = {
        "": f"sleep 100 & {told}; wait",
        "leader": f"sleep 100 & {stay}; {told}; wait; wait",
        "others": f"({stay}; {told}; sleep 100 & wait; wait) & wait",
    }[deaf]
    return ["sh", "-c", script]


@pytest.fixture(autouse=True)
def handlers():
    """They are as before when a tool has ended, however it has."""
    with usual_signals() as usual:
        yield
        assert {number: signal.getsignal(number) for number in NUMBERS} == usual


@pytest.mark.parametrize("cause", [KeyboardInterrupt, subprocess.TimeoutExpired])
def test_a_tool_ends_with_all_that_it_started(tmp_path, monkeypatch, cause):
    note = tmp_path / "session"
    wait = subprocess.Popen.communicate

    def communicate(process, timeout):
        wait_until(note.exists, "the tool runs")
        if cause is KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
        return wait(process, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    with pytest.raises(cause):
        run_tool(_group(note), 0.01)
    _nobody_is_left(int(note.read_text()))


class _InterruptedStart(subprocess.Popen):
    """Signals arrive when the child runs, but Popen has not returned yet."""

    number = signal.SIGINT
    started = None

    def _execute_child(self, *arguments):
        super()._execute_child(*arguments)
        type(self).started = self.pid
        print(self.pid, flush=True)
        signal.raise_signal(self.number)


def test_an_interrupt_during_the_start_ends_it_too(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", _InterruptedStart)
    with pytest.raises(KeyboardInterrupt):
        run_tool(["sleep", "100"], 60.0)
    _nobody_is_left(_InterruptedStart.started)


_SCRIPT = """
import subprocess, sys
sys.path[:0] = {paths!r}
from cosmo.ns3.tool import run_tool
from test_tool import _InterruptedStart

_InterruptedStart.number = {number}
subprocess.Popen = _InterruptedStart
try:
    run_tool(["sleep", "100"], 60.0)
finally:
    print("unwound", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_process_ends_the_tool_first(number):
    here = Path(__file__).parent
    code = _SCRIPT.format(paths=[str(here), str(here.parent)], number=int(number))
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    out, _ = owner.communicate(timeout=LIMIT_S)
    assert owner.returncode == -number
    _nobody_is_left(int(out))  # and nothing else was said: it died on the spot, as without us


def test_terminated_while_a_tool_works_its_owner_leaves_nobody_behind(tmp_path):
    note = tmp_path / "session"
    code = f"from cosmo.ns3.tool import run_tool\nrun_tool({_group(note)!r}, 60.0)"
    owner = subprocess.Popen([sys.executable, "-c", code])
    wait_until(note.exists, "the tool runs")
    owner.terminate()
    assert owner.wait(LIMIT_S) == -signal.SIGTERM
    _nobody_is_left(int(note.read_text()))


def test_a_second_interrupt_does_not_disturb_the_end(tmp_path, monkeypatch):
    note = tmp_path / "session"
    wait, end = subprocess.Popen.communicate, tool._end_group

    def communicate(process, timeout):
        wait_until(note.exists, "the tool runs")
        signal.raise_signal(signal.SIGINT)
        return wait(process, timeout=timeout)

    def interrupted_end(leader):
        signal.raise_signal(signal.SIGINT)
        end(leader)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    monkeypatch.setattr(tool, "_end_group", interrupted_end)
    with pytest.raises(KeyboardInterrupt):
        run_tool(_group(note), 60.0)
    _nobody_is_left(int(note.read_text()))


@pytest.mark.parametrize("who", ["leader", "others"])
def test_those_who_do_not_want_to_end_are_killed(tmp_path, monkeypatch, who):
    note = tmp_path / "session"
    monkeypatch.setattr(tool, "_END_LIMIT_S", 0.2)
    wait = subprocess.Popen.communicate

    def communicate(process, timeout):
        wait_until(note.exists, "the tool runs")
        return wait(process, timeout=timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    with pytest.raises(subprocess.TimeoutExpired):
        run_tool(_group(note, who), 0.01)
    _nobody_is_left(int(note.read_text()))


def test_a_handler_that_goes_on_lets_the_tool_go_on(tmp_path):
    seen, note = [], tmp_path / "heard"
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        threading.Timer(0.0, os.kill, [os.getpid(), signal.SIGTERM]).start()
        command = ["sh", "-c", f"until [ -e {note} ]; do sleep 0.01; done; echo done"]

        def tell():
            wait_until(lambda: seen, "the signal was handled")
            note.touch()

        threading.Thread(target=tell).start()
        assert run_tool(command, 60.0).stdout == "done\n"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_tool_inherits_neither_a_mask_nor_handlers():
    command = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]  # a shell has masks of its own
    told = dict(line.split(":") for line in run_tool(command, 60.0).stdout.splitlines())
    bits = sum(1 << (number - 1) for number in NUMBERS)
    assert {name: int(value, 16) & bits for name, value in told.items()} == {
        "SigBlk": 0,
        "SigIgn": 0,
    }


def test_a_thread_that_may_not_handle_signals_runs_tools_all_the_same():
    done = []
    thread = threading.Thread(target=lambda: done.append(run_tool(["echo", "here"], 60.0)))
    thread.start()
    thread.join()
    assert [each.stdout for each in done] == ["here\n"]


def test_what_a_tool_says_is_heard():
    done = run_tool(["sh", "-c", "echo here; echo there >&2; exit 3"], 60.0)
    assert (done.returncode, done.stdout, done.stderr) == (3, "here\n", "there\n")
