"""Rules, plain and compiled, where numbers are exactly equal: they are sums of powers of two.

The air, the links and the result take 1 ms for 1024 bytes, a hop 1 ms; 10 240 cycles are 10 ms of
the EN and 5 ms of the SN. So a task of 1024 bytes is 1 ms on the air and is done after 11 ms at the
EN, or after 1 + 2 + 5 + 2 = 10 ms at the SN; one of 8192 bytes after 18 and 8 + 9 + 5 + 2 = 24 ms.
"""

import numpy as np
import pytest

from cosmo import load, method, play
from cosmo.workload import Tasks, from_tasks

_WAYS = [
    *("access.rate_mbps=8.192", "access.overhead_ms=0", "access.contention_ms=0"),
    *("backhaul.up_mbps=8.192", "backhaul.down_mbps=8.192", "backhaul.hops=1"),
    *("backhaul.hop_delay_ms=1", "backhaul.result_bytes=1024", "mobility.speed_m_per_s=0"),
    *("en.cycles_per_ms=1024", "sn.cycles_per_ms=2048", "episode.window_ms=1024"),
    "episode.warmup_ms=0",
]


def _played(name, tasks, compiled, *more):
    """(input in bytes, deadline in ms) of tasks that have the nodes for themselves."""
    scenario = load("paper", [*_WAYS, *more])
    size, deadline = np.array(tasks, float).T
    count = len(tasks)
    columns = Tasks(
        time_ms=64.0 * np.arange(1, count + 1), en=np.zeros(count, np.int64),
        ue=np.zeros(count, np.int64), input_bytes=size, cycles=np.full(count, 10_240.0),
        deadline_ms=deadline,
    )  # fmt: skip
    [found] = play(scenario, method(name), [from_tasks(scenario, columns, 0, 0)], compiled=compiled)
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "name",
    ["never", "aov-gap", "self-tracking", "full-information", "power-of-d", "power-of-d:numbers=4"],
)
def test_what_is_done_at_the_very_deadline_is_in_time(name, compiled):
    tasks = [(1024, 10.0), (1024, 9.5), (8192, 18.0), (8192, 17.5)]
    found = _played(name, tasks, compiled)
    assert found.action.tolist() == [1, 2, 0, 2]
    assert found.finished_ms[[0, 2]].tolist() == [64.0 + 10.0, 192.0 + 18.0]
    # Reservations are of 50 000 bytes: that is enough for one, a byte less for none.
    for storage, action in ((50_000, 1), (49_999, 2)):
        found = _played(name, tasks[:1], compiled, f"sn.storage_bytes={storage}")
        assert found.action.tolist() == [action]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("name", "more", "updates"),
    [
        # One of four slots is taken: the state has moved by a quarter of its scale.
        ("aov-gap:threshold=0.25", "sn.slots=4", 0),
        ("aov-gap:threshold=0.249", "sn.slots=4", 2),
        # At the SN when that looks, with 5 ms of work for its only slot, of which 1 is done later.
        ("power-of-d:threshold_ms=5,keep=1", "sn.slots=1", 0),
        ("power-of-d:threshold_ms=4.5,keep=1", "sn.slots=1", 1),
    ],
)
def test_an_update_is_sent_when_the_state_has_moved_by_more(name, more, updates, compiled):
    found = _played(name, [(1024, 10.0)], compiled, more)
    assert found.action.tolist() == [1]
    assert found.updates == updates
