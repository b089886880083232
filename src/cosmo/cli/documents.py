"""The JSON documents that `simulate`, `evaluate`, `compare` and `run` print."""

from collections.abc import Mapping

from cosmo.control import Simulation
from cosmo.measure import Interval, fluid_bound, mean_bound
from cosmo.scenario import Scenario


def simulation_document(
    scenario: Scenario, method_name: str, seed: int, result: Simulation
) -> dict[str, object]:
    """The document of one method's episodes of one run."""
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


def comparison_document(study, written) -> dict[str, object]:  # type: ignore[no-untyped-def]
    """The document of a study: a verdict for each scenario, all means, and the report's path."""
    from cosmo.report.sweeps import sweep_table
    from cosmo.report.verdict import verdict
    from cosmo.study.statistics import POINT, summarise

    summary, swept = summarise(study.metrics), sweep_table(study)
    values = {
        (row["scenario"], row["method"]): {key: row[key] for key in ("field", "value", "line")}
        for row in swept.iter_rows(named=True)
    }
    scenarios = summary["scenario"].unique(maintain_order=True).to_list()
    found = (
        verdict(study.metrics.filter(scenario=name), study.focus, study.is_yardstick)
        for name in scenarios
    )
    results = []
    for key, rows in summary.group_by(POINT, maintain_order=True):
        point = dict(zip(POINT, key, strict=True))
        results.append(
            {
                **point,
                "runs": rows["runs"].max(),
                "sweep": values.get((point["scenario"], point["method"])),
                "metrics": {
                    name: {"mean": mean, "ci95": ci95}
                    for name, mean, ci95 in rows.select("metric", "mean", "ci95").iter_rows()
                },
            }
        )
    return {
        "focus": study.focus,
        "verdicts": [_verdict_document(told) for told in found if told is not None],
        "results": results,
        "page": str(written.page),
        "figures": [str(path) for path in written.figures if path.suffix == ".png"],
    }


def _verdict_document(told) -> dict[str, object]:  # type: ignore[no-untyped-def]
    standings = sorted([told.focus, *told.others], key=lambda each: -each.success)
    return {
        "scenario": told.scenario,
        "loads": [{"arrivals": process, "rate": rate} for process, rate in told.loads],
        "runs": told.runs,
        "episodes": told.episodes,
        "sentence": told.sentence(),
        "place": told.place,
        "standings": [
            {
                "method": each.method,
                "yardstick": each.yardstick,
                "success_rate": each.success,
                "net_utility_per_task": each.net_utility,
                "update_cost_rate": each.cost,
                "focus_minus_it": None if each.ahead is None else each.ahead._asdict(),
            }
            for each in standings
        ],
        "left_out": list(told.left_out),
    }


def metrics_document(metrics: Mapping[str, Interval]) -> dict[str, object]:
    """Every metric with its interval."""
    return {name: {"mean": value.mean, "ci95": value.ci95} for name, value in metrics.items()}
