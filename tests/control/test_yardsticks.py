"""The yardsticks: who overtakes whom (R15, R40)."""

import numpy as np
import pytest

from cosmo import Worlds, load, method, play
from cosmo.workload import Tasks, from_tasks
from cosmo.world.records import FP, TP

# Two ENs that cannot run a task in time, and an SN with one slot of 1000 cycles/ms. 50 000 bytes
# take 40 ms from EN 0 and 1 ms from EN 1; a task takes 30 ms.
SETTINGS = [
    "en.count=2", "en.cycles_per_ms=1", "sn.slots=1", "sn.cycles_per_ms=1000", "backhaul.hops=1",
    "backhaul.up_mbps=[[10.0], [400.0]]", "backhaul.hop_delay_ms=0", "access.rate_mbps=4e5",
    "access.overhead_ms=0", "episode.warmup_ms=0",
]  # fmt: skip


def _world(deadlines):
    scenario = load("paper", SETTINGS)
    tasks = Tasks(
        time_ms=np.array([0.0, 20.0]), en=np.array([0, 1]), ue=np.zeros(2, np.int64),
        input_bytes=np.full(2, 50_000.0), cycles=np.full(2, 30_000.0),
        deadline_ms=np.array(deadlines),
    )  # fmt: skip
    return scenario, from_tasks(scenario, tasks, 0, 0)


def test_a_task_that_would_overtake_counts_those_on_their_way_as_ahead():
    """The first arrives at 40 ms; the second could be there at 21 ms and done at 51."""
    scenario, world = _world([80.0, 200.0])
    batch = Worlds(scenario, [world])
    batch.advance()
    batch.answer(action=[1])
    batch.advance()
    assert batch.truth().delay_ms[0, 1] == pytest.approx(31.0, abs=0.2)
    assert batch.truth(behind_all=True).delay_ms[0, 1] == pytest.approx(80.0, abs=0.2)
    assert batch.truth(behind_all=True).place[0] == 1


def test_full_information_makes_others_late_and_shared_knowledge_does_not():
    """The first has 80 ms, of which it needs 70; the second would delay it by 11."""
    scenario, world = _world([80.0, 60.0])
    [greedy] = play(scenario, method("full-information"), [world])
    assert greedy.action.tolist() == [1, 1]
    assert greedy.outcome.tolist() == [FP, TP]
    [kind] = play(scenario, method("shared-knowledge"), [world])
    assert kind.action.tolist() == [1, 2]
    assert kind.outcome[0] == TP
