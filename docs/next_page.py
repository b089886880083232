"""The measured parts of docs/next.md and docs/results/next.md (docs/plans/next.toml)."""

from collections.abc import Sequence
from typing import Any

import polars
from paper_page import BOTH
from paper_page import SHOWN as PAPERS_SHOWN

from cosmo.control import METHODS
from cosmo.report import tables
from cosmo.report.table import markdown
from cosmo.scenario import load as load_scenario
from cosmo.study import Study
from cosmo.study.statistics import paired, summarise

SHOWN = PAPERS_SHOWN[:4]  # all but the regret
OWN = "cosmo-next"
HOMES = {
    "paper": OWN,
    "shared-sn": "cosmo-next/shared-sn",
    "fading-backhaul": "cosmo-next/fading-backhaul",
    "campus": "cosmo-next/campus",
}
ABROAD = {
    "paper": (220.0, 320.0),
    "shared-sn": (120.0, 200.0),
    "fading-backhaul": (160.0, 220.0, 320.0),
    "campus": (120.0, 180.0, 240.0),
}
PARTS = {
    "paper": (
        ("cosmo-next/short", "`cosmo-next`, 16 rounds, one policy for all loads"),
        ("cosmo-next/no-own-traffic", "without a backlog estimate (statuses only)"),
        ("cosmo-next/no-foresight", "without foresight (`en.horizon=0.005`)"),
        ("self-tracking", "`self-tracking`, for comparison"),
    ),
    "shared-sn": (
        ("cosmo-next/shared-sn", "`cosmo-next`"),
        ("cosmo-next/shared-sn/no-own-traffic", "without a backlog estimate (statuses only)"),
        ("cosmo-next/shared-sn/no-evidence", "without evidence (`en.evidence=false`)"),
        ("cosmo-next/shared-sn/raw", "raw instead of semantic status (`sn.semantic=false`)"),
        ("self-tracking", "`self-tracking`, for comparison"),
    ),
}


def _cell(row: polars.DataFrame, digits: int) -> str:
    if not len(row) or row["ci95"][0] is None:
        return "–"
    return f"{row['mean'][0]:.{digits}f} ± {row['ci95'][0]:.{digits}f}"


def _shown(where: polars.DataFrame, processes: Sequence[str], metrics: Any) -> str:
    return "\n\n".join(
        f"{title}, {process}:\n\n{tables.comparison(where, process, metric, digits)}"
        for metric, title, digits in metrics
        for process in processes
    )


def against_the_best(metrics: polars.DataFrame, papers: polars.DataFrame) -> str:
    """At every point, `cosmo-next` beside the best rival that can be deployed, and `cosmo`."""
    summary = summarise(metrics)
    success, net = (
        summary.filter(metric=metric) for metric in ("success_rate", "net_utility_per_task")
    )
    rivals = [name for name, kind in METHODS.items() if not kind.privileged]
    points = success.select("arrivals", "rate").unique().sort("arrivals", "rate")
    rows = []
    for process, rate in points.rows():
        here = success.filter(arrivals=process, rate=rate)
        others = here.filter(polars.col("method").is_in(rivals), polars.col("method") != OWN)
        best = others.sort("mean", descending=True).row(0, named=True)
        pairs = paired(metrics.filter(arrivals=process, rate=rate), OWN, best["method"])
        found = pairs.row(0, named=True)
        cosmo = papers.filter(arrivals=process, rate=rate, method="cosmo", metric="success_rate")
        worth = net.filter(arrivals=process, rate=rate)
        own = worth.filter(method=OWN)["mean"][0]
        most = worth.filter(polars.col("method").is_in(rivals), polars.col("method") != OWN)
        most_worth = most.sort("mean", descending=True).row(0, named=True)
        rows.append(
            (
                process,
                f"{rate:g}",
                f"{here.filter(method=OWN)['mean'][0]:.4f}",
                f"`{best['method']}` {best['mean']:.4f}",
                "{difference:+.4f} [{low:+.4f}, {high:+.4f}]".format(**found),
                f"{cosmo['mean'][0]:.3f}",
                f"{own:.1f}",
                f"`{most_worth['method']}` {most_worth['mean']:.1f}",
            )
        )
    header = (
        "arrivals", "tasks/s", "`cosmo-next`", "best rival", "difference", "`cosmo`",
        "net utility", "best rival's",
    )  # fmt: skip
    return markdown(header, rows)


