"""R37: nodes whose speed changes, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cosmo import Worlds, load
from cosmo.node.observation import WORK
from cosmo.workload import NodeEvents, Tasks, from_tasks
from cosmo.workload.table import SPEED

# One slot of 1000 cycles/ms; the uplink takes 1 ms.
SETTINGS = ["en.slots=1", "en.cycles_per_ms=1000", "access.rate_mbps=400", "access.overhead_ms=0"]
SETTINGS += ["episode.warmup_ms=0", "sn.slots=1", "sn.cycles_per_ms=1000"]


def _world(times, cycles, changes, settings=()):
    scenario = load("paper", [*SETTINGS, *settings])
    count = len(times)
    none = np.zeros(count, np.int64)
    size, deadline = np.full(count, 50000.0), np.full(count, 1000.0)
    tasks = Tasks(np.array(times), none, none, size, np.array(cycles), deadline)
    time, node, factor = (np.array(column) for column in zip(*changes, strict=True))
    what = np.full(len(time), SPEED)
    events = NodeEvents(time, node.astype(np.int64), what, factor)
    return scenario, replace(from_tasks(scenario, tasks, 0, 0), events=events)


def _played(scenario, world, action):
    batch, seen = Worlds(scenario, [world]), []
    turn = batch.advance()
    while not turn.over:
        see = turn.dispatch
        seen.append((see.en_speed[0], see.local_wait_ms[0], see.en_state[0, WORK]))
        seen[-1] += (batch.truth().delay_ms[0, 0],)
        batch.answer(action=[action])
        turn = batch.advance()
    return batch.outcome(0), seen


def test_a_running_task_goes_on_at_the_new_speed_with_what_is_left_of_it():
    """100 000 cycles from 1 ms on: 49 ms at full speed, 100 ms at half, 1000 cycles at double."""
    changes = [(50.0, 0, 0.5), (150.0, 0, 2.0)]
    outcome, _ = _played(*_world([0.0], [1e5], changes), 0)
    assert outcome.finished_ms[0] == pytest.approx(150.5)


@pytest.mark.parametrize(("node", "ends"), [(0, 117.0), (1, 167.0)])
def test_only_the_node_whose_speed_changes_works_at_another_one(node, ends):
    """At the SN from 11 ms on, 100 ms at full speed; what is left at 61 ms takes twice as long at
    half of it. The way back takes 6 ms.
    """
    backhaul = ["up_mbps=80", "down_mbps=80", "hops=1", "hop_delay_ms=5", "result_bytes=10000"]
    settings = [f"backhaul.{each}" for each in backhaul]
    outcome, _ = _played(*_world([0.0], [1e5], [(61.0, node, 0.5)], settings), 1)
    assert outcome.finished_ms[0] == pytest.approx(ends)


def test_a_waiting_task_takes_the_speed_of_its_time():
    """The first ends at 11 ms, at full speed; the second takes 20 ms at half of it."""
    outcome, _ = _played(*_world([0.0, 1.0], [1e4, 1e4], [(11.0, 0, 0.5)]), 0)
    np.testing.assert_allclose(outcome.finished_ms, [11.0, 31.0])


def test_an_en_knows_its_speed_and_waits_and_work_follow_it():
    """At 21 ms 10 000 cycles are left of the first task, at half speed: 20 ms, as long as 20 000
    cycles take at the nominal speed.
    """
    _, seen = _played(*_world([0.0, 20.0], [3e4, 5e3], [(21.0, 0, 0.5)]), 0)
    assert seen[0][:3] == (1.0, 0.0, 0.0)
    assert seen[1][:3] == pytest.approx((0.5, 20.0, 2e4))
    assert seen[1][3] == pytest.approx(1.0 + 20.0 + 10.0)  # the present speed is taken to last


def test_sns_change_by_themselves_and_ens_do_not_see_it():
    """Nodes are counted from the ENs on: 1 is the SN."""
    scenario, world = _world([0.0], [1e4], [(0.0, 1, 0.25)])
    outcome, seen = _played(scenario, world, 1)
    slow = outcome.finished_ms[0]
    outcome, _ = _played(scenario, replace(world, events=NodeEvents()), 1)
    assert slow - outcome.finished_ms[0] == pytest.approx(30.0)
    assert seen[0][0] == 1.0


def test_finishes_come_before_changes_of_the_same_instant():
    """The task ends at 11 ms whatever happens then (R5)."""
    outcome, _ = _played(*_world([0.0], [1e4], [(11.0, 0, 0.001)]), 0)
    assert outcome.finished_ms[0] == 11.0


def test_a_world_can_start_again_with_more_changes():
    scenario, calm = _world([0.0], [1e4], [(5.0, 0, 1.0)])
    _, busy = _world([0.0], [1e4], [(1.0, 0, 0.5), (2.0, 0, 0.25), (3.0, 0, 0.5)])
    batch = Worlds(scenario, [calm])
    for world in (calm, busy):
        while not batch.advance().over:
            batch.answer(action=[0])
        finished = batch.outcome(0).finished_ms[0]
        assert finished == pytest.approx(11.0 if world is calm else 3.0 + 2 * 9.25)
        if world is calm:
            batch.restart(0, busy)
