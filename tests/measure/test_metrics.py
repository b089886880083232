"""Metrics on outcomes small enough to count by hand, and against the plain reference."""

import math
from dataclasses import replace

import numpy as np
import pytest

from columns import TASK_COLUMNS
from cosmo import load, method, play
from cosmo.measure import (
    METRICS,
    OUTCOME_NAMES,
    delays_ms,
    episode_metrics,
    fluid_bound,
    interval,
    interval_text,
    mean_bound,
    rejection_quota,
    task_table,
    task_utility,
)
from cosmo.workload import Tasks, episode, from_tasks
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED, UNJUDGED
from reference.world import utility


def _outcome(scenario, rows, updates=0):
    """Rows: (generated, action, outcome, finished, feasible mask, refused)."""
    count = len(rows)
    time, action, label, finished, feasible, refused = zip(*rows, strict=True)
    tasks = Tasks(
        np.array(time, float), np.zeros(count, np.int64), np.zeros(count, np.int64),
        np.full(count, 30000.0), np.full(count, 650000.0), np.full(count, 60.0),
    )  # fmt: skip
    return Outcome(
        episode=from_tasks(scenario, tasks, 0, 0),
        action=np.array(action, np.int16),
        outcome=np.array(label, np.int8),
        decided_ms=np.array(time, float) + 2.0,
        finished_ms=np.array(finished, float),
        any_feasible=np.array(feasible) != 0,
        took_feasible=np.array(
            [a >= 0 and bool(f >> a & 1) for a, f in zip(action, feasible, strict=True)]
        ),
        refused=np.array(refused, bool),
        updates=updates,
        update_decisions=updates + 3,
    )


ROWS = [
    (100.0, 0, FP, 900.0, 3, False),  # warm-up: not measured
    (2000.0, 0, TP, 2040.0, 1, False),  # local, the only feasible route
    (2010.0, 1, TP, 2060.0, 1, False),  # on time after all, though not held feasible
    (2020.0, 1, FP, 2100.0, 3, False),
    (2030.0, 0, FP, 2032.0, 2, True),  # refused
    (2040.0, 2, TN, 2042.0, 0, False),
    (2050.0, 2, FN, 2052.0, 1, False),
    (2060.0, -1, UNDECIDED, 7120.0, 0, False),
]


def test_every_metric_by_hand():
    scenario = load("paper")
    got = episode_metrics(scenario, _outcome(scenario, ROWS, updates=7), dimensions=2)
    assert set(got) == set(METRICS)
    assert got["success_rate"] == pytest.approx(2 / 7)
    assert got["decision_accuracy"] == pytest.approx(3 / 6)  # no overload, no quota
    assert got["fp_rate"] == pytest.approx(2 / 6)
    assert got["fn_rate"] == pytest.approx(1 / 6)
    assert got["reject_rate"] == pytest.approx(2 / 6)
    assert got["accepted_success_rate"] == pytest.approx(2 / 4)
    assert got["route_accuracy"] == pytest.approx(2 / 4)  # of tasks 1 to 4: task 1 and task 3
    assert got["episode_update_cost"] == pytest.approx(7 * 2 * 0.5)
    assert got["update_decisions"] == 10
    assert got["status_rate"] == pytest.approx(7 / 10.0)
    assert got["update_cost_rate"] == pytest.approx(7.0 / 10.0)  # a trace: its window of 10 s
    assert got["delay_ms_mean"] == pytest.approx((40 + 50 + 80) / 3)  # the refused one never ran
    assert got["delay_ms_p50"] == pytest.approx(50.0)
    assert got["delay_ms_p95"] == pytest.approx(50.0 + 0.9 * 30.0)
    assert got["delay_ms_p99"] == pytest.approx(50.0 + 0.98 * 30.0)
    gained = [
        96 - 0.2 * 0.15 * 40,
        96 - 0.2 * (0.15 * 50 + 3.0),
        -400 - 0.2 * (0.15 * 80 + 3.0),
        -400 - 0.2 * 0.15 * 2,
        80.0,
        -120.0,
        0.0,
    ]
    assert got["utility_per_task"] == pytest.approx(sum(gained) / 7)
    # R32: of all tasks, as its updates are; λ_s is 4 a unit, of which there are 7.
    warm_up = -400 - 0.2 * 0.15 * 800
    assert got["net_utility_per_task"] == pytest.approx((warm_up + sum(gained) - 4.0 * 7.0) / 8)


