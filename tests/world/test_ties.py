"""R5: events at the same instant, in hand-made worlds where everything happens on whole ms."""

import numpy as np

from cosmo import Worlds, load
from cosmo.workload import Tasks, from_tasks

# One slot each, 1 cycle/ms, instant access, 1 byte/ms links without delay.
WHOLE = (
    "access.overhead_ms=0",
    "access.contention_ms=0",
    "access.rate_mbps=1e12",
    "storage.reservation_floor_bytes=0",
    "mobility.speed_m_per_s=0",
    "en.slots=1",
    "en.cycles_per_ms=1",
    "en.queue_capacity=1",
    "sn.slots=1",
    "sn.cycles_per_ms=1",
    "sn.queue_capacity=1",
    "backhaul.up_mbps=0.008",
    "backhaul.down_mbps=0.008",
    "backhaul.hops=1",
    "backhaul.hop_delay_ms=0",
    "backhaul.result_bytes=1",
)


def _world(rows, *settings, dims=0):
    scenario = load("paper", [*WHOLE, *settings])
    time, size, cycles = (np.array(column, float) for column in zip(*rows, strict=True))
    count = len(rows)
    tasks = Tasks(
        time, np.zeros(count, np.int64), np.zeros(count, np.int64), size, cycles,
        np.full(count, 100.0),
    )  # fmt: skip
    return Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)], dims)


def _play(worlds, actions):
    turn = worlds.advance()
    while not turn.over:
        if len(turn.dispatch):
            worlds.answer(action=actions[int(turn.dispatch.task[0])])
        if len(turn.update):
            worlds.answer(send=True, interval_ms=5.0, numbers=0.0)
        turn = worlds.advance()
    return worlds.outcome(0)


def test_a_finish_frees_the_node_for_a_decision_at_the_same_instant():
    # Both decisions fall on a whole ms only up to the (tiny) access time, so decide by order alone:
    # the first task finishes at 1 + 4 and the second one is generated just then.
    outcome = _play(_world([(1.0, 1e-9, 4.0), (5.0, 1e-9, 4.0)]), [0, 0])
    assert not outcome.refused.any()
    assert outcome.finished_ms[1] > outcome.finished_ms[0]


def test_a_finish_frees_the_sn_for_a_delivery_at_the_same_instant():
    # Task 0 is at the SN at 2 (1 B at 1 B/ms) and runs 3 ms; task 1 is sent at 4, arrives at 5.
    outcome = _play(_world([(1.0, 1.0, 3.0), (4.0, 1.0, 3.0)]), [1, 1])
    assert not outcome.refused.any()


def test_one_tick_earlier_the_sn_is_still_full():
    outcome = _play(_world([(1.0, 1.0, 3.0), (3.5, 1.0, 3.0)]), [1, 1])
    assert list(outcome.refused) == [False, True]


def test_an_sn_decides_before_a_task_is_generated_and_first_at_time_zero():
    worlds = _world([(5.0, 1.0, 1.0)], dims=4)
    order = []
    turn = worlds.advance()
    while not turn.over:
        if len(turn.update):
            order.append(("sn", float(turn.update.time_ms[0])))
            worlds.answer(send=False, interval_ms=2500.0)
        if len(turn.dispatch):
            order.append(("en", round(float(turn.dispatch.time_ms[0]))))
            worlds.answer(action=2)
        turn = worlds.advance()
    # R21: the last decision falls on the window's very end.
    times = [2500.0, 5000.0, 7500.0, 10000.0]
    assert order == [("sn", 0.0), ("en", 5), *(("sn", time) for time in times)]


def test_a_delivered_status_is_seen_by_a_decision_at_the_same_instant():
    # Status of 4 B arrives at exactly 4 ms; the task's upload of 4 B at 1 B/ms ends at 4 ms too.
    worlds = _world(
        [(0.0, 4.0, 1.0)],
        "access.rate_mbps=0.008",
        "status.header_bytes=3",
        "status.bytes_per_dimension=1",
        dims=1,
    )
    seen = []
    turn = worlds.advance()
    while not turn.over:
        if len(turn.update):
            worlds.answer(send=turn.update.time_ms[0] == 0.0, interval_ms=np.inf, numbers=7.0)
        if len(turn.dispatch):
            told = turn.dispatch
            seen.append((float(told.time_ms[0]), told.status_ms.item(), told.status.item()))
            worlds.answer(action=2)
        turn = worlds.advance()
    assert seen == [(4.0, 0.0, 7.0)]


def test_a_channel_that_becomes_free_at_generation_is_idle():
    # Upload of the first task ends at exactly 4 ms; no contention for the one generated then.
    rows = [(0.0, 4.0, 1.0), (4.0, 4.0, 1.0), (5.0, 4.0, 1.0)]
    worlds = _world(rows, "access.rate_mbps=0.008", "access.contention_ms=10")
    outcome = _play(worlds, [2, 2, 2])
    np.testing.assert_array_equal(outcome.decided_ms, [4.0, 8.0, 8.0 + 10.0 + 4.0])


def test_a_task_that_ends_exactly_on_its_deadline_is_on_time():
    # Upload 4 ms, then 96 cycles at 1 cycle/ms: 100 ms after generation, the deadline.
    outcome = _play(_world([(0.0, 4.0, 96.0)], "access.rate_mbps=0.008"), [0])
    assert outcome.finished_ms[0] == 100.0
    assert outcome.outcome[0] == 1
