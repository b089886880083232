"""When a slow method makes way, the order of events, and a row of the decision log."""

import csv

import numpy as np
import pytest
from virtual_clock import VirtualClock

from cosmo import load
from cosmo.live import guarded_dispatcher
from cosmo.live.decisions import DecisionLog
from cosmo.live.guarded_dispatcher import GuardedDispatcherRunner
from cosmo.live.tasks import Fate, Item
from cosmo.node import Dispatcher, Method
from live.cores import en_node, task
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


class Clocks:
    """`time` with a processor and a wall that go as they are told, at each decision."""

    def __init__(self):
        self.wall_s = self.work_s = 0.0

    def perf_counter(self):
        return self.wall_s

    def thread_time(self):
        return self.work_s


def test_slowness_is_of_the_processor_at_once_or_of_the_wall_three_times(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(guarded_dispatcher, "time", clocks)

    class Takes(Method, Dispatcher):
        took = 0.0, 0.0

        def dispatcher(self, site):
            return self

        def decide(self, tasks):
            clocks.wall_s += self.took[0]
            clocks.work_s += self.took[1]
            return np.zeros(1, np.int64)

    made, said, seconds = Takes(), [], [0.0]
    here = site(PAPER)
    runner = GuardedDispatcherRunner(made, Takes(), here, 0, 4.0, ("a", "b"), lambda: seconds[0])
    runner.report = lambda who, why: said.append((who, why))
    core, _, _ = en_node(scenario=PAPER, runner=runner)
    seen = core.sight(task(0), 1.0).arrays()

    def ask(wall_ms, work_ms):
        made.took = wall_ms / 1000.0, work_ms / 1000.0
        runner.choose(seen)
        return runner.on_fallback

    # Late twice, then quick: nobody's fault. Three times in a row is one.
    assert [ask(ms, 0.0) for ms in (9.0, 9.0, 3.0, 9.0, 9.0)] == [False] * 5
    assert ask(9.0, 0.0)
    assert said == [("b", "took 9.0 ms, limit 4")]
    assert runner.decision_ms.count == 6
    assert runner.decision_ms.quantile(1.0) == pytest.approx(9.0)
    seconds[0] = 1.0  # a second later it is tried again
    assert not ask(1.0, 1.0)
    assert ask(4.5, 4.5)
    assert said[1:] == [("a", "tried again"), ("b", "took 4.5 ms, limit 4")]
    assert runner.faults == 2
    # It now stays away for two seconds, unless it has been good for fifty answers before.
    seconds[0] = 2.9
    assert ask(1.0, 1.0)
    seconds[0] = 3.0
    for _ in range(50):
        assert not ask(1.0, 1.0)
    ask(4.5, 4.5)
    seconds[0] = 4.0
    assert not ask(1.0, 1.0)


def test_the_virtual_clock_keeps_the_order_of_kinds_then_of_asking():
    clock, done = VirtualClock(), []
    for number, (time_ms, kind) in enumerate(((2.0, 3), (1.0, 4), (1.0, 0), (1.0, 4), (2.0, 1))):
        clock.at(time_ms, kind, lambda number=number: done.append((number, clock.now())))
    clock.at(1.5, 0, lambda: done.append("never")).cancel()
    kinds = []
    clock.run(kinds.append)
    assert done == [(2, 1.0), (1, 1.0), (3, 1.0), (4, 2.0), (0, 2.0)]
    assert kinds == [0, 4, 4, 1, 3]


def test_a_kind_of_a_client_s_is_no_formula_where_a_log_is_opened(tmp_path):
    log = DecisionLog(str(tmp_path / "log.csv"), 100, lambda why: None)
    kinds = ["=HYPERLINK(1)", "+1", "-1", "@a", "a=1", ""]
    for number, kind in enumerate(kinds):
        log.add(Item(number, float(number), 50.0, 10.0, 20.0, kind=kind), Fate.DONE, 60.0)
    log.close()
    with (tmp_path / "log.csv").open(newline="") as file:
        found = [row["kind"] for row in csv.DictReader(file)]
    assert found == ["'=HYPERLINK(1)", "'+1", "'-1", "'@a", "a=1", ""]


def test_a_row_of_the_decision_log(tmp_path):
    log = DecisionLog(str(tmp_path / "log.csv"), 100, lambda why: None)
    core, _, _ = en_node("periodic", PAPER)
    for number, generated_ms in ((1, 107.0), (0, 100.5)):
        item = Item(number, generated_ms, 50.0, 10.0, 20.0, ue=4, kind="k")
        item.decided_ms, item.action, item.rerun = generated_ms + 2.0, 1, number == 0
        if number == 0:
            core.status(0, 0, 100.0, [3.0, 0.25, 1e7, 7.0])
            log.note(core.sight(item, 102.5).arrays(), item)
        log.add(item, Fate.LATE, generated_ms + 60.125)
    log.close()
    _, first, second = (tmp_path / "log.csv").read_text().splitlines()
    # The wall clock's times differ as the node's do, and by what a test takes.
    first_epoch, second_epoch = (float(row.split(",")[11]) for row in (first, second))
    assert abs(first_epoch - second_epoch) < 60_000.0
    assert first == f"0.0,4,10.0,20.0,50.0,k,2.0,1,LATE,60.125,1,{first_epoch},2.5,3 0.25 1e+07 7"
    assert second == f"6.5,4,10.0,20.0,50.0,k,8.5,1,LATE,66.625,0,{second_epoch},,"
