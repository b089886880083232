"""What campaigns judge by: how late the machine was, which processes a kill has left."""

import os
import subprocess
import sys

import pytest
from campaigns.killed import MARK, Killed, Kind, marked
from campaigns.wakeups import Waits, Wakeups

from slow import wait_until


def test_lateness_of_the_machine_is_counted_once_however_many_timers_met_it():
    machine = Wakeups()
    for due_s, now_s in [(1.00, 1.10), (1.01, 1.10), (1.05, 1.20), (3.0, 3.001), (4.0, 4.05)]:
        machine.heard(due_s, now_s)
    assert machine.stalled_ms(0.0, 5.0) == pytest.approx(200.0 + 50.0)
    assert machine.stalled_ms(1.05, 1.15) == pytest.approx(100.0)
    assert machine.stalled_ms(0.0, 1.0) == 0.0
    assert machine.stalled_ms(2.0, 3.9) == 0.0  # a timer that is a millisecond late is no stall
    assert machine.stalled_ms(1.1, 4.02) == pytest.approx(100.0 + 20.0)


def test_waits_of_processes_that_are_replaced_add_up():
    waits = Waits(lambda: [])
    # Its first process has waited 100 ms before anybody looked, then 5 and 20 more.
    for now_s, number, so_far_ms in [
        (1.0, 7, 100.0),
        (1.1, 7, 105.0),
        (1.2, 7, 125.0),
        (1.3, 8, 4.0),
    ]:
        waits.look(0, number, now_s, so_far_ms)
    assert waits.waited_ms(0, 1.0, 1.1) == pytest.approx(5.0)
    assert waits.waited_ms(0, 1.05, 1.15) == pytest.approx(25.0)  # by the looks around it
    assert waits.waited_ms(0, 0.0, 9.0) == pytest.approx(29.0)
    assert waits.waited_ms(1, 0.0, 9.0) == 0.0


def test_processes_under_a_mark_are_found_with_what_they_started(tmp_path):
    code = "import subprocess, sys; subprocess.run(['sleep', '60'])"
    environment = os.environ | {MARK: f"test-{os.getpid()}"}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, start_new_session=True
    ) as process:
        wait_until(lambda: "sleep 60" in marked(environment[MARK]).values(), "it has started")
        assert process.pid in marked(environment[MARK])
        process.kill()
        process.wait()
        left = marked(environment[MARK])
        assert list(left.values()) == ["sleep 60"]
        for number in left:
            os.kill(number, 9)
    assert marked("somebody-else") == {}


def test_a_kind_that_delivers_something_else_after_kills_is_wrong(tmp_path):
    numbers = iter(range(9))

    def contents(out, printed):
        return {"printed": printed, "number": next(numbers)}

    work = Killed(Kind("version", lambda out: ["--version"], contents), tmp_path)
    assert work.undisturbed() > 0.0
    (tmp_path / "version-0").mkdir()
    (tmp_path / "version-0" / ".report.html.abcd1234").touch()
    work.round(1)
    out = tmp_path / "version-0"
    assert work.wrong == [
        f"{out} differs after kills: ['number']",
        f"{out}: left over: .report.html.abcd1234",
    ]
