"""What an EN hears of its tasks, and when (R27, R29); when SNs are asked (R21)."""

from dataclasses import fields

import numpy as np
import pytest

from cosmo import Dispatcher, Feedback, Method, load, method, play
from cosmo.measure import update_cost
from cosmo.node import DONE, GIVEN_UP, REFUSED
from cosmo.workload import Tasks, episode, from_tasks
from cosmo.world import Watcher, Worlds
from cosmo.world.records import FN, FP, TN, TP


def _tasks(rows):
    """Rows: (time, bytes, cycles, deadline), all of UE 0."""
    time, size, cycles, deadline = (np.array(column, float) for column in zip(*rows, strict=True))
    index = np.zeros(len(rows), np.int64)
    return Tasks(time, index, index, size, cycles, deadline)


def _heard(scenario, rows, actions):
    """What the EN is told, {task: (fate, in time, when)}, and the outcome."""
    worlds = Worlds(scenario, [from_tasks(scenario, _tasks(rows), 0, 0)])
    heard, turn = {}, worlds.advance()
    while True:
        told = turn.feedback
        for task, *what in zip(told.task, told.fate, told.in_time, told.time_ms, strict=True):
            assert task not in heard, "told twice"
            heard[int(task)] = tuple(what)
        if turn.over:
            return heard, worlds.outcome(0)
        worlds.answer(action=[actions[task] for task in turn.dispatch.task])
        turn = worlds.advance()


class RejectsAll(Method, Dispatcher):
    """Keeps what it is told."""

    def __init__(self):
        self.told = []

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.full(len(tasks), tasks.reject)

    def observe(self, feedback):
        rows = (getattr(feedback, field.name).tolist() for field in fields(Feedback))
        self.told += zip(*rows, strict=True)


def test_who_rejects_everything_hears_that_it_has_given_up_and_not_whether_that_was_right():
    """The same tasks, once with hopeless and once with easy deadlines: nothing tells which."""
    scenario = load("paper", ["episode.window_ms=1000", "episode.warmup_ms=0"])
    times = 5.0 * np.arange(1, 150)
    played = {}
    for deadline, label in ((10.0, TN), (1000.0, FN)):
        rows = [(time, 30000.0, 6e5, deadline) for time in times]
        chosen = RejectsAll()
        [outcome] = play(scenario, chosen, [from_tasks(scenario, _tasks(rows), 0, 0)])
        assert set(outcome.outcome.tolist()) == {label}
        played[label] = chosen.told
    assert played[TN] == played[FN]
    names = [field.name for field in fields(Feedback)]
    assert "outcome" not in names
    columns = dict(zip(names, zip(*played[TN], strict=True), strict=True))
    assert set(columns["fate"]) == {GIVEN_UP}
    assert not any(columns["in_time"])
    assert columns["task"] == tuple(range(len(times)))


def test_fates_are_not_outcomes_under_another_name():
    """Late or in time, a result is done; that a rejection was right has no name here."""
    scenario = load("paper")
    late = (0.0, 30000.0, 6e5, 61.0), (1.0, 30000.0, 1.2e6, 61.0)
    heard, outcome = _heard(scenario, late, [0, 0])
    assert outcome.outcome.tolist() == [TP, FP]
    assert [(fate, bool(in_time)) for fate, in_time, _ in heard.values()] == [
        (DONE, True),
        (DONE, False),
    ]


# A task of 36000 B: 3 ms on the link up, 2 hops of 1 ms, its last packet once more (R13).
UPLOAD_MS = 36000 / 12000 + 2 * 1.0 + 1500 / 12000
NOTICE_MS = 64 / 24000 + 2 * 1.0 + 64 / 24000


def test_a_remote_refusal_is_heard_when_its_notice_has_come_back():
    scenario = load("paper", ["sn.queue_capacity=1"])
    rows = [(10.0, 36000.0, 1.2e6, 200.0), (20.0, 36000.0, 1.2e6, 200.0)]
    heard, outcome = _heard(scenario, rows, [1, 1])
    assert outcome.refused.tolist() == [False, True]
    refused_at = outcome.decided_ms[1] + UPLOAD_MS
    assert outcome.finished_ms[1] == pytest.approx(refused_at)  # the outcome is final there
    assert heard[1] == (REFUSED, False, pytest.approx(refused_at + NOTICE_MS, abs=1e-9))
    assert heard[0] == (DONE, True, outcome.finished_ms[0])


