"""Small parts of live nodes, with numbers that can be checked on paper."""

import math
from dataclasses import replace

import numpy as np
import pytest
from virtual_parts import FadingLink

from cosmo import InputError, load
from cosmo.live import wire
from cosmo.live.cell import arrivals_at_ens
from cosmo.live.limits import Buckets, fault_of
from cosmo.live.link import Link
from cosmo.live.recent_outcomes import RecentOutcomes
from cosmo.live.samples import EmulationLead, PathOverhead, Window
from cosmo.live.smoothed import Estimates, Throughput
from cosmo.live.top import Sample, line_of
from cosmo.live.worker import function_of
from cosmo.node import Links
from cosmo.workload import Tasks, episode


def _links(up_mbps=8.0, hops=3, hop_delay_ms=2.0):
    """8 Mbps are 1000 bytes/ms."""
    each = np.full((1, 1), 1.0)
    return Links(
        reach=np.zeros((1, 1), np.int64), up_mbps=up_mbps * each, down_mbps=2 * up_mbps * each,
        hops=np.full((1, 1), hops), hop_delay_ms=hop_delay_ms * each, packet_bytes=1500,
        result_bytes=1000,
    )  # fmt: skip


def test_a_link_sends_one_message_after_another():
    link = Link(_links(), 0, 0, up=True)
    assert link.backlog_ms(10.0) == 0.0
    # 5 ms on the link, 3 hops of 2 ms, two packets of 1500 bytes stored and forwarded (R13).
    assert link.send(5000.0, 10.0) == 10.0 + 5.0 + 6.0 + 2 * 1.5
    assert link.backlog_ms(12.0) == 3.0
    assert link.send(500.0, 12.0) == 15.0 + 0.5 + 6.0 + 2 * 0.5
    assert link.idle_arrival(500.0, 12.0) == 12.0 + 0.5 + 6.0 + 2 * 0.5
    assert link.hops_ms(500.0) == 6.0 + 2 * 0.5
    assert link.hops_ms(5000.0) == 6.0 + 2 * 1.5
    assert link.backlog_ms(15.25) == 0.25
    link.forget()
    assert link.backlog_ms(0.0) == 0.0


def test_down_is_the_other_rate_and_a_carried_link_adds_its_hops_alone():
    assert Link(_links(), 0, 0, up=False).send(4000.0, 0.0) == 2.0 + 6.0 + 2 * 0.75
    carried = Link(_links(), 0, 0, up=True, carried=True)
    assert [carried.send(3000.0, 7.0) for _ in range(2)] == [7.0 + 6.0 + 2 * 1.5] * 2


def test_the_history_of_a_rate_that_changes():
    def factor(time):
        return 0.5 if time < 100.0 else 1.0

    link = FadingLink(_links(), 0, 0, True, factor, period_ms=100.0, history_ms=200.0)
    # 60 ms at 4 Mbps, 140 ms at 8.
    mean = (60 * 4.0 + 140 * 8.0) / 200
    deviation = math.sqrt((60 * 16.0 + 140 * 64.0) / 200 - mean**2)
    assert link.statistics(240.0) == pytest.approx((mean, deviation, 8.0 - mean))
    assert link.statistics(50.0) == (4.0, 0.0, 0.0)
    assert link.send(2000.0, 90.0) == 90.0 + 4.0 + 6.0 + 2 * 3.0  # at the rate of its start
    assert Link(_links(), 0, 0, up=True).statistics(50.0) == (8.0, 0.0, 0.0)
    usual = FadingLink(_links(), 0, 0, True, factor, period_ms=100.0)  # half a second (R19)
    assert usual.statistics(600.0) == (8.0, 0.0, 0.0)
    assert usual.statistics(599.0)[1] > 0.0


def test_a_history_that_begins_where_a_step_is_rounded_to_nothing():
    start, period_ms = 8879.4, 0.1
    assert (math.floor(start / period_ms) + 1) * period_ms == start  # no step further
    link = FadingLink(_links(), 0, 0, True, lambda _: 0.5, period_ms, history_ms=0.0625)
    assert start + 0.0625 - 0.0625 == start
    assert link.statistics(start + 0.0625) == (4.0, 0.0, 0.0)


def test_cycles_of_a_kind_are_smoothed_and_strangers_do_not_fill_the_memory():
    known = Estimates(700.0)
    assert known.of("a") == 700.0
    known.learn("a", 0.0)
    assert known.of("a") == 700.0
    known.learn("a", 0.5)
    known.learn("a", 100.5)
    assert known.of("a") == pytest.approx(0.5 + 0.1 * 100.0)
    for number in range(1000):
        known.learn(f"kind {number}", 5.0)
    assert [known.of(f"kind {number}") for number in (0, 999)] == [5.0, 5.0]
    assert known.of("a") == 700.0  # learned of longest ago
    known.learn("kind 0", 5.0)
    known.learn("a", 10.5)
    assert [known.of(kind) for kind in ("a", "kind 0", "kind 1")] == [10.5, 5.0, 700.0]
    assert len(known._known) == 1000


