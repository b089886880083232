"""Tasks that never reached their EN: whether the UE was away, or the channel busy."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load
from cosmo.measure import lost_task_notices, lost_tasks
from cosmo.workload import Tasks


def _lost(settings, *rows):
    """Rows: (time, deadline, UE, action); UE 0 is in range until 8 s, UE 1 from 4 s to 14 s."""
    ways = ["mobility.distances_m=[3, 9]", "mobility.headings_deg=[0, 0]", "mobility.radius_m=5"]
    ways += ["mobility.speed_m_per_s=1", "episode.undecided_after_ms=500", *settings]
    scenario = load("paper", ways)
    time, deadline, ue, action = (np.array(column) for column in zip(*rows, strict=True))
    tasks = Tasks(time, np.zeros(len(time), np.int64), ue, time, time, deadline)
    return scenario, [SimpleNamespace(action=action, tasks=tasks)]


def test_the_last_chance_is_the_deadline_and_some_ms():
    # 100 + 500 ms: in range until then is a busy channel, out of range before is away.
    for time, cause in ((7399.0, (0, 1)), (7400.0, (0, 1)), (7401.0, (1, 0))):
        assert lost_tasks(*_lost([], (time, 100.0, 0, -1))) == cause
    for time, cause in ((3399.0, (1, 0)), (3400.0, (0, 1)), (3401.0, (0, 1))):
        assert lost_tasks(*_lost([], (time, 100.0, 1, -1))) == cause


def test_tasks_that_were_decided_are_not_lost():
    rows = (9000.0, 100.0, 0, 0), (9000.0, 100.0, 0, -1), (5000.0, 100.0, 0, -1)
    assert lost_tasks(*_lost([], *rows, *rows)) == (2, 2)
    [away, busy] = lost_task_notices(*_lost([], *rows))
    assert away.startswith("1 of 3 tasks were lost: their UEs were outside the cell")
    assert busy.startswith("1 of 3 tasks were lost: the cell's channel was busy until 500 ms after")
    assert lost_task_notices(*_lost([], rows[0])) == []


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ([], "mobility.radius_m=9"),  # UE 1 starts outside
        (["mobility.distances_m=[3, 9.2]"], "mobility.radius_m=10"),
        (["mobility.distances_m=[3, 5]"], "mobility.at_edge=turn"),
    ],
)
def test_what_helps(settings, remedy):
    [line] = lost_task_notices(*_lost(settings, (20_000.0, 100.0, 0, -1)))
    assert line.endswith(f"--set {remedy}")
