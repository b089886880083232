"""Parameters of methods as results in the docs were made: a change of one changes tables."""

import inspect

import pytest

from cosmo.control.registry import BASELINES, METHODS

_BY_CONTENT = {"threshold": 0.048, "check_ms": 1.0, "timeout_ms": 50.0}
_ONLINE = {"cost_ms2": 660.0, "check_ms": 1.0, "timeout_ms": 50.0}
_USED = {"keep": 6, "caution": 3.0}
_FEW = {"d": 2, "keep": 3, "numbers": 1}
DEFAULTS = {
    "periodic": {"interval_ms": 100.0},
    "aoi-threshold": {"kappa": 5.1},
    "aov-gap": _BY_CONTENT,
    "aoci-online": _ONLINE,
    "aoi-threshold/estimate": {"kappa": 5.1},
    "aov-gap/estimate": _BY_CONTENT,
    "aoci-online/estimate": _ONLINE,
    "prequal": {"quantile": 0.84, "probes_per_task": 1.0, "oldest_ms": 1000.0, "most_uses": 8},
    "admission-control": {
        "threshold": 0.95, "aggression": 1.0, "window_ms": 1000.0, "most": 0.8, "kappa": 5.1,
    },
    "power-of-d": {**_FEW, "threshold_ms": 15.0, "interval_ms": None, "check_ms": 1.0},
    "piggyback": {**_FEW, "gap_ms": 1.0},
    "jbt": {"high_ms": 30.0, "low_ms": 20.0, **_USED},
    "jiq": {"caution": 3.0},
    "lsq": {"interval_ms": 20.0, "keep": 12, "caution": 3.0},
    "sparse-jsq": {"interval_ms": 10.0, **_USED},
    "aoii": {"age_ms": 2.0, "wait_ms": 25.0, **_USED},
    "in-flight": {"caution": 3.0, "hot_ms": None},
    "leaky-bucket": {"d": 6, "inflation": 2.0, "failure_ms": 50.0, "caution": 3.0},
    "back-off": {"pause_ms": 25.0},
    "priced-books": {"most_cycles": 1.8e6, "price": 25_000.0},
    "adaptive-prices": {"horizon_ms": 125.0},
}  # fmt: skip


@pytest.mark.parametrize("name", BASELINES)
def test_methods_have_the_parameters_that_results_were_made_with(name):
    parameters = inspect.signature(METHODS[name]).parameters.values()
    found = {each.name: each.default for each in parameters if each.default is not each.empty}
    assert found == DEFAULTS.get(name, {})