def test_a_window_forgets_samples_but_counts_them():
    window = Window(3)
    assert math.isnan(window.quantile(0.5))
    for sample in (9.0, 1.0, 2.0, 5.0):
        window.add(sample)
    assert (window.count, window.total, window.most) == (4, 17.0, 9.0)
    assert [window.quantile(share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 5.0]


def test_the_overhead_is_its_p99_worked_out_now_and_then_and_never_above_its_most():
    overhead = PathOverhead(4.0)
    assert overhead.guard_ms() == 0.0
    overhead.add(-3.0)
    assert overhead.guard_ms() == 0.0
    overhead.add(1.0)
    assert overhead.guard_ms() == pytest.approx(0.99)
    for _ in range(5):
        overhead.add(1.0)
    before = overhead.guard_ms()
    for _ in range(24):  # the 8th to the 31st change nothing
        overhead.add(3.0)
        assert overhead.guard_ms() == before
    overhead.add(3.0)
    assert overhead.guard_ms() == overhead.window.quantile(0.99) == 3.0
    for _ in range(512):
        overhead.add(50.0)
    assert overhead.guard_ms() == 4.0
    assert overhead.window.quantile(0.0) == 50.0


def test_a_lead_is_corrected_by_a_twentieth_and_never_negative():
    lead = EmulationLead()
    lead.correct(40.0)
    lead.correct(-10.0)
    assert lead.ms == 1.5
    lead.correct(-31.0)
    assert lead.ms == 0.0


def test_what_an_sn_knows_of_the_tasks_that_ended_lately():
    recent = RecentOutcomes(500.0)
    assert recent.numbers(0.0) == (0.0, 0.0, 0.0)
    recent.note(100.0, 30.0, True)
    recent.note(200.0, 50.0, False)
    recent.note(300.0, None, False)
    recent.note(400.0, 10.0, True)
    assert recent.numbers(600.0) == (30.0, 0.5, 0.5)
    assert recent.numbers(600.5) == (30.0, 1 / 3, 1 - 1 / 3)
    assert recent.numbers(800.5) == (10.0, 1.0, 0.0)
    assert recent.numbers(900.5) == (0.0, 0.0, 0.0)


def test_throughput_is_smoothed_for_each_ue_and_the_oldest_are_forgotten():
    found = Throughput(0.25, 54.0)
    assert found.sample(1, 5000.0, 5.0) == (8.0, 0.0)
    assert found.sample(2, 5000.0, 0.0) == (54.0, 0.0)
    assert found.sample(1, 5000.0, 2.5) == (10.0, 2.0)
    for ue in range(3, 3 + 4095):  # 4096 are remembered: UE 2 goes
        found.sample(ue, 5000.0, 5.0)
    assert found.sample(2, 5000.0, 5.0) == (8.0, 0.0)
    assert found.sample(4, 5000.0, 2.5) == (10.0, 2.0)


def test_a_bucket_fills_up_to_its_burst():
    now = [0.0]
    buckets = Buckets(2.0, 3, lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [True] * 3 + [False]
    now[0] = 0.5  # one more
    assert [buckets.take("a"), buckets.take("a"), buckets.take("b")] == [True, False, True]
    now[0] = 60.0
    assert [buckets.take("a") for _ in range(4)] == [True] * 3 + [False]
    for number in range(1023):
        buckets.take(str(number))
    assert not buckets.take("a")  # remembered among 1024
    for number in range(1024):
        buckets.take(f"other {number}")
    assert buckets.take("a")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({}, ""),
        ({"cycles": -1.0}, "cycles = -1.0: must be a number from 0 to 1e+15"),
        ({"cycles": math.inf}, "cycles = inf: must be a number from 0 to 1e+15"),
        ({"cycles": math.nan}, "cycles = nan: must be a number from 0 to 1e+15"),
        ({"cycles": 1e15}, ""),
        ({"cycles": 1e308}, "cycles = 1e+308: must be a number from 0 to 1e+15"),
        ({"residual_us": 10**18}, ""),
        ({"residual_us": 2**64 - 1}, f"residual_us = {2**64 - 1}: must be at most {10**18}"),
        ({"cycles": 0.0}, "cycles = 0: must be greater than 0"),
        ({"deadline_us": 0}, f"deadline_us = 0: must be from 1 to {10**12}"),
        ({"deadline_us": 10**12}, ""),
        ({"deadline_us": 10**12 + 1}, f"deadline_us = {10**12 + 1}: must be from 1 to {10**12}"),
        ({"elapsed_us": 10**12}, ""),
        ({"elapsed_us": 10**12 + 1}, f"elapsed_us = {10**12 + 1}: must be at most {10**12}"),
        ({"kind": "k" * 100}, ""),
        ({"kind": "k" * 101}, "kind: 101 characters, must be at most 100"),
        ({"kind": "a\n"}, "kind = 'a\\n': must be printable"),
        ({"input": b"12345"}, ""),
        ({"input": b"123456"}, "input: 6 bytes, must be at most 5"),
    ],
)
def test_what_a_task_of_the_wire_must_look_like(wrong, said):
    right = {"cycles": 1.0, "deadline_us": 1, "kind": "k"}
    assert fault_of(wire.Task(**right | wrong), 5, True) == said