def test_a_local_refusal_is_heard_at_once():
    scenario = load("paper", ["en.queue_capacity=1"])
    rows = [(10.0, 36000.0, 1.2e6, 200.0), (20.0, 36000.0, 1.2e6, 200.0)]
    heard, outcome = _heard(scenario, rows, [0, 0])
    assert heard[1] == (REFUSED, False, outcome.decided_ms[1])
    assert heard[0] == (DONE, True, outcome.finished_ms[0])


# 1 byte/ms everywhere, 1 cycle/ms, no hop delay: everything on whole ms.
WHOLE = (
    "access.overhead_ms=0", "access.contention_ms=0", "access.rate_mbps=0.008",
    "storage.reservation_floor_bytes=0", "mobility.speed_m_per_s=0",
    "sn.slots=1", "sn.cycles_per_ms=1", "sn.queue_capacity=1",
    "backhaul.up_mbps=0.008", "backhaul.down_mbps=0.008", "backhaul.hops=1",
    "backhaul.hop_delay_ms=0", "backhaul.result_bytes=1",
)  # fmt: skip


def test_notices_and_results_share_the_link_first_come_first_served():
    """Task 1 is refused at 8, its notice of 64 B comes at 72; the result of task 0, done at 12, is
    behind it, and too late for that.
    """
    rows = [(0.0, 2.0, 8.0, 13.0), (4.0, 2.0, 8.0, 100.0)]
    heard, outcome = _heard(load("paper", WHOLE), rows, [1, 1])
    assert heard == {1: (REFUSED, False, 72.0), 0: (DONE, False, 73.0)}
    assert outcome.finished_ms.tolist() == [73.0, 8.0]
    # A notice of another size takes another time.
    heard, _ = _heard(load("paper", [*WHOLE, "status.notice_bytes=2"]), rows, [1, 1])
    assert heard == {1: (REFUSED, False, 10.0), 0: (DONE, True, 13.0)}


def test_a_notice_is_no_status_and_costs_nothing():
    scenario = load("paper", ["workload.rate=320"])
    chosen = method("periodic-200")
    chosen.rule = lambda site: method("all-offload")
    [outcome] = play(scenario, chosen, [episode(scenario, 0, 0)])
    assert outcome.refused.sum() > 100
    assert update_cost(scenario, outcome, chosen.carries) == 51 * 4 * 0.5


def test_every_en_hears_of_its_own_tasks_and_of_all_of_them():
    scenario = load(
        "campus", ["workload.rate=250", "episode.window_ms=1000", "episode.warmup_ms=0"]
    )
    worlds = Worlds(scenario, [episode(scenario, 3, 0)])
    told, turn = [], worlds.advance()
    while True:
        heard = turn.feedback
        told += zip(heard.task, heard.en, heard.action, heard.fate, heard.time_ms, strict=True)
        if turn.over:
            break
        worlds.answer(action=turn.dispatch.task % (turn.dispatch.sns + 2))
        turn = worlds.advance()
    outcome = worlds.outcome(0)
    task, en, action, fate, time = (np.array(column) for column in zip(*told, strict=True))
    numbers = [np.flatnonzero(outcome.tasks.en == each) for each in range(scenario.en.count)]
    task = np.array([numbers[each][own] for each, own in zip(en, task, strict=True)])  # R41
    assert sorted(task) == list(range(len(outcome.action)))
    np.testing.assert_array_equal(en, outcome.tasks.en[task])
    np.testing.assert_array_equal(action, outcome.action[task])
    np.testing.assert_array_equal(fate == REFUSED, outcome.refused[task])
    np.testing.assert_array_equal(fate == GIVEN_UP, action == scenario.sn.count + 1)
    assert (np.diff(time) >= 0).all()
    # Only of what an SN has refused does the EN hear later than it happens.
    late = time > outcome.finished_ms[task]
    np.testing.assert_array_equal(late, (fate == REFUSED) & (action > 0))
    assert late.any()


class Times(Watcher):
    """When SNs decided."""

    def __init__(self):
        self.times = []

    def updated(self, nodes, send, interval_ms):
        self.times += nodes.time_ms.tolist()


@pytest.mark.parametrize(("interval", "decisions"), [(200.0, 51), (7.0, 1429), (2500.0, 5)])
def test_an_sn_decides_from_time_zero_to_the_very_end_of_the_window(interval, decisions):
    scenario, watcher = load("paper"), Times()
    chosen = method(f"periodic:interval_ms={interval}")
    [outcome] = play(scenario, chosen, [episode(scenario, 0, 0)], watchers=[watcher])
    assert watcher.times == [k * interval for k in range(decisions)]
    assert watcher.times[-1] <= 10000.0 < watcher.times[-1] + interval
    assert (outcome.updates, outcome.update_decisions) == (decisions, decisions)
