"""Intervals, paired differences, gains, t90: each against a computation by hand."""

import math

import numpy as np
import polars
import pytest
from small import small_plan

from cosmo.report.gains import gains_at_loads
from cosmo.report.tables import paired_table, paper_rows
from cosmo.study import load_plan, reported
from cosmo.study.statistics import (
    Difference,
    bounds,
    is_papers_world,
    paired,
    paired_over_loads,
    resampled_means,
    smoothed,
    stabilisation,
    summarise,
    t90,
    with_paper,
)


def _metrics(values):
    """{(method, rate): [[episodes of run 0], [of run 1], …]} as a table."""
    rows = [
        {
            "scenario": "paper", "arrivals": "poisson", "rate": float(rate), "method": method,
            "seed": seed, "episode": episode, "success_rate": value, "update_cost_rate": 1.0,
        }
        for (method, rate), runs in values.items()
        for seed, run in enumerate(runs)
        for episode, value in enumerate(run)
    ]  # fmt: skip
    return polars.DataFrame(rows)


def test_intervals_are_students_over_runs_not_over_episodes():
    table = summarise(_metrics({("cosmo", 320): [[0.5, 0.7], [0.6, 0.8], [0.7, 0.9]]}))
    row = table.filter(metric="success_rate").row(0, named=True)
    runs = np.array([0.6, 0.7, 0.8])
    assert row["mean"] == pytest.approx(0.7)
    assert row["std"] == pytest.approx(runs.std(ddof=1))
    assert row["ci95"] == pytest.approx(4.302652729749464 * runs.std(ddof=1) / math.sqrt(3))
    assert row["runs"] == 3


def test_one_run_has_no_interval():
    row = summarise(_metrics({("cosmo", 320): [[0.5, 0.7]]})).row(0, named=True)
    assert (row["mean"], row["ci95"], row["std"]) == (pytest.approx(0.6), None, None)


def test_paired_differences_use_equal_workloads():
    noise = np.random.default_rng(0).normal(0, 0.2, (3, 5))
    mine, theirs = 0.5 + noise, 0.45 + noise  # the workload is the noise: it cancels
    table = paired(_metrics({("a", 320): mine.tolist(), ("b", 320): theirs.tolist()}), "a", "b")
    row = table.row(0, named=True)
    assert row["difference"] == pytest.approx(0.05)
    assert row["low"] == pytest.approx(0.05)
    assert row["high"] == pytest.approx(0.05)
    assert row["pairs"] == 15


def test_the_bootstrap_covers_the_truth_about_as_often_as_it_says():
    random, hits = np.random.default_rng(1), 0
    for _ in range(200):
        mine, theirs = random.normal(0.1, 0.3, (4, 10)), random.normal(0.0, 0.3, (4, 10))
        table = paired(_metrics({("a", 1): mine.tolist(), ("b", 1): theirs.tolist()}), "a", "b")
        hits += table["low"][0] <= 0.1 <= table["high"][0]
    assert hits / 200 >= 0.9


def test_the_bootstrap_draws_runs_whatever_their_lengths():
    values = np.array([[0.0] + [1.0] * 9, [1.0] * 10])  # a run of one episode, and one of nine
    drawn = resampled_means(values, (1, 9))
    assert set(drawn[0].round(9)) == {0.0, 0.5, 1.0}  # two runs are drawn, each counts the same
    assert drawn[0].mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[1] == pytest.approx(1.0)
    assert (resampled_means(values, (1, 9)) == drawn).all()


def test_only_episodes_of_every_common_load_count():
    runs = [[0.5, 0.6, 0.7]] * 3
    values = {("a", 1): runs, ("b", 1): runs, ("a", 2): runs, ("b", 2): runs}
    extra = _metrics({("a", 1): [[1.0] * 9], ("b", 1): [[0.0] * 9]})  # episodes 3 to 8: one load
    metrics = polars.concat([_metrics(values), extra.filter(polars.col("episode") > 2)])
    assert paired_over_loads(metrics, "a", "b") == Difference(0.0, 0.0, 0.0)


def test_intervals_of_a_trace_are_wider_than_those_of_independent_runs():
    values = {("a", 1): [[0.5, 0.7, 0.4], [0.6, 0.9, 0.5]], ("b", 1): [[0.5, 0.6, 0.3]] * 2}
    plain = _metrics(values)
    trace = plain.with_columns(trace_windows=polars.lit(2.0))
    factor = math.sqrt(1 + (1 - (2 / 6) ** 2) * 6 / 2)  # six episodes, two of them as recorded
    half, wider = (summarise(each).filter(metric="success_rate")["ci95"] for each in (plain, trace))
    assert wider.to_list() == pytest.approx([factor * each for each in half])
    for difference in (lambda each: paired(each, "a", "b").row(0)[3:6],
                       lambda each: paired_over_loads(each, "a", "b")):  # fmt: skip
        (mean, low, high), (same, lower, higher) = difference(plain), difference(trace)
        assert mean == same
        assert mean - lower == pytest.approx(factor * (mean - low))
        assert higher - mean == pytest.approx(factor * (high - mean))
    [gain], [wide] = (gains_at_loads(each, "a", "success_rate", ["b"]) for each in (plain, trace))
    assert wide.own.std() == pytest.approx(factor * gain.own.std())


