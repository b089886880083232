"""Worlds small enough to work out by hand."""

import numpy as np
import pytest

from cosmo import load, method, play
from cosmo.node import LATENCY
from cosmo.workload import Tasks, from_tasks
from cosmo.world import Worlds
from cosmo.world.records import FP, TP


def _tasks(times, size=20_000.0):
    count = len(times)
    return Tasks(
        time_ms=np.array(times, float),
        en=np.zeros(count, np.int64),
        ue=np.arange(count) % 4,
        input_bytes=np.full(count, size),
        cycles=np.full(count, 500_000.0),
        deadline_ms=np.full(count, 150.0),
    )


def _played(worlds):
    turn = worlds.advance()
    while not turn.over:
        worlds.answer(action=turn.dispatch.task % 3)
        turn = worlds.advance()
    return [
        (outcome.action.tolist(), outcome.finished_ms.tolist(), outcome.tasks.cycles.tolist())
        for outcome in map(worlds.outcome, range(len(worlds)))
    ]


def test_a_longer_episode_in_the_middle_leaves_its_neighbours_tasks_alone():
    scenario = load("paper", ["episode.window_ms=1000", "episode.warmup_ms=0"])
    short = [from_tasks(scenario, _tasks(range(10, 10 * n, 10)), 0, n) for n in (5, 3, 6)]
    longer = from_tasks(scenario, _tasks(range(7, 900, 9)), 0, 9)
    worlds = Worlds(scenario, short)
    before = _played(worlds)
    assert before == [_played(Worlds(scenario, [each]))[0] for each in short]
    worlds.restart(1, longer)
    after = _played(worlds)
    assert after[0] == before[0]
    assert after[2] == before[2]
    assert after[1] == _played(Worlds(scenario, [longer]))[0]
    # And one that fits again takes the room of the last.
    worlds.restart(1, short[0])
    assert _played(worlds) == [before[0], before[0], before[2]]


def test_a_task_that_takes_the_last_byte_of_storage_is_taken():
    for free, outcome in ((50_000.0, TP), (49_999.0, FP)):
        scenario = load("paper", [f"en.storage_bytes={free}"])
        [found] = play(scenario, method("all-local"), [from_tasks(scenario, _tasks([10]), 0, 0)])
        assert found.outcome.tolist() == [outcome]  # a reservation is 50 000 bytes (R9)


def test_tasks_that_fill_the_storage_together_are_taken_and_one_more_is_not():
    scenario = load("paper", ["en.storage_bytes=120000", "en.slots=1"])
    episode = from_tasks(scenario, _tasks([10, 10.5, 11], 60_000.0), 0, 0)
    [found] = play(scenario, method("all-local"), [episode])
    assert found.outcome.tolist() == [TP, TP, FP]


def test_uploads_wait_for_one_another_and_results_do_too():
    # 8 Mbps up and 4 down are 1000 and 500 bytes/ms; one hop without delay; instant access.
    ways = ["access.rate_mbps=1e9", "access.overhead_ms=0", "access.contention_ms=0"]
    ways += ["backhaul.up_mbps=8", "backhaul.down_mbps=4", "backhaul.hops=1"]
    ways += ["backhaul.hop_delay_ms=0", "sn.cycles_per_ms=1000", "sn.slots=4"]
    scenario = load("paper", ways)
    tasks = _tasks([10.0, 15.0, 15.0], 20_000.0)
    tasks.cycles[:] = 30_000.0, 10_500.0, 500.0
    [found] = play(scenario, method("all-offload"), [from_tasks(scenario, tasks, 0, 0)])
    # At the SN at 30, 50 and 70 ms, done at 60, 60.5 and 70.5; a result takes 2 ms.
    assert found.finished_ms.tolist() == pytest.approx([62.0, 64.0, 72.5], abs=1e-3)


def test_who_does_not_let_statuses_ride_is_never_asked_to():
    scenario = load("paper", ["episode.window_ms=100", "episode.warmup_ms=0"])
    for dimensions, rides in ((4, False), (4, True), (0, True)):
        tasks = from_tasks(scenario, _tasks([10.0]), 0, 0)
        worlds = Worlds(scenario, [tasks], status_dimensions=dimensions, rides=rides)
        turn, asked = worlds.advance(), 0
        while not turn.over:
            asked += len(turn.result)
            worlds.answer(action=np.ones(len(turn.dispatch), np.int64))
            if dimensions:
                rows = len(turn.update)
                worlds.answer(send=np.zeros(rows, bool), interval_ms=np.full(rows, 50.0))
            turn = worlds.advance()
        assert asked == (dimensions > 0 and rides)