def test_without_truth_rejections_are_counted_and_not_judged():
    scenario = load("paper")
    rows = [(*row[:2], UNJUDGED if row[2] in (TN, FN) else row[2], *row[3:]) for row in ROWS]
    outcome = replace(
        _outcome(scenario, rows, updates=7), judged=False, machine={"timer_late_ms_p99": 0.25}
    )
    got = episode_metrics(scenario, outcome, dimensions=2)
    known = episode_metrics(scenario, _outcome(scenario, ROWS, updates=7), dimensions=2)
    unknown = {"decision_accuracy", "fn_rate", "route_accuracy", "utility_per_task"}
    unknown |= {"net_utility_per_task"}
    assert {name for name in METRICS if math.isnan(got[name]) > math.isnan(known[name])} == unknown
    for name in ("success_rate", "reject_rate", "fp_rate", "delay_ms_mean", "update_cost_rate"):
        assert got[name] == known[name]
    assert got["timer_late_ms_p99"] == 0.25


def test_quota_turns_needless_rejections_into_justified_ones_but_only_so_many():
    # 8 s of 144000 cycles/ms; 1.25 times that demand in tasks of 650000 cycles.
    scenario = load("paper")
    capacity = 144000.0 * 8000.0
    assert rejection_quota(scenario, capacity * 1.25, 2000, 8000.0) == math.ceil(
        0.25 * capacity / (capacity * 1.25 / 2000)
    )
    assert rejection_quota(scenario, capacity, 2000, 8000.0) == 0
    assert rejection_quota(scenario, capacity * 0.5, 2000, 8000.0) == 0
    assert rejection_quota(scenario, 0.0, 0, 8000.0) == 0

    # The same in a whole episode: all tasks rejected though feasible, in overload.
    count = 2400
    rows = [(2000.0 + 3.0 * k, 2, FN, 2002.0 + 3.0 * k, 1, False) for k in range(count)]
    got = episode_metrics(scenario, _outcome(scenario, rows), 0)
    quota = math.ceil((650000.0 * count - capacity) / 650000.0)
    assert 0 < quota < count
    assert got["decision_accuracy"] == pytest.approx(quota / count)
    assert got["fn_rate"] == pytest.approx((count - quota) / count)


def test_nothing_to_measure_is_not_a_number():
    scenario = load("paper")
    got = episode_metrics(scenario, _outcome(scenario, ROWS[:1]), 2)
    assert math.isnan(got["success_rate"])
    assert math.isnan(got["accepted_success_rate"])
    assert got["episode_update_cost"] == 0.0


def test_an_unfinished_episode_is_refused():
    scenario = load("paper")
    rows = [*ROWS[:2], (2500.0, -1, 0, math.nan, 0, False)]
    with pytest.raises(ValueError, match="not over"):
        episode_metrics(scenario, _outcome(scenario, rows), 2)


def test_utility_of_played_tasks_is_the_reference_s():
    scenario = load("paper", ["workload.rate=320"])
    [outcome] = play(scenario, method("random"), [episode(scenario, 1, 0)])
    got = task_utility(scenario, outcome)
    delay = delays_ms(outcome)
    for k in range(len(got)):
        label = OUTCOME_NAMES[int(outcome.outcome[k])]
        took = None if np.isnan(delay[k]) else float(delay[k])
        size = float(outcome.tasks.input_bytes[k])
        want = utility(label, took, size, bool(outcome.action[k] == 1))
        assert got[k] == pytest.approx(want)


def test_bounds():
    scenario = load("paper", ["workload.rate=320"])
    assert mean_bound(scenario) == pytest.approx(221.538 / 320, abs=1e-4)
    assert fluid_bound(scenario) == pytest.approx(0.818, abs=5e-4)
    light = load("paper", ["workload.rate=120"])
    assert mean_bound(light) == fluid_bound(light) == 1.0
    equal = load("paper", ["workload.rate=320", "workload.cycles=[650000, 650000]"])
    assert fluid_bound(equal) == pytest.approx(mean_bound(equal))
    # Three cells at a third of the load on the same nodes would be the same; campus has more nodes.
    campus = load("campus", ["workload.rate=240"])
    assert mean_bound(campus) == pytest.approx((3 * 36000 + 2 * 108000) / (0.72 * 650000))


def test_where_nothing_was_sent_no_bytes_were():
    found = _outcome(load("paper"), ROWS)
    assert (found.rides, found.status_bytes, found.status) == (0, 0.0, None)


def test_no_bound_exceeds_one_where_all_tasks_are_alike():
    for rate, share in ((10, 1.0), (443.077, 0.5)):
        alike = load("paper", ["workload.cycles=[650000, 650000]", f"workload.rate={rate}"])
        assert fluid_bound(alike) == pytest.approx(share, abs=1e-6)
        assert mean_bound(alike) == pytest.approx(share, abs=1e-6)


