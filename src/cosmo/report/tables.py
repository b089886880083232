"""The tables of a report: which there are (`TABLES`), and how they are made of results."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import polars

from cosmo.measure import METRICS
from cosmo.policy.learned_methods import LEARNED
from cosmo.report.gains import (
    average_gains_table,
    claims_beside,
    gains_table,
    net_utility_table,
)
from cosmo.report.markup import in_markdown
from cosmo.report.table import Column, Table, difference, estimate, fixed, short, spread
from cosmo.report.tuned import tuned_table
from cosmo.report.verdict import Verdict, verdict
from cosmo.study.paper_results import Claims
from cosmo.study.statistics import Difference, paired_with, stabilisation
from cosmo.study.store import Study

# Metrics that are compared at every load, and those whose differences and gains are shown.
COMPARED = (
    "success_rate", "net_utility_per_task", "decision_accuracy", "update_cost_rate",
    "decision_regret",
)  # fmt: skip
_NET = "net_utility_per_task"
_PAIRED = ("success_rate", _NET)
_GAINED = ("success_rate", "decision_accuracy")
# The paper's table gate_ablation and its detailed one.
ABLATION = ("success_rate", "decision_accuracy")
ABLATION_DETAILED = (
    "fp_rate", "fn_rate", "reject_rate", "accepted_success_rate", "route_accuracy",
    "episode_update_cost",
)  # fmt: skip
_PAPER_DIGITS = {"update_cost_rate": 2}  # the paper has one more than we show


@dataclass(frozen=True)
class Results:
    """What a study found on one scenario, about one method."""

    metrics: polars.DataFrame  # a row a method, load, run and episode
    summary: polars.DataFrame  # means over runs, with the paper's numbers beside them
    curves: polars.DataFrame  # of trainings
    focus: str
    is_yardstick: Callable[[str], bool]
    tuned: polars.DataFrame = field(default_factory=polars.DataFrame)  # as `Study.tuned`

    @cached_property
    def verdict(self) -> Verdict | None:
        """None if the focus was not played here."""
        return verdict(self.metrics, self.focus, self.is_yardstick)

    @property
    def claims(self) -> Claims:
        """What the paper says of gains, if this is its world."""
        return claims_beside(self.summary)

    @property
    def scenario(self) -> str:
        """Name of the scenario of these results."""
        return str(self.metrics["scenario"][0])

    @property
    def arrivals(self) -> list[str]:
        """Names of the arrival processes, in the order in which they were played."""
        return self.summary["arrivals"].unique(maintain_order=True).to_list()


def results_of(study: Study, summary: polars.DataFrame, scenario: str) -> Results:
    """Of one scenario of a study; `summary` is `with_paper(summarise(study.metrics), ...)`."""
    metrics, own, curves, tuned = (
        table.filter(scenario=scenario)
        for table in (study.metrics, summary, study.curves, study.tuned)
    )
    return Results(metrics, own, curves, study.focus, study.is_yardstick, tuned)


def _gains(results: Results) -> list[Table]:
    about, claims = (results.metrics, results.focus), results.claims
    made = product(_GAINED, (gains_table, average_gains_table))
    found = [table(*about, metric, claims) for metric, table in made]
    return found + ([net_utility_table(*about, claims)] if _of(results, [_NET]) else [])


def _of(results: Results, metrics: Iterable[str]) -> list[str]:
    """Those of the metrics that were measured."""
    return [metric for metric in metrics if metric in results.metrics.columns]


# Every table of a report, by the name of its file: page, files and docs take them from here.
TABLES: dict[str, Callable[[Results], list[Table]]] = {
    "verdict": lambda its: [standings_table(its.verdict)] if its.verdict else [],
    "paired": lambda its: [
        paired_table(its.metrics, its.focus, metric) for metric in _of(its, _PAIRED)
    ],
    "tuned": lambda its: [tuned_table(its.metrics, its.tuned)] if len(its.tuned) else [],
    "gains": _gains,
    "comparison": lambda its: [
        comparison(its.summary, process, metric)
        for metric, process in product(COMPARED, its.arrivals)
    ],
    "ablation": lambda its: [ablation_table(its, ABLATION)],
    "ablation-detailed": lambda its: [ablation_table(its, ABLATION_DETAILED, " in detail")],
    "t90": lambda its: [stabilisation_table(its.curves)],
    "paper-against-ours": lambda its: [paper_against_ours(its.summary)],
}
IN_LATEX = ("ablation", "ablation-detailed")


def tables_of(results: Results, name: str) -> list[Table]:
    """The tables of one name that have any rows."""
    return [table for table in TABLES[name](results) if table.rows]


def together(tables: Sequence[Table]) -> str:
    """In Markdown; several below their titles."""
    if len(tables) == 1:
        return tables[0].markdown()
    return "\n\n".join(f"{in_markdown(each.title)}\n\n{each}" for each in tables)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _by_load(rates: Iterable[float], form: Callable[[Any], str], unit: str = "") -> list[Column]:
    return [Column(f"{rate:g}{unit}", form=form) for rate in rates]


def ablations(methods: Iterable[str]) -> list[tuple[str, str]]:
    """(method, its ablation) of every pair among the methods, as the table of learners says."""
    there = set(methods)
    pairs = [(each.ablation_of, name) for name, each in LEARNED.items()]
    return [(whole, part) for whole, part in pairs if whole in there and part in there]


def ablation_table(results: Results, metrics: Sequence[str], how: str = "") -> Table:
    """Every pair of a method and its ablation: mean ± standard deviation over runs."""
    rows = []
    pairs = ablations(results.summary["method"].unique())
    for pair, process in product(pairs, results.arrivals):
        here = results.summary.filter(arrivals=process)
        for rate in here.filter(method=pair[1])["rate"].unique().sort():
            for method in pair:
                own = here.filter(rate=rate, method=method)
                found = {row["metric"]: row for row in own.iter_rows(named=True)}
                cells = (_mean_and_std(found.get(metric)) for metric in metrics)
                rows.append((process, rate, method, *cells))
    shown = (Column(brief(metric), form=spread(METRICS[metric].digits)) for metric in metrics)
    return Table(
        f"Hierarchical gate–route ablation{how} (mean ± standard deviation)",
        (Column("arrivals"), Column("tasks/s", form=short), Column("method"), *shown),
        tuple(rows),
    )


def _mean_and_std(row: dict[str, Any] | None) -> tuple[float, float | None] | None:
    return None if row is None or row["mean"] is None else (row["mean"], row["std"])


def brief(metric: str) -> str:
    """A metric's title as the paper's wide tables have it."""
    title = METRICS[metric].title
    return title.removesuffix(" rate") if metric not in ABLATION else title


def paper_rows(summary: polars.DataFrame) -> list[dict[str, Any]]:
    """Every number of the paper that this study also has, with ours, interval and difference."""
    known = summary.filter(polars.col("paper").is_not_null(), polars.col("mean").is_not_null())
    columns = ("metric", "arrivals", "rate", "method", "paper", "paper_std")
    return [
        {name: row[name] for name in columns}
        | {"ours": row["mean"], "ci95": row["ci95"], "std": row["std"]}
        | {"difference": row["mean"] - row["paper"]}
        for row in known.sort("metric", "arrivals", "method", "rate").iter_rows(named=True)
    ]


def paper_against_ours(summary: polars.DataFrame) -> Table:
    """Every number of the paper beside ours; the digits depend on the row's metric."""
    rows = []
    for row in paper_rows(summary):
        digits = _PAPER_DIGITS.get(row["metric"], METRICS[row["metric"]].digits)
        point = (row["metric"], row["arrivals"], row["rate"], row["method"])
        paper, lead = fixed(digits)(row["paper"]), f"{row['difference']:+.{digits}f}"
        rows.append((*point, paper, spread(digits)((row["ours"], row["ci95"])), lead))
    columns = (
        Column("metric"), Column("arrivals"), Column("tasks/s", form=short),
        Column("method", is_code=True), Column("paper"), Column("ours ± 95 %"),
        Column("difference"),
    )  # fmt: skip
    return Table("Every number of the paper beside ours", columns, tuple(rows))