def test_cycles_may_be_missing_where_they_are_estimated():
    assert fault_of(wire.Task(deadline_us=1), 5, False) == ""
    assert fault_of(None, 5, False) == "the message is not a Task"


def test_a_line_of_top():
    def samples(tasks, done, late=()):
        return [
            Sample("cosmo_method_info", {"node": "en0", "method": "prequal"}, 1.0),
            Sample("cosmo_tasks_total", {"node": "en0", "fate": "DONE"}, done),
            Sample("cosmo_tasks_total", {"node": "en0", "fate": "LATE"}, tasks - done),
            Sample("cosmo_tasks_in_node", {}, 3.0),
            Sample("cosmo_sn_silent", {"sn": "0"}, 1.0),
            Sample("cosmo_sn_silent", {"sn": "1"}, 1.0),
            Sample("cosmo_guard_seconds", {}, 0.000256),
            *(Sample("cosmo_timer_late_seconds_bucket", {"le": le}, count) for le, count in late),
        ]

    early = [("0.001", 7.0), ("0.002", 7.0), ("+Inf", 7.0)]
    late = [("0.001", 7.0), ("0.002", 207.0), ("+Inf", 207.0)]
    found = line_of("here:1", samples(30.0, 25.0, late), samples(10.0, 10.0, early), 4.0)
    assert found == ("en0", "prequal", "5.0", "0.750", "3", "2", "0.26", "1.99")
    idle = line_of("here:1", samples(10.0, 10.0), samples(10.0, 10.0), 4.0)
    assert (*idle[2:4], idle[-1]) == ("0.0", "–", "–")
    assert line_of("here:1", [], [], 4.0) == ("here:1", "absent", *["–"] * 6)


def _reached(scenario, times, size=128_600 / 8):
    """Tasks that take 1 ms on a channel of 128.6 Mbps."""
    count = len(times)
    tasks = Tasks(
        time_ms=np.array(times, float), en=np.zeros(count, np.int64),
        ue=np.zeros(count, np.int64), input_bytes=np.full(count, size),
        cycles=np.full(count, 1e5), deadline_ms=np.full(count, 100.0),
    )  # fmt: skip
    return arrivals_at_ens(scenario, replace(episode(scenario, 0, 0), tasks=tasks))


def test_tasks_wait_for_the_channel_and_contend_if_they_do():
    scenario = load("paper", ["access.overhead_ms=0.25", "access.contention_ms=0.5"])
    found = _reached(scenario, [10.0, 10.5, 20.0])
    assert found.time_ms.tolist() == pytest.approx([11.25, 13.0, 21.25])
    assert found.order.tolist() == [0, 1, 2]


def test_a_ue_that_comes_into_range_later_asks_again_if_its_last_chance_is_not_over():
    ways = ["mobility.radius_m=5", "mobility.speed_m_per_s=1", "mobility.distances_m=[9, 1, 1, 1]"]
    ways += ["access.overhead_ms=0", "access.contention_ms=0.5", "mobility.residual_cap_ms=6000"]
    scenario = load("paper", [*ways, "episode.undecided_after_ms=500"])
    # In range from 4 s to 14 s. The last chance of the first is over before; the second asks at
    # 4 s, which is too late by then, but it takes the channel for 1 ms.
    found = _reached(scenario, [3390.0, 3400.0, 3990.0, 13_990.0, 14_001.0])
    never = math.nan
    np.testing.assert_allclose(found.time_ms, [never, never, 4002.5, 13_991.0, never])
    assert found.order.tolist() == [2, 3]
    np.testing.assert_allclose(found.residual_ms, [0.0, 0.0, 6000.0, 9.0, 0.0])


def test_the_residual_time_of_a_ue_that_turns_is_until_the_next_edge():
    ways = ["mobility.radius_m=5", "mobility.speed_m_per_s=1", "mobility.distances_m=[2, 1, 1, 1]"]
    ways += ["access.overhead_ms=0", "mobility.at_edge=turn", "mobility.residual_cap_ms=20000"]
    # At an edge after 7 s, and then every 10 s.
    found = _reached(load("paper", ways), [5999.0, 6999.0, 7999.0, 17_000.0])
    assert found.residual_ms.tolist() == pytest.approx([1000.0, 0.0, 9000.0, 9999.0], abs=1e-6)


def test_a_handler_that_cannot_be_imported_is_told_in_one_line(tmp_path, monkeypatch):
    (tmp_path / "raises.py").write_text("raise ValueError('first\\nsecond')")
    monkeypatch.syspath_prepend(tmp_path)
    for target, why in (
        ("nowhere:f", "cannot be imported (ModuleNotFoundError: No module named 'nowhere')"),
        ("raises:f", "cannot be imported (ValueError: first)"),
        ("math:pi", "is not a function"),
    ):
        with pytest.raises(InputError) as raised:
            function_of(target)
        assert str(raised.value) == f"handler.target = {target!r}: {why}"
    assert function_of("math:sqrt") is math.sqrt
