"""Tables of a study, in Markdown and LaTeX."""

import math
from collections.abc import Iterable, Sequence
from itertools import product

import polars

from cosmo.measure import told
from cosmo.policy.learned_methods import LEARNED
from cosmo.study.markup import in_cell, in_tex
from cosmo.study.statistics import Difference, paired_with, stabilisation
from cosmo.study.verdict import Verdict

# The paper's table gate_ablation and its detailed one, (title, metric, digits).
ABLATION = (("success rate", "success_rate", 3), ("decision accuracy", "decision_accuracy", 3))
ABLATION_DETAILED = (
    ("FP", "fp_rate", 3),
    ("FN", "fn_rate", 3),
    ("reject", "reject_rate", 3),
    ("accepted success", "accepted_success_rate", 3),
    ("route accuracy", "route_accuracy", 3),
    ("episode update cost", "episode_update_cost", 0),
)
Columns = Sequence[tuple[str, str, int]]


def _cell(summary: polars.DataFrame, point: dict[str, object], metric: str, digits: int) -> str:
    row = summary.filter(metric=metric, **point)
    if not len(row) or row["mean"][0] is None:
        return "–"
    mean, std = row["mean"][0], row["std"][0]
    return f"{mean:.{digits}f}" + ("" if std is None else f" ± {std:.{digits}f}")


def ablations(methods: Iterable[str]) -> list[tuple[str, str]]:
    """(method, its ablation) of every pair among the methods, as the table of learners says."""
    there = set(methods)
    pairs = [(each.ablation_of, name) for name, each in LEARNED.items()]
    return [(whole, part) for whole, part in pairs if whole in there and part in there]


