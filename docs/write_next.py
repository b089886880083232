"""The measured parts of docs/next.md, from what docs/measure_next.py has left in docs/data/next."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars
from measure_next import ABROAD, GUESTS, RIVALS, STEPPING, STEPS, WHOLE

from cosmo.control import METHODS
from cosmo.files import whole_file
from cosmo.scenario import load
from cosmo.study import tables
from cosmo.study.statistics import paired, summarise
from cosmo.study.style import colour

SHOWN = (
    ("success_rate", "Success rate", 3),
    ("decision_accuracy", "Decision accuracy", 3),
    ("update_cost_rate", "Update cost (units/s)", 1),
)
BOTH = ("deterministic", "poisson")
TRADE = "trade"
PARTS = {
    "paper": (
        ("cosmo-next paper-short", "`cosmo-next`, 16 rounds, one policy for all loads"),
        ("cosmo-next paper-only-RATE", "a specialist for that load alone"),
        ("cosmo-next paper-no-books", "without books (only statuses tell)"),
        ("cosmo-next paper-no-foresight", "without foresight (`en.horizon_ms=1`)"),
        ("cosmo-next paper-no-margin", "without the margin (`en.margin=0`)"),
        ("self-tracking", "`self-tracking`, for comparison"),
    ),
    "shared-sn": (
        ("cosmo-next shared-sn", "`cosmo-next`"),
        ("cosmo-next shared-sn-no-books", "without books (only statuses tell)"),
        ("cosmo-next shared-sn-no-evidence", "without evidence (`en.evidence=false`)"),
        ("cosmo-next shared-sn-raw", "raw instead of semantic status (`sn.semantic=false`)"),
        ("self-tracking", "`self-tracking`, for comparison"),
    ),
}
LINES = {
    "cosmo-next shared-sn": "cosmo-next, its price swept",
    "cosmo-next by the clock": "cosmo-next's EN, told by the clock",
    "cosmo-next shared-sn-raw": "cosmo-next with raw status, its price swept",
    "cosmo-next shared-sn-no-books": "cosmo-next without books, its price swept",
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
    own = "cosmo-next paper"
    success = summarise(metrics).filter(metric="success_rate")
    can_be_deployed = [name for name in RIVALS if not METHODS[name].privileged]
    points = success.select("arrivals", "rate").unique().sort("arrivals", "rate")
    rows = []
    for process, rate in points.rows():
        here = success.filter(arrivals=process, rate=rate)
        rivals = here.filter(polars.col("method").is_in(can_be_deployed))
        best = rivals.sort("mean", descending=True).row(0, named=True)
        pairs = paired(metrics.filter(arrivals=process, rate=rate), own, best["method"])
        found = pairs.row(0, named=True)
        cosmo = papers.filter(arrivals=process, rate=rate, method="cosmo", metric="success_rate")
        rows.append(
            (
                process,
                f"{rate:g}",
                f"{here.filter(method=own)['mean'][0]:.4f}",
                f"`{best['method']}` {best['mean']:.4f}",
                "{difference:+.4f} [{low:+.4f}, {high:+.4f}]".format(**found),
                f"{cosmo['mean'][0]:.3f}",
            )
        )
    header = ("arrivals", "tasks/s", "`cosmo-next`", "best rival", "difference", "`cosmo`")
    return tables.markdown(header, rows)


def parts(summary: polars.DataFrame) -> str:
    """What is lost without each part: success, and the update cost at the middle load."""
    written = []
    for scenario, rows in PARTS.items():
        here = summary.filter(scenario=scenario, arrivals="poisson")
        rates = load(scenario).workload.rates_of_interest
        body = []
        middle = rates[len(rates) // 2]
        for name, title in rows:
            own = {rate: name.replace("RATE", f"{rate:g}") for rate in rates}
            cells = [
                _cell(here.filter(method=own[rate], rate=rate, metric="success_rate"), 3)
                for rate in rates
            ]
            cost = here.filter(method=own[middle], rate=middle, metric="update_cost_rate")
            body.append((title, *cells, _cell(cost, 1)))
        titles = (f"{rate:g}" for rate in rates)
        header = (f"`{scenario}`", *titles, f"update cost at {middle:g}")
        written.append(tables.markdown(header, body))
    return "\n\n".join(written)


def abroad(summary: polars.DataFrame) -> str:
    """Trained here, played there; rivals for comparison."""
    success = summary.filter(arrivals="poisson", metric="success_rate")
    columns = [(scenario, rate) for scenario, rates in ABROAD.items() for rate in rates]
    names = [(f"cosmo-next {name}", f"trained on `{name}`") for name in WHOLE]
    names += [(name, f"`{name}`") for name in GUESTS]
    body = []
    for name, title in names:
        cells = []
        for scenario, rate in columns:
            point = success.filter(method=name, scenario=scenario, rate=rate)
            cells.append(_cell(point, 3))
        body.append((title, *cells))
    header = ("", *(f"`{scenario}` {rate:g}" for scenario, rate in columns))
    return tables.markdown(header, body)


def trade_points(metrics: polars.DataFrame) -> polars.DataFrame:
    """Mean success and update cost of every step of every sweep."""
    here = metrics.filter(arrivals=TRADE)
    return (
        here.group_by("method", "rate", maintain_order=True)
        .agg(polars.col("success_rate").mean(), polars.col("update_cost_rate").mean())
        .sort("method", "rate")
    )


def trade(points: polars.DataFrame) -> str:
    """The sweep of `cosmo-next`'s price, and what being told by the clock would be worth."""
    rows = []
    for name, title in LINES.items():
        own = points.filter(method=name).sort("update_cost_rate")
        cells = [f"{success:.3f} at {cost:.1f}" for _, _, success, cost in own.iter_rows()]
        rows.append((title, "; ".join(cells)))
    return tables.markdown(("", "success at update cost (units/s)"), rows)