def comparison(
    summary: polars.DataFrame, process: str, metric: str, digits: int | None = None
) -> Table:
    """A row a method, a column a load; mean ± 95 % half-width, of two runs their range."""
    here = summary.filter(arrivals=process, metric=metric)
    rates = sorted(here["rate"].unique())
    cells: dict[str, dict[float, Any]] = {}
    columns = ("method", "rate", "mean", "ci95", "runs")
    for name, rate, *found in here.select(columns).iter_rows():
        cells.setdefault(name, {})[rate] = found
    form = estimate(METRICS[metric].digits if digits is None else digits)
    return Table(
        f"{_capital(METRICS[metric].label)}, {process}",
        (Column("method", is_code=True), *_by_load(rates, form)),
        tuple((name, *(own.get(rate) for rate in rates)) for name, own in cells.items()),
    )


def paired_table(metrics: polars.DataFrame, method: str, metric: str) -> Table:
    """`method` minus every other on equal workloads, with bootstrap intervals; a column a load."""
    others = [name for name in metrics["method"].unique(maintain_order=True) if name != method]
    found: dict[tuple[str, str], dict[float, Difference]] = {}
    pairs = paired_with(metrics, method, others, metric)
    columns = ("arrivals", "method", "rate", "difference", "low", "high")
    for process, name, rate, *parts in pairs.select(columns).iter_rows():
        lead = Difference(*(math.nan if part is None else part for part in parts))
        found.setdefault((process, name), {})[rate] = lead
    own = metrics.filter(method=method)
    rates = sorted(own["rate"].unique())
    rows = [
        (process, f"− {name}", *(cells.get(rate) for rate in rates))
        for process, name in product(own["arrivals"].unique(maintain_order=True), others)
        if (cells := found.get((process, name)))
    ]
    title, digits = _capital(METRICS[metric].title), METRICS[metric].digits
    return Table(
        f"{title} of {method} minus the others', on equal workloads (95 % interval)",
        (Column("arrivals"), Column(method), *_by_load(rates, difference(digits), " tasks/s")),
        tuple(rows),
    )


