"""The core of an SN under the virtual clock: times and bounds that can be checked on paper.

Nodes of the paper: an EN has 2 slots of 18 000 cycles/ms and room for 240 000 bytes, an SN 4 of
27 000 and 480 000; a task reserves 50 000 bytes. Links take 12 000 bytes a ms up and 24 000 down,
over two hops of 1 ms.
"""

import math
from dataclasses import fields

import numpy as np
import pytest
from virtual_clock import VirtualClock

from cosmo import load
from cosmo.live.clock import Emulated
from cosmo.live.core_sn import SnCore, SnRules
from cosmo.live.link import Link
from cosmo.live.tasks import Fate
from cosmo.live.updater_runner import GuardedUpdaterRunner
from live.cores import Rides, Timed, Wires, sn_node, task, timed
from observations import site

PAPER = load("paper")
EN, SN = 18_000.0, 27_000.0


def test_what_a_tenant_takes_leaves_no_timer_behind():
    core, clock, _ = sn_node("never", drop_late=True)
    for number in range(300):
        core.arrive(task(number, deadline_ms=math.inf, cycles=SN), None)
        clock.run()
    assert clock.now() == 300.0  # and none was set for the end of time
    assert core.station.requests == 0


def test_results_notices_and_statuses_are_as_long_as_they_are():
    core, clock, _ = sn_node("periodic:interval_ms=1000", until_ms=0.0)
    wires = timed(core)
    down = 24_000.0

    def way(size):
        return size / down + 2.0 + min(size, 1500.0) / down

    core.begin()
    clock.run()
    status = 64.0 + 4.0 * 4
    assert wires.times == pytest.approx([way(status)])
    core.arrive(task(0, cycles=SN * 8.0), 0)
    clock.run()
    # A result has 1000 bytes at least.
    assert wires.times[1] == pytest.approx(8.0 + way(1000.0))
    assert core.recent.numbers(8.0) == (pytest.approx(8.0 + way(1000.0)), 1.0, 0.0)
    item = task(1, 8.0, cycles=SN)
    core.arrive(item, 0)
    core._finish(0, item, bytes(4000))
    assert wires.times[2] == pytest.approx(8.0 + 1000.0 / down + way(4000.0))  # behind the other


@pytest.mark.parametrize(("deadline_ms", "in_time"), [(10.0833333333334, 1.0), (10.0833333, 0.0)])
def test_an_sn_judges_by_when_the_result_will_be_there(deadline_ms, in_time):
    core, clock, _ = sn_node("never")
    core.arrive(task(0, deadline_ms=deadline_ms, cycles=SN * 8.0), 0)
    clock.run()
    delay_ms, success, failure = core.recent.numbers(8.0)
    assert delay_ms == pytest.approx(8.0 + 1000 / 24_000 + 2.0 + 1000 / 24_000)
    assert (success, failure) == (in_time, 1.0 - in_time)


def test_tasks_of_nobody_take_room_and_are_not_answered():
    core, clock, wires = sn_node("never")
    for number in range(10):
        core.arrive(task(-1 - number, cycles=SN), None)
    assert core.station.requests == 9  # 480 000 bytes
    clock.run()
    assert wires.results == []
    assert core.recent.numbers(1.0) == (0.0, 0.0, 0.0)


def test_a_status_that_rides_makes_a_result_longer_and_counts_as_an_update():
    for ride, size, updates in ((True, 1008.0, 1), (False, 1000.0, 0)):
        made = Rides(ride)
        core, clock, _ = sn_node(made)
        wires = timed(core)
        core.arrive(task(0, cycles=SN * 8.0), 0)
        clock.run()
        [told] = wires.results
        assert wires.times == pytest.approx([8.0 + size / 24_000 + 2.0 + size / 24_000])
        assert core.updates == updates
        if ride:
            assert (told[5][0], told[5][1].tolist()) == (0, [4.0, 0.0])
        else:
            assert told[5] is None
        [seen] = made.seen
        assert (seen.time_ms[0], seen.en[0], seen.sn[0]) == (8.0, 0, 0)
        assert math.isnan(seen.acknowledged_ms[0])