def trade_figure(points: polars.DataFrame, path: Path) -> None:
    """Success against update cost."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 9, "axes.grid": True, "grid.alpha": 0.25}):
        figure, panel = pyplot.subplots(figsize=(7.6, 5.0))
        for (name,), own in points.group_by("method", maintain_order=True):
            own = own.sort("update_cost_rate")
            learned = str(name).startswith("cosmo-next")
            panel.plot(
                own["update_cost_rate"],
                own["success_rate"],
                marker="o" if learned else "s",
                lw=1.8 if learned else 1.0,
                ms=5 if learned else 4,
                color=None if learned else colour(str(name)),
                label=LINES.get(str(name), str(name)),
            )
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set_xlim(left=0)
        panel.set_xlabel("update cost (units/s)")
        panel.set_ylabel("success rate")
        figure.legend(loc="outside lower center", ncols=3, fontsize=7, frameon=False)
        figure.set_layout_engine("constrained")
        with whole_file(path) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
        pyplot.close(figure)


def page(metrics: polars.DataFrame, papers: polars.DataFrame) -> dict[str, str]:
    """Every measured part of the page; `papers` is the summary of the paper's study."""
    played = metrics.filter(polars.col("arrivals") != TRADE)
    by_training = summarise(played)
    own = polars.col("method") == "cosmo-next " + polars.col("scenario")
    mixed = polars.col("method") == "cosmo-next paper-mixed"
    rival = ~polars.col("method").str.starts_with("cosmo-next ")
    plain = (
        polars.when(mixed)
        .then(polars.lit("cosmo-next, trained on bursts and steps too"))
        .otherwise(polars.col("method").str.replace("^cosmo-next .*", "cosmo-next"))
    )
    summary = by_training.filter(own | rival | mixed).with_columns(method=plain)
    known = load().workload.rates_of_interest
    usual = polars.col("rate").is_in(known) & polars.col("arrivals").is_in(BOTH)
    paper, shared = (summary.filter(scenario=name) for name in ("paper", "shared-sn"))
    steps = tables.comparison(paper, STEPS, "success_rate", 3)
    unseen = _shown(paper.filter(~usual), (*BOTH, "bursty"), SHOWN[:1])
    stepping = steps.replace(f"| {STEPPING:g} |", "| 120 → 320 → 120 |", 1)
    return {
        "best": against_the_best(played.filter(usual, scenario="paper"), papers),
        "paper": _shown(paper.filter(usual), BOTH, SHOWN),
        "unseen": f"{unseen}\n\nSuccess rate, steps at 4 and 7 s:\n\n{stepping}",
        "shared-sn": _shown(shared, BOTH, SHOWN),
        "parts": parts(by_training),
        "abroad": abroad(by_training),
        "trade": trade(trade_points(metrics)),
    }