def ablation_rows(
    summary: polars.DataFrame, columns: Columns, processes: Sequence[str]
) -> list[tuple[str, ...]]:
    """Arrivals, rate, method and the cells (mean ± standard deviation over runs)."""
    rows = []
    for pair, process in product(ablations(summary["method"].unique()), processes):
        here = summary.filter(arrivals=process)
        rates = here.filter(method=pair[1])["rate"].unique().sort()
        for rate in rates:
            for method in pair:
                point = {"arrivals": process, "rate": rate, "method": method}
                cells = [_cell(here, point, metric, digits) for _, metric, digits in columns]
                rows.append((process, f"{rate:g}", method, *cells))
    return rows


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for GitHub."""
    first, *others = ("| " + " | ".join(map(in_cell, row)) + " |" for row in (header, *rows))
    return "\n".join([first, "|" + "---|" * len(header), *others])


def latex(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str, label: str) -> str:
    """A table for a paper; needs no package."""
    body = [" & ".join(in_tex(cell) for cell in row) + r" \\" for row in rows]
    return "\n".join(
        [
            r"\begin{table}[!t]",
            rf"\caption{{{in_tex(caption)}}}",
            rf"\label{{{label}}}",
            r"\centering",
            r"\begin{tabular}{" + "l" * len(header) + "}",
            r"\hline",
            " & ".join(rf"\textbf{{{in_tex(name)}}}" for name in header) + r" \\",
            r"\hline",
            *body,
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def engines(
    summary: polars.DataFrame, arrivals: str, metric: str = "success_rate", digits: int = 3
) -> str:
    """A metric on the embedded engine and on ns-3, by method and rate: `0.912 → 0.905`."""
    here = summary.filter(arrivals=arrivals, metric=metric)
    rates = sorted(here["rate"].unique())
    rows = []
    for name in here["method"].unique(maintain_order=True):
        cells = []
        for rate in rates:
            point = here.filter(rate=rate, method=name)
            pair = [point.filter(scenario=world)["mean"] for world in worlds_of(summary)]
            both = " → ".join(f"{mean[0]:.{digits}f}" for mean in pair if len(mean))
            cells.append(both or "–")
        rows.append((f"`{name}`", *cells))
    return markdown(("method", *(f"{rate:g}" for rate in rates)), rows)


def worlds_of(summary: polars.DataFrame) -> tuple[str, str]:
    """The names of the scenario on the two engines."""
    names = summary["scenario"].unique().to_list()
    [on_ns3] = [name for name in names if name.endswith("-ns3")]
    return on_ns3.removesuffix("-ns3"), on_ns3


def paper_rows(summary: polars.DataFrame) -> list[dict[str, object]]:
    """Every number of the paper that this study also has, with ours, interval and difference."""
    known = summary.filter(polars.col("paper").is_not_null(), polars.col("mean").is_not_null())
    return [
        {
            "metric": row["metric"],
            "arrivals": row["arrivals"],
            "rate": row["rate"],
            "method": row["method"],
            "paper": row["paper"],
            "paper_std": row["paper_std"],
            "ours": row["mean"],
            "ci95": row["ci95"],
            "std": row["std"],
            "difference": row["mean"] - row["paper"],
        }
        for row in known.sort("metric", "arrivals", "method", "rate").iter_rows(named=True)
    ]


def _digits(metric: object) -> int:
    return {"update_cost_rate": 2, "episode_update_cost": 0}.get(str(metric), 3)


def paper_against_ours(summary: polars.DataFrame) -> str:
    """The page: every number of the paper beside ours."""
    rows = []
    for row in paper_rows(summary):
        digits = _digits(row["metric"])
        half = "" if row["ci95"] is None else f" ± {row['ci95']:.{digits}f}"
        rows.append(
            (
                str(row["metric"]),
                str(row["arrivals"]),
                f"{row['rate']:g}",
                f"`{row['method']}`",
                f"{row['paper']:.{digits}f}",
                f"{row['ours']:.{digits}f}{half}",
                f"{row['difference']:+.{digits}f}",
            )
        )
    header = ("metric", "arrivals", "tasks/s", "method", "paper", "ours ± 95 %", "difference")
    return markdown(header, rows)


def comparison(summary: polars.DataFrame, process: str, metric: str, digits: int) -> str:
    """A row a method, a column a load; mean ± 95 % half-width, of two runs their range."""
    here = summary.filter(arrivals=process, metric=metric)
    rates = sorted(here["rate"].unique())
    cells: dict[str, dict[float, str]] = {}
    columns = ("method", "rate", "mean", "ci95", "runs")
    for name, rate, mean, ci95, runs in here.select(columns).iter_rows():
        cells.setdefault(name, {})[rate] = told(mean, ci95, runs, digits)
    rows = [(f"`{name}`", *(own.get(rate, "–") for rate in rates)) for name, own in cells.items()]
    return markdown(("method", *(f"{rate:g}" for rate in rates)), rows)


def paired_table(metrics: polars.DataFrame, method: str, metric: str) -> str:
    """`method` minus every other on equal workloads, with bootstrap intervals; a column a load."""
    others = [name for name in metrics["method"].unique(maintain_order=True) if name != method]
    found: dict[tuple[str, str], dict[float, str]] = {}
    pairs = paired_with(metrics, method, others, metric)
    columns = ("arrivals", "method", "rate", "difference", "low", "high")
    for process, name, rate, *parts in pairs.select(columns).iter_rows():
        difference = Difference(*(math.nan if part is None else part for part in parts))
        found.setdefault((process, name), {})[rate] = str(difference)
    own = metrics.filter(method=method)
    rates = sorted(own["rate"].unique())
    rows = []
    for process, name in product(own["arrivals"].unique(maintain_order=True), others):
        cells = found.get((process, name))
        if cells:
            rows.append((process, f"− {name}", *(cells.get(rate, "–") for rate in rates)))
    return markdown(("arrivals", method, *(f"{rate:g} tasks/s" for rate in rates)), rows)


def standings_table(found: Verdict) -> str:
    """A row a method, best first; the focus's lead over each with its paired interval."""
    header = (
        "place",
        "method",
        "success",
        f"{found.focus.method} minus it",
        "net utility",
        "update cost",
    )
    return markdown(header, standings_rows(found))


def standings_rows(found: Verdict) -> list[tuple[str, ...]]:
    """Place, method, success, lead of the focus, net utility, cost; yardsticks without a place."""
    everyone = sorted(
        (found.focus, *found.others),
        key=lambda each: (each.yardstick, math.isnan(each.success), -each.success),
    )
    return [
        (
            "yardstick" if each.yardstick else f"{place}",
            each.method,
            _number(each.success, 3),
            "–" if each.ahead is None else str(each.ahead),
            _number(each.net_utility, 1),
            _number(each.cost, 1),
        )
        for place, each in enumerate(everyone, start=1)
    ]


def _number(value: float, digits: int) -> str:
    return told(value, None, 1, digits)


def stabilisation_table(curves: polars.DataFrame) -> str:
    """Median t90 in episodes, a row a method and arrival process, a column a load."""
    times = stabilisation(curves)
    rates = sorted(times["rate"].unique())
    rows = []
    for (name, process), group in times.group_by(["method", "arrivals"], maintain_order=True):
        by_rate = dict(group.select("rate", "t90").iter_rows())
        cells = ["–" if by_rate.get(rate) is None else f"{by_rate[rate]:g}" for rate in rates]
        rows.append((f"`{name}`", str(process), *cells))
    return markdown(("method", "arrivals", *(f"{rate:g}" for rate in rates)), rows)
