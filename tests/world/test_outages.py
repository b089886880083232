"""R38: SNs that fail and come back with nothing, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cosmo import Worlds, load
from cosmo.node import DONE, EXPIRED, REFUSED
from cosmo.node.observation import IDLE, STORAGE
from cosmo.workload import NodeEvents, Tasks, from_tasks
from cosmo.workload.table import FAILS, RETURNS
from cosmo.world.records import FP, TP

# The uplink takes 1 ms; a task of 50 000 bytes is at the SN 6.29 ms after its decision; 1000 bytes
# are back 2.08 ms after the finish. One slot of 1000 cycles/ms.
SETTINGS = ["access.rate_mbps=400", "access.overhead_ms=0", "episode.warmup_ms=0"]
SETTINGS += ["sn.slots=1", "sn.cycles_per_ms=1000", "sn.outage={up_ms = 1e6, down_ms = 1.0}"]
THERE = 1.0 + 50000 / 12000 + 2.0 + 1500 / 12000
BACK = 1000 / 24000 + 2.0 + 1000 / 24000


def _world(times, cycles, outages, deadline=100.0, settings=()):
    scenario = load("paper", [*SETTINGS, *settings])
    count = len(times)
    none = np.zeros(count, np.int64)
    size, due = np.full(count, 50000.0), np.full(count, deadline)
    tasks = Tasks(np.array(times), none, none, size, np.array(cycles), due)
    when = np.array([time for pair in outages for time in pair])
    what = np.tile([FAILS, RETURNS], len(outages))
    node = np.ones(len(when), np.int64)
    events = NodeEvents(when, node, what, np.full(len(when), np.nan))
    return scenario, replace(from_tasks(scenario, tasks, 0, 0), events=events)


def _played(scenario, world, dimensions=0, send=False):
    """Everything is offloaded; what ENs heard, and what SNs saw."""
    batch, heard, looks = Worlds(scenario, [world], dimensions), [], []
    turn = batch.advance()
    while True:
        told = turn.feedback
        heard += zip(told.task.tolist(), told.fate.tolist(), told.time_ms.tolist(), strict=True)
        if turn.over:
            return batch.outcome(0), heard, looks
        if len(turn.dispatch):
            batch.answer(action=[1])
        if len(turn.update):
            look = turn.update
            looks.append(
                (look.time_ms[0], look.up_since_ms[0], bool(look.returned[0]), look.age_ms[0, 0],
                 look.heard[0, 0], look.recent_failure[0])
            )  # fmt: skip
            batch.answer(send=[send], interval_ms=[30.0], numbers=look.sn_state[:, :dimensions])
        turn = batch.advance()


def test_a_task_that_runs_when_its_sn_fails_is_lost_and_heard_of_at_its_deadline():
    outcome, heard, _ = _played(*_world([0.0], [5e4], [(20.0, 30.0)]))
    assert outcome.outcome[0] == FP
    assert outcome.finished_ms[0] == 100.0  # and not when it was lost
    assert not outcome.refused[0]
    assert heard == [(0, EXPIRED, 100.0)]


def test_waiting_tasks_are_lost_too_and_what_comes_after_the_return_is_served():
    """The third arrives at 37.3 ms, after the return, at an empty SN."""
    outcome, heard, _ = _played(*_world([0.0, 1.0, 30.0], [5e4, 5e4, 1e4], [(20.0, 35.0)]))
    assert outcome.outcome.tolist() == [FP, FP, TP]
    assert outcome.finished_ms[2] == pytest.approx(30.0 + THERE + 10.0 + BACK)
    assert heard == [
        (2, DONE, pytest.approx(outcome.finished_ms[2])),
        (0, EXPIRED, 100.0),
        (1, EXPIRED, 101.0),
    ]


def test_what_reaches_an_sn_that_is_down_is_lost_without_a_notice():
    outcome, heard, _ = _played(*_world([0.0], [1e3], [(5.0, 20.0)]))
    assert outcome.outcome[0] == FP
    assert heard == [(0, EXPIRED, 100.0)]


def test_a_result_that_was_handed_to_the_link_before_arrives():
    """It leaves at 17.29 ms, the SN fails at 18, it arrives at 19.4."""
    outcome, heard, _ = _played(*_world([0.0], [1e4], [(18.0, 40.0)]))
    assert outcome.outcome[0] == TP
    assert heard == [(0, DONE, pytest.approx(THERE + 10.0 + BACK))]


def test_a_task_lost_after_its_deadline_is_final_then_and_was_heard_of_before():
    outcome, heard, _ = _played(*_world([0.0], [2e5], [(150.0, 160.0)]))
    assert outcome.finished_ms[0] == 150.0
    assert heard == [(0, EXPIRED, 100.0)]


def test_a_late_result_is_not_heard_of_again_and_its_delay_counts():
    outcome, heard, _ = _played(*_world([0.0], [2e5], []))
    assert outcome.outcome[0] == FP
    assert outcome.finished_ms[0] == pytest.approx(THERE + 200.0 + BACK)
    assert heard == [(0, EXPIRED, 100.0)]


def test_a_result_at_the_very_deadline_is_in_time():
    """R5: deliveries come before deadlines."""
    due = THERE + 10.0 + BACK
    scenario, world = _world([0.0], [1e4], [], deadline=200.0)
    [exact] = _played(scenario, world)[0].finished_ms
    tasks = replace(world.tasks, deadline_ms=np.array([exact]))
    outcome, heard, _ = _played(scenario, replace(world, tasks=tasks))
    assert exact == pytest.approx(due)
    assert (outcome.outcome[0], heard) == (TP, [(0, DONE, exact)])


def test_without_outages_nobody_stops_waiting():
    scenario = load("paper", [*SETTINGS[:-1]])
    _, world = _world([0.0], [2e5], [])
    outcome, heard, _ = _played(scenario, replace(world, expires=False))
    assert heard == [(0, DONE, outcome.finished_ms[0])]


def test_a_notice_after_the_deadline_is_not_heard():
    """The queue holds one task; the second is refused at 9.3 ms, its deadline is 9 ms."""
    settings = ["sn.queue_capacity=1"]
    outcome, heard, _ = _played(*_world([0.0, 2.0], [5e4, 1.0], [], 7.0, settings))
    assert outcome.refused.tolist() == [False, True]
    assert heard == [(0, EXPIRED, 7.0), (1, EXPIRED, 9.0)]
    outcome, heard, _ = _played(*_world([0.0, 2.0], [5e4, 1.0], [], 100.0, settings))
    assert [(task, fate) for task, fate, _ in heard] == [(1, REFUSED), (0, DONE)]


def test_the_updater_is_asked_at_the_return_and_knows_nothing():
    """Asked at 0, 30, 60, 90; down from 100 to 145, so that 120 never comes; then 145, 175, …"""
    scenario, world = _world([0.0], [1e4], [(100.0, 145.0)])
    _, _, looks = _played(scenario, world, dimensions=4, send=True)
    times = [time for time, *_ in looks]
    assert times[:7] == [0.0, 30.0, 60.0, 90.0, 145.0, 175.0, 205.0]
    assert [since for _, since, *_ in looks[:7]] == [0.0] * 4 + [145.0] * 3
    assert [returned for _, _, returned, *_ in looks[:6]] == [False] * 4 + [True, False]
    heard = [known for *_, known, _ in looks[:6]]
    assert heard == [False, True, True, True, False, True]
    ages = [age for *_, age, _, _ in looks[:6]]
    assert ages == [0.0, 30.0, 30.0, 30.0, 0.0, 30.0]  # of what is acknowledged; from the return on


def test_acknowledgements_of_earlier_statuses_are_ignored():
    """The status of 90 ms is acknowledged while the SN is down or just back: it knows of none."""
    scenario, world = _world([0.0], [1e4], [(91.0, 93.0)])
    _, _, looks = _played(scenario, world, dimensions=4)
    assert looks[4][0] == 93.0
    batch = Worlds(scenario, [world], 4)
    turn, known = batch.advance(), {}
    while not turn.over:
        if len(turn.dispatch):
            batch.answer(action=[1])
        if len(turn.update):
            now = float(turn.update.time_ms[0])
            known[now] = float(turn.update.acknowledged_ms[0, 0])
            wait = [30.0 if now < 90.0 else 1.0]
            state = turn.update.sn_state[:, :4]
            batch.answer(send=[now == 90.0], interval_ms=wait, numbers=state)
        turn = batch.advance()
    assert {now for now in known if now > 90.0} >= {93.0, 94.0, 95.0, 96.0, 97.0}
    assert all(np.isnan(source) for now, source in known.items() if now >= 93.0)


def test_no_decision_after_the_window_and_none_while_down():
    scenario, world = _world([0.0], [1e4], [(9950.0, 10001.0)])
    _, _, looks = _played(scenario, world, dimensions=4)
    assert max(time for time, *_ in looks) < 9950.0
    scenario, world = _world([0.0], [1e4], [(9950.0, 10000.0)])
    _, _, looks = _played(scenario, world, dimensions=4)
    assert looks[-1][0] == 10000.0


def test_a_down_sn_is_no_route_and_truth_says_so():
    scenario, world = _world([10.0], [1e4], [(5.0, 50.0)])
    batch = Worlds(scenario, [world])
    batch.advance()
    truth = batch.truth()
    assert truth.delay_ms[0, 1] == np.inf
    assert not truth.feasible[0, 1]
    assert not truth.sn_up[0, 0]
    assert truth.sn_state[0, 0, IDLE] == 1
    assert truth.sn_state[0, 0, STORAGE] == scenario.sn.storage_bytes


def test_tenants_that_reach_an_sn_that_is_down_are_gone():
    settings = ["background.rates=[2000, 2000]", "background.dwell_ms=[100, 100]"]
    settings += ["background.cycles=[5e5, 5e5]", "sn.queue_capacity=4"]
    scenario, world = _world([40.0], [1e3], [(0.0, 41.0)], settings=settings)
    before = world.background.time_ms < 41.0
    theirs = world.background
    columns = (theirs.time_ms, theirs.sn, theirs.input_bytes, theirs.cycles)
    none_later = type(theirs)(*(column[before] for column in columns))
    outcome, _, _ = _played(scenario, replace(world, background=none_later))
    assert len(none_later) > 10
    assert outcome.outcome[0] == TP


def test_a_world_that_loses_many_tasks_at_once_needs_no_more_room_than_it_gets():
    """All 300 waiting tasks are past their deadlines when the SN fails, and settle together."""
    times = np.linspace(0.0, 30.0, 300).tolist()
    settings = ["sn.queue_capacity=1000", "sn.storage_bytes=1e9", "access.rate_mbps=40000"]
    settings += ["backhaul.up_mbps=40000"]
    scenario, world = _world(times, [1e5] * 300, [(2000.0, 2001.0)], 60.0, settings)
    outcome, heard, _ = _played(scenario, world)
    lost = outcome.finished_ms == 2000.0
    assert lost.sum() > 250
    assert len(heard) == 300