def test_bounds_leave_out_what_the_background_takes():
    shared = load("shared-sn", ["workload.rate=200"])
    left = 144000.0 - 0.080 * 650000.0  # 80 background tasks a second on average
    assert mean_bound(shared) == pytest.approx(left / (0.2 * 650000.0))
    swamped = load("shared-sn", ["background.rates=[500, 500]"])
    assert mean_bound(swamped) == fluid_bound(swamped) == 0.0


def test_fluid_bound_is_what_filling_with_the_smallest_demands_gives():
    scenario = load("paper", ["workload.rate=280"])
    cycles = np.sort(np.random.default_rng(0).uniform(1e5, 1.2e6, 200_000))
    budget = 144000.0 / 0.28 * len(cycles)
    served = np.searchsorted(np.cumsum(cycles), budget) / len(cycles)
    assert fluid_bound(scenario) == pytest.approx(served, abs=2e-3)


def test_a_spread_of_demands_leaves_more_small_tasks_to_serve():
    """Capacity for half of the cycles, all declared demands alike, lognormal factors exp(z - 1/2).

    The tasks with z <= x need the share P(x - 1) of all cycles: half of them are used up at x = 1,
    and these are P(1) = 0.841 of the tasks.
    """
    alike = ["workload.cycles=[650000, 650000]", "workload.rate=443.077"]
    spread = load("paper", [*alike, "workload.demand.spread=1.0"])
    assert fluid_bound(spread) == pytest.approx(0.841, abs=2e-3)
    narrow = load("paper", [*alike, "workload.demand.spread=0.01"])  # x = 0.01, P(x) = 0.504
    assert fluid_bound(narrow) == pytest.approx(0.504, abs=2e-3)
    assert mean_bound(spread) == pytest.approx(0.5, abs=1e-6)


def test_the_text_of_an_interval_says_what_so_many_runs_can():
    # Of 0.70 and 0.74, Student's t with one degree of freedom makes 12.706 times the half-range.
    two = interval([0.70, 0.74])
    assert interval_text(*two, 2, 2) == "0.70 … 0.74"
    three = interval([0.60, 0.62, 0.67])  # 4.303 · 0.036056 / √3
    assert interval_text(*three, 3, 3) == "0.630 ± 0.090"
    assert interval_text(0.7, math.nan, 1, 3) == interval_text(0.7, None, 3, 3) == "0.700"
    assert interval_text(None, None, 0, 3) == interval_text(math.nan, 0.1, 3, 3) == "–"


def test_intervals_are_student_t():
    mean, half = interval([0.60, 0.62, 0.67])
    assert mean == pytest.approx(0.63)
    assert half == pytest.approx(4.302653 * np.std([0.60, 0.62, 0.67], ddof=1) / math.sqrt(3))
    assert math.isnan(interval([0.5]).ci95)
    assert interval([math.nan, 0.5, 0.7]).mean == pytest.approx(0.6)
    assert math.isnan(interval([math.nan]).mean)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(4000):
        mean, half = interval(random.normal(3.0, 2.0, 5).tolist())
        hits += abs(mean - 3.0) <= half
    assert hits / 4000 == pytest.approx(0.95, abs=0.012)


def test_task_table_names_actions_and_outcomes():
    scenario = load("paper")
    table = task_table([_outcome(scenario, ROWS)], scenario)
    columns = [name for name in TASK_COLUMNS if "heard" not in name]  # not every engine has these
    assert table.columns == columns
    assert table["action"].to_list() == [
        "local", "local", "offload", "offload", "local", "reject", "reject", "none",
    ]  # fmt: skip
    assert table["outcome"].to_list() == ["FP", "TP", "TP", "FP", "FP", "TN", "FN", "none"]
    assert table["delay_ms"].to_list() == [800.0, 40.0, 50.0, 80.0, 2.0, None, None, None]
    two = task_table([_outcome(scenario, ROWS)] * 2, load("campus"))
    assert two.columns == [*columns, "en", "episode"]
    assert two["action"].to_list()[2] == "offload:1"
    assert two["action"].to_list()[5] == "offload:2"
    assert two["episode"].to_list() == [0] * 8 + [1] * 8
    pair = task_table([_outcome(scenario, ROWS)], load("campus", ["en.count=2"]))
    assert pair.columns == [*columns, "en"]
    far = load("campus", ["backhaul.reach=[[1], [0], [0]]"])  # its only SN is the second
    assert task_table([_outcome(scenario, ROWS)], far)["action"].to_list() == [
        "local", "local", "offload:2", "offload:2", "local", "reject", "reject", "none",
    ]  # fmt: skip
