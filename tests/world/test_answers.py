"""Answers, what is noted of them, and those that are refused before anything comes of them."""

import numpy as np
import pytest

from cosmo import load
from cosmo.workload import Tasks, from_tasks
from cosmo.world import Worlds

SCENARIO = load("paper", ["episode.window_ms=100", "episode.warmup_ms=0"])


def _one_task():
    return Tasks(
        time_ms=np.array([10.0]), en=np.zeros(1, np.int64), ue=np.zeros(1, np.int64),
        input_bytes=np.array([20_000.0]), cycles=np.array([500_000.0]),
        deadline_ms=np.array([150.0]),
    )  # fmt: skip


def _played(action=1, interval_ms=50.0, send=False, numbers=0.0, ride=True, ride_numbers=0.0):
    """A task that is offloaded, and what its world is answered on the way; how many rode."""
    worlds = Worlds(SCENARIO, [from_tasks(SCENARIO, _one_task(), 0, 0)], 4, rides=True)
    turn = worlds.advance()
    while not turn.over:
        if len(turn.dispatch):
            worlds.answer(action=np.full(len(turn.dispatch), action))
        rows = len(turn.update)
        if rows:
            told = np.zeros((rows, 4))
            told[:, 3] = numbers
            worlds.answer(
                send=np.full(rows, send), interval_ms=np.full(rows, interval_ms), numbers=told
            )
        rows = len(turn.result)
        if rows:
            told = np.zeros((rows, 4))
            told[:, 3] = ride_numbers
            worlds.answer(ride=np.full(rows, ride), ride_numbers=told)
        turn = worlds.advance()
    return worlds.outcome(0).rides


def test_what_is_right_is_taken():
    assert _played() == 1
    assert _played(ride=False) == 0
    assert _played(action=0) == 0
    # Numbers of what is not sent say nothing, and may be anything.
    assert _played(numbers=np.nan) == 1
    assert _played(ride=False, ride_numbers=np.inf) == 0


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ({"action": -1}, "actions must be"),
        ({"action": 3}, "actions must be"),
        ({"interval_ms": 0.0}, "intervals must be"),
        ({"interval_ms": np.nan}, "intervals must be"),
        ({"send": True, "numbers": np.nan}, "a status must carry 4 finite numbers"),
        ({"send": True, "numbers": -np.inf}, "a status must carry 4 finite numbers"),
        ({"ride_numbers": np.nan}, "a status must carry 4 finite numbers"),
        ({"ride_numbers": np.inf}, "a status must carry 4 finite numbers"),
    ],
)
def test_what_is_wrong_is_refused(wrong, line):
    with pytest.raises(ValueError, match=line):
        _played(**wrong)


@pytest.mark.parametrize(
    ("deadline_ms", "storage", "action", "marks"),
    [
        # Some route was feasible, so was the one that was taken, it had no room.
        (150.0, 240_000, 0, (True, True, False)),
        (150.0, 240_000, 1, (True, True, False)),
        (150.0, 240_000, 2, (True, False, False)),
        (5.0, 240_000, 0, (False, False, False)),
        (150.0, 40_000, 0, (True, False, True)),
        (150.0, 40_000, 1, (True, True, False)),
    ],
)
def test_what_is_noted_of_a_decision(deadline_ms, storage, action, marks):
    scenario = load("paper", [f"en.storage_bytes={storage}", "episode.warmup_ms=0"])
    tasks = _one_task()
    tasks.deadline_ms[:] = deadline_ms
    worlds = Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])
    turn = worlds.advance()
    while not turn.over:
        worlds.answer(action=np.full(len(turn.dispatch), action))
        turn = worlds.advance()
    found = worlds.outcome(0)
    columns = found.any_feasible, found.took_feasible, found.refused
    assert tuple(bool(column[0]) for column in columns) == marks