def test_what_an_sn_sees():
    core, _, _ = sn_node("periodic")
    core.recent.note(0.0, 30.0, True)
    core.recent.note(0.0, None, False)
    core._numbered(np.arange(4.0), 2.0)
    core.acknowledged(0, 0)
    core.arrive(task(0, cycles=SN * 8.0), 0)
    seen = core.observation(3.0)
    assert (seen.time_ms[0], seen.sn[0], seen.en.tolist()) == (3.0, 0, [[0]])
    assert seen.sn_state[0].tolist() == [3.0, 0.0, SN * 5.0, 430_000.0, 1.0, 0.0]
    assert seen.acknowledged[0, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    assert seen.acknowledged_ms[0, 0] == 2.0
    assert (seen.recent_delay_ms[0], seen.recent_success[0]) == (30.0, 0.5)
    assert seen.recent_failure[0] == 0.5
    assert seen.down_link_mbps[0, 0].tolist() == [192.0, 0.0, 0.0]


def test_only_newer_acknowledgements_of_what_was_sent_count():
    core, _, _ = sn_node("periodic")
    for number in range(3):
        assert core._numbered(np.full(4, float(number)), 10.0 * number) == number
    for sequence, held_ms in ((1, 10.0), (0, 10.0), (9, 10.0), (1, 10.0), (2, 20.0)):
        core.acknowledged(0, sequence)
        assert core.peers[0].acknowledged_ms == held_ms
    core.met(0, True)
    assert math.isnan(core.peers[0].acknowledged_ms)


def test_an_sn_decides_until_its_end_and_one_that_takes_over_begins_at_once():
    core, clock, _ = sn_node("periodic:interval_ms=10", until_ms=30.0)
    core.begin()
    clock.run()
    assert (core.decisions, clock.now()) == (4, 30.0)
    core, clock, _ = sn_node("periodic:interval_ms=10", until_ms=30.0)
    core.begin()
    clock.at(15.0, 0, lambda: core.take_over(core.runner))
    clock.run()
    assert (core.decisions, clock.now()) == (4, 25.0)  # 0, 10, 15, 25


def _of_campus():
    """SN 0, which ENs 0 and 2 reach, of two; SN 1 is reached by all three."""
    uneven = load("campus", ["backhaul.reach=[[0, 1], [1], [0, 1]]", "backhaul.down_mbps=8"])
    here, clock, wires = site(uneven), VirtualClock(), Timed()
    made = Rides()
    links = [Link(here.links, en, 0, up=False) for en in (0, 2)]
    runner = GuardedUpdaterRunner(made, here)
    return SnCore(here, 0, runner, clock, Emulated(clock), wires, links), clock, wires, made


def test_an_sn_of_several_ens_tells_whom_it_means():
    core, clock, wires, made = _of_campus()
    seen = core.observation(0.0)
    assert {len(getattr(seen, each.name)) for each in fields(seen)} == {1}
    assert seen.en.tolist() == [[0, 2, -1]]
    assert seen.down_link_mbps[0].tolist() == [[8.0, 0.0, 0.0]] * 2 + [[1.0, 0.0, 0.0]]
    assert np.isnan(seen.acknowledged_ms).all()
    assert not seen.acknowledged.any()
    made.decide = lambda nodes: (np.array([[False, True, True]]), np.full(1, np.inf))
    core.begin()
    clock.run()
    assert [en for en, _, _ in wires.statuses] == [1]
    assert (core.updates, core.suppressed, core.decisions) == (1, 0, 1)
    core.arrive(task(0, cycles=SN), 1)
    clock.run()
    assert made.seen[-1].en.tolist() == [2]
    assert {len(getattr(made.seen[-1], each.name)) for each in fields(made.seen[-1])} == {1}


def test_an_sn_without_an_updater_is_silent_and_knows_no_numbers():
    here, clock = site(PAPER), VirtualClock()
    links = [Link(here.links, 0, 0, up=False)]
    core = SnCore(here, 0, None, clock, Emulated(clock), Wires(), links)
    core.begin()
    assert (clock._events, core.peers[0].numbers.tolist()) == ([], [])
    assert (core.decisions, core.updates, core.suppressed) == (0, 0, 0)
    assert core.rules == SnRules()


def test_a_budget_that_is_gone_at_an_sn():
    for deadline_ms, results in ((5.0, [(0, Fate.EXPIRED)]), (5.5, [])):
        core, _, wires = sn_node("never", drop_late=True)
        core.arrive(task(0, generated_ms=-5.0, deadline_ms=deadline_ms), 0)
        assert wires.results == results
    core, _, wires = sn_node("never")  # as R11 says
    core.arrive(task(0, generated_ms=-500.0), 0)
    assert wires.results == []
