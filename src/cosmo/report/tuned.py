"""Default and tuned parameters side by side, on the same evaluation workloads."""

from typing import Any

import polars

from cosmo.measure import METRICS
from cosmo.report.table import Column, Table, estimate, short
from cosmo.report.table import difference as difference_form
from cosmo.study.statistics import Difference, paired, summarise

_SHOWN = {
    "success_rate": "success",
    "net_utility_per_task": "net utility",
    "update_cost_rate": "cost",
}
_TUNED = "tuned"  # stands for the method's name where both are compared


def tuned_table(metrics: polars.DataFrame, tuned: polars.DataFrame) -> Table:
    """A row a load and tuned method of one scenario: each metric with default and with tuned
    parameters, the chosen setting, and tuned minus default on equal workloads.
    """
    chosen = tuned.filter("chosen")
    rows = []
    for key, own in chosen.group_by(["arrivals", "rate", "method"], maintain_order=True):
        process, rate, name = key
        before = metrics.filter(arrivals=process, rate=rate, method=name)
        if before.is_empty():
            continue
        after = own.with_columns(method=polars.lit(_TUNED))
        both = polars.concat([before, after], how="diagonal")
        cells = _cells(summarise(both), str(name))
        [lead] = paired(both, _TUNED, str(name)).select("difference", "low", "high").rows()
        known = Difference(*(float("nan") if each is None else each for each in lead))
        rows.append((process, rate, name, own["setting"][0], *cells, known))
    pairs = (
        Column(f"{title}, {which}", form=estimate(METRICS[metric].digits))
        for metric, title in _SHOWN.items()
        for which in ("default", "tuned")
    )
    columns = (
        Column("arrivals"), Column("tasks/s", form=short), Column("method", is_code=True),
        Column("tuned to", is_code=True), *pairs,
        Column("success, tuned minus default", form=difference_form(3)),
    )  # fmt: skip
    return Table("Default and tuned parameters", columns, tuple(rows))


def _cells(summary: polars.DataFrame, name: str) -> list[Any]:
    """(mean, 95 % half-width, runs) of each metric, default and tuned."""
    found = {
        (row["metric"], row["method"]): (row["mean"], row["ci95"], row["runs"])
        for row in summary.iter_rows(named=True)
    }
    return [found.get((metric, which)) for metric in _SHOWN for which in (name, _TUNED)]
