"""Speeds, outages and unknown demands at single nodes, worked out by hand (R35, R37, R38).

Nodes of the paper: an EN has 2 slots of 18 000 cycles/ms, an SN 4 of 27 000.
"""

import asyncio
import math

import numpy as np
import pytest
from virtual_clock import VirtualClock

from cosmo import load
from cosmo.live.clock import CHANGE, FINISH
from cosmo.live.realtime import RealClock
from cosmo.live.station import Station
from cosmo.live.tasks import Fate
from cosmo.node import DONE, EXPIRED, REFUSED, WORK
from live.cores import en_node, sn_node, task
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


def _told(core):
    """What the EN's method hears, in order."""
    heard = []
    core.runner.note_fate = lambda task, action, fate, in_time, now: heard.append(
        (task, action, fate, in_time, now)
    )
    return heard


def test_a_running_task_goes_on_at_the_new_speed_and_work_is_time_at_that_speed():
    """10 ms of work: 4 at full speed, the other 6 take 12 at half of it; then as much of another
    task.
    """
    core, clock, wires = en_node("all-local", PAPER)
    core.arrive(task(0, cycles=EN * 10.0))
    clock.at(4.0, CHANGE, lambda: core.change_speed(0.5))
    seen = []
    clock.at(6.0, CHANGE, lambda: seen.append(core.sight(task(9), 6.0).arrays()))
    clock.at(16.0, CHANGE, lambda: core.arrive(task(1, 16.0, cycles=EN)))
    clock.run()
    assert clock.now() == 18.0
    assert core.station.speed == 0.5
    assert seen[0].en_speed.tolist() == [0.5]
    # 5 ms of work at full speed are left: 10 ms, as long as twice the cycles take at full speed.
    assert seen[0].en_state[0, WORK] == EN * 10.0
    assert wires.answers == {0: Fate.DONE, 1: Fate.DONE}


def test_a_wait_follows_the_speed_and_the_cycles_that_a_node_sees():
    """Both slots have 10 ms of work by what the node sees, and run for 2 and 40 ms in truth."""
    station = Station(site(PAPER).en, 0, 50_000.0, 0.1, lambda *_: None)
    for number, true in enumerate((2.0, 40.0)):
        item = task(number, cycles=EN * 10.0)
        item.true_cycles = EN * true
        station.admit(item, 0.0)
    probe = task(2, cycles=EN * 3.0)
    probe.true_cycles = EN
    assert [station.finish_ms(slot) for slot in (0, 1)] == [2.0, 40.0]
    assert station.wait_ms(probe, 1.0) == pytest.approx(9.0)
    assert station.delay_ms(probe, 1.0) == pytest.approx(1.0 + 9.0 + 3.0)
    assert station.change_speed(0.5, 1.0) == [(0, 3.0), (1, 79.0)]
    assert station.wait_ms(probe, 1.0) == pytest.approx(18.0)
    assert station.state(1.0)[WORK] == pytest.approx(EN * 36.0)
    assert station.change_speed(0.5, 1.0) == []
    # At 60 ms the second has run for longer than what was seen of it: nothing is left.
    assert station.wait_ms(probe, 60.0) == 0.0


def test_a_timer_that_moves_keeps_its_place_among_equals():
    clock, made = VirtualClock(), []
    first = clock.at(5.0, FINISH, lambda: made.append("first"))
    clock.at(9.0, FINISH, lambda: made.append("second"))
    first = clock.move(first, 7.0)
    first = clock.move(first, 5.0)
    clock.move(first, 9.0)
    clock.run()
    assert made == ["first", "second"]


def test_a_real_timer_moves_too():
    async def run():
        clock, done = RealClock(asyncio.get_running_loop()), asyncio.Event()
        timer = clock.move(clock.at(1e6, FINISH, done.set), 1.0)
        await asyncio.wait_for(done.wait(), 30.0)
        assert clock.move(timer, 5.0) is timer  # it has been made
        clock.close()

    asyncio.run(run())


def test_at_its_deadline_a_method_hears_that_an_sn_has_not_answered_and_nothing_later():
    core, clock, wires = en_node("all-offload", expires=True)
    heard = _told(core)
    late, refused, good = (task(number, deadline_ms=50.0) for number in range(3))
    for item in (late, refused, good):
        core.arrive(item)
    clock.at(20.0, CHANGE, lambda: core.result(good, b""))
    clock.at(60.0, CHANGE, lambda: core.result(late, b""))
    clock.at(61.0, CHANGE, lambda: core.refused(refused))
    clock.run()
    assert [(number, fate, now) for number, _, fate, _, now in heard] == [
        (2, DONE, 20.0),
        (0, EXPIRED, 50.0),
        (1, EXPIRED, 50.0),
    ]
    # Late work finishes (R11), and its UE gets the result.
    assert wires.answers == {0: Fate.LATE, 1: Fate.REFUSED, 2: Fate.DONE}