def test_of_a_link_that_is_not_there_nothing_is_known():
    ways = ["backhaul.reach=[[0, 1], [1], [0, 1]]", "episode.window_ms=100", "episode.warmup_ms=0"]
    scenario = load("campus", ways)
    tasks = _tasks([10.0, 11.0])
    tasks.en[:] = 1, 0
    worlds = Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)], status_dimensions=4)
    seen, told = {}, {}
    turn = worlds.advance()
    while not turn.over:
        for row, en in enumerate(turn.dispatch.en.tolist()):
            links = turn.dispatch.up_link_mbps[row].tolist()
            seen[en] = links, turn.dispatch.up_backlog_ms[row].tolist()
        for row, sn in enumerate(turn.update.sn.tolist()):
            told[sn] = turn.update.en[row].tolist(), turn.update.down_link_mbps[row].tolist()
        worlds.answer(action=np.zeros(len(turn.dispatch), np.int64))
        rows = len(turn.update)
        worlds.answer(send=np.zeros(rows, bool), interval_ms=np.full(rows, 500.0))
        turn = worlds.advance()
    up, down = [scenario.backhaul.up_mbps, 0.0, 0.0], [scenario.backhaul.down_mbps, 0.0, 0.0]
    nothing = [1.0, 0.0, 0.0]
    assert seen == {1: ([up, nothing], [0.0, np.inf]), 0: ([up, up], [0.0, 0.0])}
    assert told == {0: ([0, 2, -1], [down, down, nothing]), 1: ([0, 1, 2], [down] * 3)}


def test_the_age_of_a_status_at_decisions_by_hand():
    # Instant access and links; an update every 50 ms, so that it is as old as its last multiple.
    ways = ["access.rate_mbps=1e9", "access.overhead_ms=0", "access.contention_ms=0"]
    ways += ["backhaul.up_mbps=1e6", "backhaul.down_mbps=1e6", "backhaul.hop_delay_ms=0"]
    scenario = load("paper", [*ways, "episode.window_ms=200", "episode.warmup_ms=0"])
    episode = from_tasks(scenario, _tasks([10.0, 61.0, 75.0, 199.0]), 0, 0)
    [found] = play(scenario, method("periodic:interval_ms=50"), [episode])
    assert found.status.decision_age_ms == pytest.approx((10 + 11 + 25 + 49) / 4, abs=1e-3)


def test_what_an_en_knows_of_a_link_that_fades_by_hand():
    ways = ["access.rate_mbps=1e9", "access.overhead_ms=0", "backhaul.up_mbps=80"]
    ways += ["fading.factors=[0.5, 1.5]", "fading.period_ms=50", "observation.history_ms=80"]
    scenario = load("paper", [*ways, "episode.window_ms=200", "episode.warmup_ms=0"])
    episode = from_tasks(scenario, _tasks([20.0, 70.0, 150.0]), 0, 0)
    mbps = 80.0 * episode.rate_factor[0, 0]
    worlds = Worlds(scenario, [episode])
    turn, seen = worlds.advance(), []
    while not turn.over:
        seen += turn.dispatch.up_link_mbps[:, 0].tolist()
        worlds.answer(action=np.zeros(len(turn.dispatch), np.int64))
        turn = worlds.advance()
    # Shares of the last 80 ms, or of all since the start, and the rate of the moment.
    for found, shares, now in zip(
        seen, ([1.0], [50 / 70, 20 / 70], [0.0, 30 / 80, 50 / 80]), (0, 1, 3), strict=True
    ):
        part = mbps[: len(shares)]
        mean = np.dot(shares, part)
        deviation = np.sqrt(max(np.dot(shares, part**2) - mean**2, 0.0))
        assert found == pytest.approx([mean, deviation, mbps[now] - mean], abs=1e-5)
    assert len(set(np.round(mbps[:4], 6))) > 2


def test_tasks_on_their_way_to_an_sn_take_its_places():
    ways = ["access.rate_mbps=1e9", "access.overhead_ms=0", "access.contention_ms=0"]
    scenario = load("paper", [*ways, "sn.queue_capacity=2", "sn.slots=2"])
    worlds = Worlds(scenario, [from_tasks(scenario, _tasks([10.0, 10.5, 11.0]), 0, 0)])
    turn, feasible = worlds.advance(), []
    while not turn.over:
        if len(turn.dispatch):
            feasible += worlds.truth().feasible[:, 1].tolist()
        worlds.answer(action=np.ones(len(turn.dispatch), np.int64))
        turn = worlds.advance()
    assert feasible == [True, True, False]
    assert worlds.outcome(0).refused.tolist() == [False, False, True]


def test_the_first_latency_of_a_node_is_taken_whole_and_the_next_by_a_tenth():
    scenario = load("paper", ["episode.window_ms=1000", "episode.warmup_ms=0"])
    tasks = _tasks([10, 200, 400])
    tasks.cycles[1] = 1_000_000.0
    worlds = Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])
    seen, turn = [], worlds.advance()
    while not turn.over:
        seen += turn.dispatch.en_state[:, LATENCY].tolist()
        worlds.answer(action=0 * turn.dispatch.task)
        turn = worlds.advance()
    first, second = 500_000 / 18_000, 1_000_000 / 18_000
    assert seen == pytest.approx([0.0, first, first + 0.1 * (second - first)])
