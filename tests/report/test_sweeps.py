"""What can be swept, and what cannot."""

from pathlib import Path

import polars
import pytest
from small import SHORT

from cosmo import InputError
from cosmo.cli.comparison import print_results
from cosmo.control import method
from cosmo.report.sweeps import sweep_figure, sweep_figures, sweep_table, swept_scenarios
from cosmo.study import plan_checked, store
from cosmo.study.units import at_load, played_rows, result_table

MINE = """
import numpy as np
from cosmo import Dispatcher, Method
class A(Method, Dispatcher):
    'Local.'
    def __init__(self, margin: float = 1.0, other: float = 0.0) -> None:
        if margin > 5:
            raise ValueError("too much")
    def dispatcher(self, site):
        return self
    def decide(self, tasks):
        return np.zeros(len(tasks), int)
"""


def _plan(methods, sweep):
    return plan_checked({"name": "x", "compare": [{"methods": methods, "sweep": sweep}]})


@pytest.mark.parametrize(
    ("field", "axis"), [("workload.rate", "rates"), ("workload.arrivals", "arrivals")]
)
def test_the_load_is_an_axis_already(field, axis):
    with pytest.raises(InputError, match=f"sweep.field = '{field}': is an axis already: {axis}"):
        _plan(["random"], {"field": field, "values": [50.0]})


def test_parameters_of_a_method_of_one_s_own(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    spec = f"{tmp_path / 'mine.py'}:A"
    sweep = {"field": "method.margin", "values": [1.0, 2.0]}
    names = [name for *_, name in _plan([spec], sweep).points()]
    assert set(names) == {f"{spec}:margin=1.0", f"{spec}:margin=2.0"}
    names = [name for *_, name in _plan([f"{spec}:other=3"], sweep).points()]
    assert set(names) == {f"{spec}:other=3,margin=1.0", f"{spec}:other=3,margin=2.0"}
    with pytest.raises(InputError, match=r"cannot be made \(ValueError: too much\)"):
        _plan([spec], {"field": "method.margin", "values": [9.0]})


def test_a_field_that_there_is_not():
    with pytest.raises(InputError, match=r"utility.nothing: unknown field"):
        _plan(["random"], {"field": "utility.nothing", "values": [1.0]})


def test_results_over_a_field_and_over_a_parameter(tmp_path):
    data = {
        "name": "x", "settings": SHORT, "arrivals": ["poisson"], "rates": [220.0], "seeds": [0, 1],
        "episodes": 1, "focus": "never",
        "compare": [
            {"methods": ["never", "random"], "sweep": {"field": "sn.slots", "values": [2, 8]}},
            {"methods": ["periodic"], "sweep": {"field": "method.interval_ms", "values": [20, 90]}},
            {"methods": ["never"],
             "sweep": {"field": "mobility.at_edge", "values": ["leave", "turn"]}},
        ],
    }  # fmt: skip
    plan, played = plan_checked(data), Path(tmp_path)
    rows = [
        row
        for scenario, process, rate, name in plan.points()
        for row in played_rows(at_load(scenario, process, rate), name, method(name), [0, 1], 1)
    ]
    metrics = store.with_axes(result_table(rows), plan)
    study = store.Study(played, plan, {}, metrics, polars.DataFrame(schema=store.NO_CURVES))
    table = sweep_table(study).filter(metric="success_rate")
    load = "paper, poisson, 220 tasks/s"
    assert set(table["load"]) == {load}
    never = table.filter(field="sn.slots", line="never")
    assert never["value"].to_list() == ["2", "8"]
    assert never["number"].to_list() == [2.0, 8.0]
    by_hand = metrics.filter(scenario="paper sn.slots=2", method="never")["success_rate"].mean()
    assert never["mean"][0] == pytest.approx(by_hand)
    assert table.filter(line="periodic")["value"].to_list() == ["20", "90"]
    assert table.filter(field="mobility.at_edge")["value"].to_list() == ["leave", "turn"]
    assert swept_scenarios(study) == [
        "paper sn.slots=2", "paper sn.slots=8",
        "paper mobility.at_edge=leave", "paper mobility.at_edge=turn",
    ]  # fmt: skip
    written = sweep_figures(study, tmp_path, ("png",))
    assert [path.name for path in written] == [
        "sweep-sn.slots.png", "sweep-method.interval_ms.png", "sweep-mobility.at_edge.png",
    ]  # fmt: skip
    panel = sweep_figure(study, "mobility.at_edge").axes[0]
    assert [each.get_text() for each in panel.get_xticklabels()] == ["leave", "turn"]
    print_results(study)
