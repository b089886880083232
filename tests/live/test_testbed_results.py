"""The engine `live` without daemons: outcomes, networks and the load generator, by hand."""

import asyncio
from types import SimpleNamespace

import grpc
import numpy as np
import pytest

from cosmo import load
from cosmo.errors import EngineError
from cosmo.live import load as generator
from cosmo.live.cell import Arrivals
from cosmo.live.load import Load, Replayed, replayed
from cosmo.live.tasks import Fate
from cosmo.live.testbed import play as bed
from cosmo.live.testbed.generator import read_replayed, write_replayed
from cosmo.workload import BackgroundTasks, NodeEvents, Tasks
from cosmo.workload.table import FAILS, RETURNS, SPEED
from cosmo.world.records import FP, TP, UNDECIDED, UNJUDGED

# Outcomes.


def _told(fate, where, **fields):
    count = len(fate)
    return Replayed(np.array(fate, np.int8), where, np.full(count, 20.0), **fields)


def test_what_became_of_tasks_is_told_in_the_simulator_s_terms():
    reach = ["sn.count=3", "en.count=2", "backhaul.reach=[[0, 2], [1]]"]
    scenario = load("campus", [*reach, "engine=live", "live.slower=2"])
    fate = [Fate.DONE, Fate.LATE, Fate.REFUSED, Fate.REJECTED, Fate.EXPIRED, Fate.EXPIRED, 0]
    where = ["sn2", "local", "sn1", "", "sn0", "", ""]
    one = np.ones(7)
    zero = np.zeros(7, np.int64)
    en = np.array([0, 0, 1, 1, 0, 1, 0])
    tasks = Tasks(10.0 * one, en, zero, one, one, one)
    reached = Arrivals(13.0 * one, one, np.arange(7))
    told = _told(fate, where, late_p99_ms=3.0, late_most_ms=4.0)
    facts = [
        {"timer_p99_ms": 5.0, "timer_most_ms": 8.0, "decision_p99_ms": 0.5, "faults": 1.0},
        {"timer_p99_ms": 2.0, "timer_most_ms": 9.0, "updates": 4.0, "update_decisions": 6.0},
        {"timer_p99_ms": 2.0, "timer_most_ms": 1.0, "updates": 5.0, "update_decisions": 7.0},
    ]
    machine = bed._machine(2.0, told, facts)
    assert machine == {
        "timer_late_ms_p99": 2.5, "timer_late_ms_max": 4.5, "decision_ms_p99": 0.5, "fallbacks": 1.0
    }  # fmt: skip
    found = bed.outcome_of(scenario, SimpleNamespace(tasks=tasks), reached, told, facts, machine)
    assert found.action.tolist() == [2, 0, 1, 3, 1, -1, -1]
    assert found.outcome.tolist() == [TP, FP, FP, UNJUDGED, FP, UNDECIDED, UNDECIDED]
    assert found.refused.tolist() == [False, False, True, False, False, False, False]
    assert found.decided_ms[:5].tolist() == [13.0] * 5
    assert np.isnan(found.decided_ms[5:]).all()
    assert found.finished_ms.tolist() == [30.0] * 7
    assert (found.updates, found.update_decisions, found.judged) == (9, 13, False)
    assert found.machine == machine


def test_a_measurement_that_cannot_be_trusted_is_none():
    scenario = load("paper", ["engine=live", "live.most_late_ms=2.5"])
    told = _told([1], ["local"])
    bed._check_trust(scenario, 7, told, {"timer_late_ms_p99": 2.5})
    with pytest.raises(EngineError, match=r"run 7: timers were late by 2\.51 ms \(p99\), more"):
        bed._check_trust(scenario, 7, told, {"timer_late_ms_p99": 2.51})
    told.errors = {"UNAVAILABLE": 2, "INTERNAL": 1}
    with pytest.raises(EngineError, match=r"calls failed \(2 UNAVAILABLE, 1 INTERNAL\)"):
        bed._check_trust(scenario, 7, told, {"timer_late_ms_p99": 0.0})


# Grounds.


def test_daemons_of_a_bed_keep_to_the_simulator_s_rules():
    scenario = load("campus", ["engine=live", "live.slower=2"])
    for slow_links in (False, True):
        ens, sns = bed.daemons_of(scenario, "periodic", 7, SimpleNamespace(slow_links=slow_links))
        for each in (*ens, *sns):
            assert (each.scale, each.method.use, each.method.seed) == (2.0, "periodic", 7)
            assert (each.links.emulate, each.links.emulate_rate) == (True, not slow_links)
            rules = each.behaviour
            assert (rules.late, rules.refresh_ms, rules.most_updates_per_s) == ("finish", 0, 1000)
            assert (rules.lost, each.handler.kind) == ("rerun", "testbed")
            assert rules.updates_per_task == rules.update_burst == 1e6
            assert each.limits.calls == 4096


def test_where_sns_fail_ens_wait_for_deadlines():
    scenario = load("campus", ["engine=live", "sn.outage={up_ms=50, down_ms=50}"])
    ens, _ = bed.daemons_of(scenario, "periodic", 7, SimpleNamespace(slow_links=False), True)
    assert {each.behaviour.lost for each in ens} == {"expire"}


