"""The JSON documents that `simulate` and `evaluate` print."""

import math
from collections.abc import Mapping

from cosmo.control import Simulation
from cosmo.measure import Interval, fluid_bound, mean_bound
from cosmo.scenario import Scenario


def simulation_document(
    scenario: Scenario, method_name: str, seed: int, result: Simulation
) -> dict[str, object]:
    """One method's episodes of one run."""
    trace = scenario.workload.trace
    return {
        "scenario": scenario.name,
        "engine": scenario.engine,
        "arrivals": None if trace else scenario.workload.arrivals,
        "rate": None if trace else scenario.workload.rate,
        "trace": trace or None,
        "method": method_name,
        "seed": seed,
        "episodes": len(result.episodes),
        "metrics": metrics_document(result.metrics),
        "bounds": None if trace else {"mean": mean_bound(scenario), "fluid": fluid_bound(scenario)},
    }


def metrics_document(metrics: Mapping[str, Interval]) -> dict[str, object]:
    """Every metric with its interval; null where there is no number."""
    return {
        name: {"mean": _json_number(value.mean), "ci95": _json_number(value.ci95)}
        for name, value in metrics.items()
    }


def _json_number(value: float) -> float | None:
    return value if math.isfinite(value) else None