def test_one_pair_has_no_interval():
    values = {("cosmo", 320): [[0.6]], ("self-tracking", 320): [[0.0]]}
    [row] = paired_table(_metrics(values), "cosmo", "success_rate").texts()
    assert row == ["poisson", "− self-tracking", "+0.600"]


def test_runs_that_never_stabilise_count():
    steady, late = [0.0] * 5 + [100.0] * 30, [0.0] * 30 + [100.0] * 3
    assert t90(late) is None
    rows = [
        {"scenario": "s", "method": "m", "arrivals": "a", "rate": 1.0, "seed": seed,
         "episode": episode, "reward": reward}
        for seed, curve in enumerate((steady, late, late))
        for episode, reward in enumerate(curve)
    ]  # fmt: skip
    row = stabilisation(polars.DataFrame(rows)).row(0, named=True)
    assert (row["t90"], row["stable"], row["runs"]) == (None, 1, 3)


def test_t90_counts_the_change_from_the_very_first_reward():
    # The mean of the last ten is 100, so that the level is 90; smoothed, 91 is there at the sixth.
    curve = [0.0] + [91.0] * 10 + [100.0] * 20
    assert t90(curve) == 6


def test_t90_by_hand():
    curve = [0.0] * 5 + [100.0] * 30
    # Smoothed: 20, 40, 60, 80, 100 from the sixth episode on; 90 % is reached at the tenth.
    assert smoothed(curve)[4:11] == [0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 100.0]
    assert t90(curve) == 10
    relapse = [0.0] * 5 + [100.0] * 5 + [0.0] * 5 + [100.0] * 30
    assert t90(relapse) > 15
    assert t90([-value for value in curve]) == 10  # a fall counts as well
    rows = [
        {"scenario": "s", "method": "m", "arrivals": "a", "rate": 1.0, "seed": seed,
         "episode": episode, "reward": reward}
        for seed, shift in ((0, 0), (1, 2), (2, 4))
        for episode, reward in enumerate([0.0] * shift + curve)
    ]  # fmt: skip
    assert stabilisation(polars.DataFrame(rows))["t90"].to_list() == [12.0]


def test_t90_asks_for_five_episodes_in_a_row():
    """Smoothed over five, nine rewards of 100 are beyond 90 in five episodes, eight in four."""
    end = [0.0] + [100.0] * 20
    assert t90([0.0] * 5 + [100.0] * 9 + end) == 10
    assert t90([0.0] * 5 + [100.0] * 8 + end) == 19


@pytest.mark.parametrize(
    ("changes", "numbers"),
    [
        ({"settings": []}, 2),
        ({"settings": ["workload.rate=99"]}, 2),
        ({"settings": [], "scenarios": ["shared-sn"]}, 0),
        ({}, 0),  # short episodes are another world
    ],
)
def test_the_papers_numbers_stand_only_beside_the_papers_world(changes, numbers):
    plan = small_plan(("all-local",), **changes)
    values = {("all-local", 120): [[0.26]], ("all-local", 320): [[0.06]]}
    metrics = _metrics(values).with_columns(scenario=polars.lit(plan.scenarios[0]))
    table = with_paper(summarise(metrics), plan)
    assert len(paper_rows(table)) == numbers


def test_the_papers_numbers_are_all_there():
    table = reported()
    assert table.height == 79
    assert set(table["arrivals"]) == {"deterministic", "poisson"}
    assert table["value"].null_count() == 0


def test_bounds_are_there_for_every_load():
    table = bounds(load_plan("paper"))
    assert table.height == 14
    row = table.filter(arrivals="poisson", rate=320.0).row(0, named=True)
    assert row["fluid_bound"] == pytest.approx(0.818, abs=0.002)
    assert is_papers_world(next(load_plan("paper").points())[0])


def test_runs_without_a_value_are_not_counted():
    """0.2 and 0.4: a mean of 0.3, a standard deviation of 0.1 * sqrt(2)."""
    nan = math.nan
    table = summarise(_metrics({("cosmo", 320): [[0.1, 0.3], [nan, nan], [0.4, 0.4]]}))
    row = table.filter(metric="success_rate").row(0, named=True)
    assert (row["runs"], row["mean"]) == (2, pytest.approx(0.3))
    assert row["std"] == pytest.approx(0.1 * math.sqrt(2.0))