def standings_table(found: Verdict) -> Table:
    """A row a method, best first, yardsticks without a place; the focus's lead over each."""
    everyone = sorted(
        (found.focus, *found.others),
        key=lambda each: (each.yardstick, math.isnan(each.success), -each.success),
    )
    rows = (
        (
            "yardstick" if each.yardstick else place,
            *(each.method, each.success, each.ahead, each.net_utility, each.cost),
        )
        for place, each in enumerate(everyone, start=1)
    )
    columns = (
        Column("place"), Column("method"), Column("success", form=fixed(3)),
        Column(f"{found.focus.method} minus it"), Column("net utility", form=fixed(1)),
        Column("update cost", form=fixed(1)),
    )  # fmt: skip
    return Table("Standings over all loads of the focus, best success first", columns, tuple(rows))


def stabilisation_table(curves: polars.DataFrame) -> Table:
    """Median t90 in episodes, a row a method and arrival process, a column a load."""
    times = stabilisation(curves)
    rates = sorted(times["rate"].unique())
    rows = []
    for (name, process), group in times.group_by(["method", "arrivals"], maintain_order=True):
        by_rate = dict(group.select("rate", "t90").iter_rows())
        rows.append((name, process, *(by_rate.get(rate) for rate in rates)))
    return Table(
        "Episodes until the training reward is stable (median t90)",
        (Column("method", is_code=True), Column("arrivals"), *_by_load(rates, short)),
        tuple(rows),
    )