def test_an_en_that_drops_late_tasks_says_so_in_the_same_way():
    core, clock, wires = en_node("all-offload", expires=True, answer_late=True, drop_late=True)
    heard = _told(core)
    core.arrive(task(0, deadline_ms=50.0))
    clock.run()
    assert heard == [(0, 1, EXPIRED, False, 50.0)]
    assert wires.recalled == [(0, 0)]


def test_what_vanishes_with_an_sn_is_missed_at_its_deadline_and_nothing_else_is_noticed():
    """A connection that breaks tells a real EN more than R38 allows; a test bed keeps to R38."""
    core, clock, wires = en_node("all-offload", expires=True, answer_late=True)
    heard = _told(core)
    core.status(0, 7, 0.0, [])
    before, after = (task(number, deadline_ms=50.0) for number in range(2))
    core.arrive(before)
    core.arrive(after)
    core.silence(0, True)
    assert not core.caches[0].silent
    core.restarted(0, 1e9)
    assert core.caches[0].source_ms == 0.0
    core.status(0, 0, 5.0, [])  # a new process counts from 0
    assert core.caches[0].source_ms == 5.0
    clock.at(20.0, CHANGE, lambda: core.lost(before))
    clock.at(60.0, CHANGE, lambda: core.lost(after))
    clock.run()
    assert [(number, fate, now) for number, _, fate, _, now in heard] == [
        (0, EXPIRED, 50.0),
        (1, EXPIRED, 50.0),
    ]
    assert wires.answers == {0: Fate.EXPIRED, 1: Fate.EXPIRED}
    assert core.in_flight == 0


def test_without_outages_a_method_hears_of_a_late_result_when_it_comes():
    core, clock, _ = en_node("all-offload")
    heard = _told(core)
    item = task(0, deadline_ms=50.0)
    core.arrive(item)
    clock.at(60.0, CHANGE, lambda: core.result(item, b""))
    clock.run()
    assert heard == [(0, 1, DONE, False, 60.0)]


def test_an_sn_that_fails_loses_its_tasks_and_what_it_knows_and_is_asked_at_its_return():
    core, clock, wires = sn_node("periodic:interval_ms=30", until_ms=200.0)
    seen, lost = [], []
    decide = core.runner.decide
    core.runner.decide = lambda told, ens: (seen.append(told), decide(told, ens))[1]
    core.begin()
    running, waiting, brief = task(0, cycles=SN * 500.0), task(4, cycles=SN), task(5, cycles=SN)
    core.arrive(brief, 0)
    clock.at(5.0, CHANGE, lambda: core.acknowledged(0, 0))
    for item in (running, *(task(number, cycles=SN * 500.0) for number in (1, 2, 3)), waiting):
        clock.at(10.0, CHANGE, lambda item=item: core.arrive(item, 0))
    clock.at(70.0, CHANGE, lambda: lost.extend(core.fail()))
    clock.at(101.0, CHANGE, core.come_back)
    clock.at(102.0, CHANGE, lambda: core.acknowledged(0, 2))  # a status of before
    clock.run()
    assert [item.number for item in lost] == [0, 1, 2, 3, 4]
    assert wires.results == [(5, Fate.DONE)]
    assert [told.time_ms[0] for told in seen] == [0.0, 30.0, 60.0, 101.0, 131.0, 161.0, 191.0]
    assert [told.up_since_ms[0] for told in seen[2:4]] == [0.0, 101.0]
    assert [bool(told.returned[0]) for told in seen[2:5]] == [False, True, False]
    assert seen[1].acknowledged_ms[0, 0] == 0.0
    assert all(math.isnan(told.acknowledged_ms[0, 0]) for told in seen[3:])
    assert seen[2].recent_success[0] == 1.0
    assert seen[3].recent_success[0] == seen[3].recent_failure[0] == 0.0
    empty = np.array([4.0, 0.0, 0.0, 480_000.0, 0.0, 0.0])
    assert seen[3].sn_state[0].tolist() == empty.tolist()
    # ENs take what is newer than what they hold: numbers of statuses go on.
    assert [sequence for _, sequence, _ in wires.statuses] == list(range(7))


def test_an_sn_that_returns_after_the_window_is_not_asked():
    core, clock, _ = sn_node("periodic:interval_ms=30", until_ms=100.0)
    core.begin()
    clock.at(50.0, CHANGE, core.fail)
    clock.at(101.0, CHANGE, core.come_back)
    clock.run()
    assert core.decisions == 2


def test_an_sn_sees_its_own_speed():
    core, _, _ = sn_node("periodic:interval_ms=30")
    core.change_speed(0.25)
    assert core.observation(0.0).sn_speed.tolist() == [0.25]


def test_what_an_en_refused_itself_is_heard_at_once_where_sns_may_fail():
    core, _, _ = en_node("all-local", load("paper", ["en.queue_capacity=1"]), expires=True)
    heard = _told(core)
    core.arrive(task(0))
    core.arrive(task(1))
    assert heard == [(1, 0, REFUSED, False, 0.0)]
