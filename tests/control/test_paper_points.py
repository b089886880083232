"""The paper's five fixed-policy points (Poisson), mean of 15 episodes, within 0.03."""

import pytest

from cosmo import load, method, simulate
from cosmo.study import reported

FIXED = ["all-local", "all-offload", "local-until-full"]


def _points():
    table = reported()
    rows = table.filter(table["method"].is_in(FIXED), table["metric"] == "success_rate")
    return [(row["method"], row["rate"], row["value"]) for row in rows.iter_rows(named=True)]


def test_there_are_five():
    assert len(_points()) == 5


@pytest.mark.parametrize(("name", "rate", "value"), _points())
def test_fixed_policies_land_on_the_paper_s_points(name, rate, value):
    scenario = load("paper", ["workload.arrivals=poisson", f"workload.rate={rate}"])
    got = simulate(scenario, method(name), seeds=0, episodes=15).metrics["success_rate"]
    assert got.mean == pytest.approx(value, abs=0.03)
