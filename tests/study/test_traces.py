"""Traces in plans: an axis, names of units, what is trained, and what a study remembers."""

import polars
import pytest
from small import SHORT, small_plan

from cosmo import InputError, load
from cosmo.study import conduct, load_plan, load_study
from cosmo.study.executor import Finished
from cosmo.study.statistics import bounds
from cosmo.study.units import TrainUnit
from cosmo.study.work import units_of
from cosmo.workload import episode, write_trace


class InThisProcess:
    """An executor that is done without starting anything."""

    def run(self, units, folder, work):
        for unit in units:
            work(unit, folder / unit.name, lambda share: None)
            yield Finished(unit)


@pytest.fixture
def traces(tmp_path):
    for name, rate in (("quiet", 60), ("busy", 150)):
        made = load("paper", [f"workload.rate={rate}", "episode.window_ms=4000"])
        write_trace(tmp_path / f"{name}.parquet", episode(made, 0, 0).tasks, 1)
    return tmp_path


def test_a_plan_plays_every_scenario_on_every_trace(traces):
    (traces / "plan.toml").write_text(
        f"""name = "mine"
settings = {SHORT}
traces = ["quiet.parquet", "busy.parquet"]
seeds = [0, 1, 2]
episodes = 2
[[compare]]
methods = ["all-local", "aoi-threshold"]
"""
    )
    plan = load_plan(traces / "plan.toml")
    assert {(scenario.name, process, name) for scenario, process, _, name in plan.points()} == {
        (f"paper {trace}", "trace", name)
        for name in ("all-local", "aoi-threshold")
        for trace in ("quiet", "busy")
    }
    rates = {scenario.name: rate for scenario, _, rate, _ in plan.points()}
    assert rates["paper quiet"] == pytest.approx(60, rel=0.2)
    assert bounds(plan).is_empty()
    before = {unit.name for unit in units_of(plan)}

    folder = traces / "out"
    assert not conduct(plan, folder, InThisProcess()).failed
    metrics = load_study(folder).metrics
    assert metrics.height == 2 * 2 * 3 * 2
    assert set(metrics["rate"]) == set(rates.values())
    assert set(metrics["trace_windows"]) == {4000.0 / load("paper", SHORT).episode.window_ms}
    # Intervals are of something: no two episodes of a method on a trace are the same.
    apart = metrics.group_by("scenario", "method").agg(polars.col("delay_ms_mean").n_unique())
    assert set(apart["delay_ms_mean"]) == {6}

    # What a unit depends on is in its name, so the trace's content too.
    made = load("paper", ["workload.rate=60", "episode.window_ms=4000"])
    write_trace(traces / "quiet.parquet", episode(made, 1, 0).tasks, 1)
    changed = load_plan(traces / "plan.toml")
    after = {unit.name for unit in units_of(changed)}
    assert len(before & after) == 2  # those of the busy trace
    with pytest.raises(InputError, match="the trace of 'paper quiet' has changed since"):
        conduct(changed, folder, InThisProcess())

    # A study can be read when its traces are gone.
    (traces / "quiet.parquet").unlink()
    assert {rate for _, _, rate, _ in load_study(folder).plan.points()} == set(rates.values())
    with pytest.raises(InputError, match=r"quiet.parquet': cannot be read"):
        load_plan(traces / "plan.toml")


def test_what_learns_is_not_trained_on_the_trace_that_tests_it(traces):
    busy = str(traces / "busy.parquet")
    own = [{"name": "cosmo-next", "method": "cosmo-next"}]
    plan = small_plan(("cosmo", "cosmo-next"), traces=[busy], training={}, train=own)
    units = [unit for unit in units_of(plan) if isinstance(unit, TrainUnit)]
    assert {unit.label for unit in units} == {"cosmo", "cosmo-next"}
    for unit in units:
        assert [scenario.workload.arrivals for scenario in unit.trained_on] == ["poisson"]
        assert [scenario.workload.arrivals for scenario in unit.played_on] == ["trace"]
        assert unit.played_on[0].workload.rate == load("paper").workload.rate  # what nodes are told
        rates = [scenario.workload.rate for scenario in unit.trained_on]
        if unit.label == "cosmo":  # trained for one load
            assert rates == [pytest.approx(150, rel=0.2)]
