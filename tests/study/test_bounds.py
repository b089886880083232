"""The clairvoyant bound as part of a study."""

import shutil

import polars
import pytest
from small import small_plan

from cosmo import InputError
from cosmo.files import write_record
from cosmo.measure import clairvoyant_bound
from cosmo.report.figures import metric_figure
from cosmo.study import conduct, load_study
from cosmo.study.executor import Finished
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import read_about
from cosmo.study.units import at_load
from cosmo.workload import episode


class Here:
    """Does all units in this process."""

    def run(self, units, folder, work):
        for unit in units:
            work(unit, folder / unit.name, lambda share: None)
            yield Finished(unit)


PLAN = {"rates": [320.0], "seeds": [0, 3], "episodes": 2}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bounds") / "study"
    assert not conduct(
        small_plan(("all-local", "random"), bound=True, **PLAN), folder, Here()
    ).failed
    return load_study(folder)


def test_there_is_one_for_every_load_run_and_episode(study):
    assert len(study.bounds) == 4  # however many methods are played
    assert study.metrics["method"].unique().sort().to_list() == ["all-local", "random"]
    scenario = at_load(study.plan.scenario("paper"), "poisson", 320.0)
    row = study.bounds.row(
        by_predicate=(polars.col("seed") == 3) & (polars.col("episode") == 1), named=True
    )
    expected = clairvoyant_bound(scenario, episode(scenario, 3, 1)).success_rate
    assert row["clairvoyant_bound"] == expected
    reached = study.metrics.join(
        study.bounds, on=["scenario", "arrivals", "rate", "seed", "episode"]
    )
    assert len(reached) == 8
    assert (reached["success_rate"] <= reached["clairvoyant_bound"]).all()


def test_figures_show_its_mean_at_each_load(study, tmp_path):
    limits = bounds(study.plan, study.bounds)
    mean = study.bounds["clairvoyant_bound"].mean()
    assert limits["clairvoyant_bound"].to_list() == pytest.approx([mean])
    summary = with_paper(summarise(study.metrics), study.plan)
    for name, given, shown in (("with", limits, True), ("without", bounds(study.plan), False)):
        [path] = metric_figure(summary, given, "success_rate", tmp_path / name, formats=("svg",))
        assert ("clairvoyant bound" in path.read_text()) == shown


def test_a_study_of_before_can_be_gone_on_with(study, tmp_path):
    """Without the field in its plan it is one without bounds."""
    copy = tmp_path / "study"
    shutil.copytree(study.folder, copy)
    about = read_about(copy)
    assert about["plan"].pop("bound") is True
    write_record(copy / "study.json", about)
    methods = "all-local", "random"
    assert not conduct(small_plan(methods, **PLAN), copy, Here()).failed
    with pytest.raises(InputError, match="has a study with another bound"):
        conduct(small_plan(methods, bound=True, **PLAN), copy, Here())


def test_it_is_refused_where_it_cannot_be_had():
    with pytest.raises(InputError, match=r"^bound = true: is of the engine 'embedded'"):
        small_plan(("all-local",), bound=True, engines=["ns3"])