def test_updates_of_killed_sns_are_counted_by_ens():
    assert bed._updates([{"statuses": 8.0}, {"statuses": 3.0}, {"updates": 7.0}, {}]) == 11.0
    assert bed._updates([{"statuses": 2.0}, {"updates": 3.0}]) == 3.0


def test_speeds_and_tenants_of_an_episode_are_played_in_order_of_time():
    hidden = ["workload.demand.declared=false", "workload.cycles=[2e5, 4e5]"]
    scenario = load("campus", ["engine=live", *hidden])
    events = NodeEvents(
        np.array([0.0, 5.0, 9.0, 20.0]), np.array([0, 4, 3, 4]),
        np.array([SPEED, FAILS, SPEED, RETURNS]), np.array([0.5, np.nan, 2.0, np.nan]),
    )  # fmt: skip
    tenants = BackgroundTasks(
        np.array([3.0, 12.0]), np.array([1, 0]), np.array([70.0, 80.0]), np.array([1e5, 2e5])
    )
    found = bed.changes_of(scenario, SimpleNamespace(events=events, background=tenants))
    assert found.time_ms.tolist() == [0.0, 3.0, 9.0, 12.0]
    assert found.node.tolist() == [0, 4, 3, 3]  # three ENs, then SNs
    assert found.factor.tolist() == [0.5, 0.0, 2.0, 0.0]
    assert found.input_bytes.tolist() == [0.0, 70.0, 0.0, 80.0]
    assert found.cycles.tolist() == [0.0, 3e5, 0.0, 3e5]  # what nodes see: the mean
    assert found.true_cycles.tolist() == [0.0, 1e5, 0.0, 2e5]


# The generator of tasks.


class _Host:
    """Rings every timer in the event loop's next turn, at its very time."""

    def __init__(self, loop, scale):
        self._loop, self._now, self.due, self.sent = loop, 0.0, [], []
        self.lateness_ms = SimpleNamespace(quantile=lambda share: share, most=7.0)
        _Host.last = self

    def now(self):
        return self._now

    def at(self, time_ms, kind, call):
        self.due.append(time_ms)
        self._now = time_ms
        self._loop.call_soon(call)

    def close(self):
        pass


class _Client:
    """Keeps what it is given; one EN does not answer."""

    one_way_ms = 0.004

    def __init__(self, address, scale):
        self._address = address

    async def submit(self, content, **told):
        _Host.last.sent.append((self._address, len(content), told))
        if self._address == "b":
            code = grpc.StatusCode.UNAVAILABLE
            raise grpc.aio.AioRpcError(code, None, None)
        return SimpleNamespace(fate=Fate.DONE, where="local", delay_ms=3.5)

    async def close(self):
        pass


def test_tasks_are_sent_when_they_reach_their_en_in_that_order(monkeypatch):
    monkeypatch.setattr(generator, "RealClock", _Host)
    monkeypatch.setattr(generator, "AsyncClient", _Client)
    four = np.array([1.0, 2.0, 3.0, 4.0])
    tasks = Load(
        time_ms=10.0 * four, reached_ms=np.array([31.0, 25.0, np.nan, 45.0]), residual_ms=four,
        en=np.array([0, 0, 0, 1]), input_bytes=100.0 * four, cycles=1000.0 * four,
        deadline_ms=50.0 + four,
    )  # fmt: skip
    found = asyncio.run(replayed(tasks, ["a", "b"], 1e-3))
    # 50 ms before the first, less 4 ms of the nodes' time on the way.
    assert _Host.last.due == pytest.approx([25.0 + 46.0, 31.0 + 46.0, 45.0 + 46.0])
    sent = _Host.last.sent
    assert [(where, size) for where, size, _ in sent] == [("a", 200), ("a", 100), ("b", 400)]
    told = sent[0][2]
    assert (told["deadline_ms"], told["cycles"], told["residual_ms"]) == (52.0, 2000.0, 2.0)
    # By the time of the second timer, which is set as the first rings.
    assert told["elapsed_ms"] == pytest.approx(31.0 + 46.0 - 50.0 - 20.0)
    assert found.fate.tolist() == [1, 1, 0, 0]
    assert found.where == ["local", "local", "", ""]
    np.testing.assert_array_equal(found.delay_ms, [3.5, 3.5, np.nan, np.nan])
    assert (found.errors, found.late_p99_ms, found.late_most_ms) == ({"UNAVAILABLE": 1}, 0.99, 7.0)


def test_what_the_generator_has_found_is_read_as_it_was_written(tmp_path):
    found = Replayed(
        np.array([1, 0], np.int8), ["sn0", ""], np.array([1.5, np.nan]), {"INTERNAL": 3}, 0.25, 0.5
    )
    write_replayed(found, tmp_path / "out.npz")
    back = read_replayed(tmp_path / "out.npz")
    assert (back.fate.tolist(), back.where, back.errors) == ([1, 0], ["sn0", ""], {"INTERNAL": 3})
    assert (back.late_p99_ms, back.late_most_ms) == (0.25, 0.5)
    np.testing.assert_array_equal(back.delay_ms, found.delay_ms)
