"""Worlds small enough to work out by hand."""

import numpy as np

from cosmo import load, method, play
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
