"""The measured parts of docs/many.md, from the study `crowd` (`cosmo study run crowd`)."""

import polars

from cosmo.study import Study, tables
from cosmo.study.statistics import summarise

_SHOWN = (("success_rate", 3), ("update_cost_rate", 0), ("net_utility_per_task", 1))


def _cell(summary: polars.DataFrame, metric: str, digits: int) -> str:
    row = summary.filter(metric=metric)
    if not len(row) or row["mean"][0] is None:
        return "–"
    return f"{row['mean'][0]:.{digits}f} ± {row['ci95'][0]:.{digits}f}"


def standings(study: Study) -> str:
    """Every method in every scenario, best first: success, update cost, net utility."""
    rows = []
    summary = summarise(study.metrics.filter(polars.col("sweep").is_null()))
    for scenario in summary["scenario"].unique(maintain_order=True):
        here = summary.filter(scenario=scenario)
        order = here.filter(metric="success_rate").sort("mean", descending=True)["method"]
        for name in order:
            own = here.filter(method=name)
            cells = (_cell(own, metric, digits) for metric, digits in _SHOWN)
            rows.append((f"`{scenario}`", f"{own['rate'][0]:g}", f"`{name}`", *cells))
    header = (
        "scenario",
        "tasks/s an EN",
        "method",
        "success",
        "update cost, units/s",
        "net utility",
    )
    return tables.markdown(header, rows)


def trade(study: Study) -> str:
    """Success, cost and net utility at every step of every sweep."""
    swept = study.metrics.filter(polars.col("sweep").is_not_null())
    means = swept.group_by("method", "sweep", "sweep_value", maintain_order=True).agg(
        polars.col("success_rate", "update_cost_rate", "net_utility_per_task").mean()
    )
    rows = [
        (
            f"`{row['method']}`",
            f"{row['success_rate']:.3f}",
            f"{row['update_cost_rate']:.0f}",
            f"{row['net_utility_per_task']:.1f}",
        )
        for row in means.iter_rows(named=True)
    ]
    return tables.markdown(("`district`", "success", "update cost, units/s", "net utility"), rows)


def page(study: Study) -> dict[str, str]:
    """Every measured part of the page."""
    return {"standings": standings(study), "trade": trade(study)}