def parts(summary: polars.DataFrame) -> str:
    """What is lost without each part: success; update cost and net utility at the middle load."""
    written = []
    for scenario, rows in PARTS.items():
        here = summary.filter(scenario=scenario, arrivals="poisson")
        rates = load_scenario(scenario).workload.rates_of_interest
        middle, body = rates[len(rates) // 2], []
        for name, title in rows:
            own = here.filter(method=name)
            cells = [_cell(own.filter(rate=rate, metric="success_rate"), 3) for rate in rates]
            cost = own.filter(rate=middle, metric="update_cost_rate")
            net = own.filter(rate=middle, metric="net_utility_per_task")
            body.append((title, *cells, _cell(cost, 1), _cell(net, 1)))
        at_middle = (f"{what} at {middle:g}" for what in ("update cost", "net utility"))
        header = (f"`{scenario}`", *(f"{rate:g}" for rate in rates), *at_middle)
        written.append(markdown(header, body))
    return "\n\n".join(written)


def abroad(summary: polars.DataFrame) -> str:
    """Trained here, played there, by success and by net utility; rivals for comparison."""
    shown = ("success_rate", "Success rate", 3), ("net_utility_per_task", "Net utility per task", 1)
    return "\n\n".join(
        f"{title}:\n\n{_abroad(summary.filter(arrivals='poisson', metric=metric), digits)}"
        for metric, title, digits in shown
    )


def _abroad(summary: polars.DataFrame, digits: int) -> str:
    """One metric of every method at every point."""
    columns = [(scenario, rate) for scenario, rates in ABROAD.items() for rate in rates]
    names = [(name, f"trained on `{home}`") for home, name in HOMES.items()]
    names += [
        (name, f"`{name}`")
        for name in ("self-tracking", "priced-books", "aov-gap/estimate", "full-information")
    ]
    body = []
    for name, title in names:
        own = summary.filter(method=name)
        cells = [_cell(own.filter(scenario=where, rate=rate), digits) for where, rate in columns]
        body.append((title, *cells))
    return markdown(("", *(f"`{where}` {rate:g}" for where, rate in columns)), body)


def trade_points(metrics: polars.DataFrame) -> polars.DataFrame:
    """Mean success and update cost of every step of every sweep: line, value, success, cost."""
    swept = metrics.filter(polars.col("sweep").is_not_null())
    line = polars.when(polars.col("sweep").str.starts_with("method.")).then("swept")
    return (
        swept.with_columns(line=line.otherwise("method"))
        .group_by("line", "sweep_value", maintain_order=True)
        .agg(polars.col("success_rate").mean(), polars.col("update_cost_rate").mean())
        .sort("line", "sweep_value")
    )


def trade(points: polars.DataFrame) -> str:
    """Success at update cost, along every sweep."""
    rows = []
    for (name,), own in points.group_by("line", maintain_order=True):
        own = own.sort("update_cost_rate")
        cells = [f"{success:.3f} at {cost:.1f}" for _, _, success, cost in own.iter_rows()]
        rows.append((f"`{name}`", "; ".join(cells)))
    return markdown(("", "success at update cost (units/s)"), rows)


_ON_THEIR_OWN = ("paper", "shared-sn")  # long tables, on a page that has nothing else


def pages(study: Study, papers: polars.DataFrame) -> dict[str, dict[str, str]]:
    """The parts of `page` by the page of the docs that they are on."""
    parts = page(study, papers)
    tables = {name: parts.pop(name) for name in _ON_THEIR_OWN}
    return {"next.md": parts, "results/next.md": tables}


def page(study: Study, papers: polars.DataFrame) -> dict[str, str]:
    """Every measured part of the page; `papers` is the summary of the paper's study."""
    played = study.metrics.filter(polars.col("sweep").is_null())
    summary = summarise(played)
    usual = polars.col("rate").is_in(load_scenario().workload.rates_of_interest)
    usual &= polars.col("arrivals").is_in(BOTH)
    rival = ~polars.col("method").str.starts_with(OWN)
    paper = summary.filter(rival | (polars.col("method") == OWN), scenario="paper")
    home = polars.col("method") == HOMES["shared-sn"]
    shared = summary.filter(rival | home, scenario="shared-sn")
    return {
        "best": against_the_best(played.filter(usual, scenario="paper"), papers),
        "paper": _shown(paper.filter(usual), BOTH, SHOWN),
        "unseen": _shown(paper.filter(~usual), (*BOTH, "bursty", "steps"), SHOWN[:1]),
        "shared-sn": _shown(shared, BOTH, SHOWN),
        "parts": parts(summary),
        "abroad": abroad(summary),
        "trade": trade(trade_points(study.metrics)),
    }
