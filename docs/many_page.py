"""The measured parts of docs/many.md and of the controller's card, from studies:
`many-nodes-rivals`, `universal` and `universal-pair` (the controller of the package) and `next`
(specialists).
"""

import polars
from drawn import OWN

from cosmo.measure import interval
from cosmo.report.table import markdown
from cosmo.study import Study
from cosmo.study.statistics import summarise

_SHOWN = (("success_rate", 3), ("update_cost_rate", 0), ("net_utility_per_task", 1))
_TRADE = ("success_rate", "update_cost_rate", "net_utility_per_task")


def _cell(summary: polars.DataFrame, metric: str, digits: int) -> str:
    row = summary.filter(metric=metric)
    if not len(row) or row["mean"][0] is None:
        return "–"
    return f"{row['mean'][0]:.{digits}f} ± {row['ci95'][0]:.{digits}f}"


def together(*studies: Study) -> polars.DataFrame:
    """All that was measured."""
    return polars.concat([each.metrics for each in studies], how="diagonal_relaxed")


def standings(metrics: polars.DataFrame) -> str:
    """Every method in every scenario, best first: success, update cost, net utility."""
    rows = []
    summary = summarise(metrics.filter(polars.col("sweep").is_null()))
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
    return markdown(header, rows)


def trade_points(metrics: polars.DataFrame) -> polars.DataFrame:
    """Means at every step of every sweep on `district`, and where nothing is swept, of those that
    are; `line` is what is swept.
    """
    usual = polars.col("sweep").is_null() & (polars.col("scenario") == "district")
    own = metrics.filter(usual & (polars.col("method") == OWN)).with_columns(
        sweep=polars.lit("utility.update_weight"), sweep_value=polars.lit(4.0)
    )
    swept = polars.concat(
        [metrics.filter(polars.col("sweep").is_not_null()), own], how="diagonal_relaxed"
    )
    base = polars.col("method").str.split(":").list.first()
    field = polars.col("sweep").str.split(".").list.last()
    line = (base + ", " + field).alias("line")
    means = swept.group_by(line, "sweep_value", maintain_order=True).agg(polars.col(*_TRADE).mean())
    return means.sort(polars.col("line").str.starts_with(OWN), descending=True, maintain_order=True)


def trade(metrics: polars.DataFrame) -> str:
    """The same as a table."""
    rows = [
        (
            f"`{row['line'].replace(', ', '`, ')} = {row['sweep_value']:g}",
            f"{row['success_rate']:.3f}",
            f"{row['update_cost_rate']:.0f}",
            f"{row['net_utility_per_task']:.1f}",
        )
        for row in trade_points(metrics)
        .sort(polars.col("line") != f"{OWN}, update_weight", maintain_order=True)
        .iter_rows(named=True)
    ]
    return markdown(("`district`", "success", "update cost, units/s", "net utility"), rows)


def objectives(metrics: polars.DataFrame) -> str:
    """Success and net utility of the controller with each of its objectives, and what the second
    one gains over equal runs, with 95 % half-widths.
    """
    rows, other = [], f"{OWN}:objective=utility"
    for scenario in metrics["scenario"].unique(maintain_order=True):
        here = metrics.filter(scenario=scenario).sort("seed", "episode")
        both = [here.filter(method=name) for name in (OWN, other)]
        found = {
            metric: interval((both[1][metric] - both[0][metric]).to_list())
            for metric in ("success_rate", "net_utility_per_task")
        }
        success, utility = found.values()
        rows.append(
            (
                f"`{scenario}`",
                f"{here['rate'][0]:g}",
                *(
                    f"{each['success_rate'].to_numpy().mean():.3f} at"
                    f" {each['update_cost_rate'].to_numpy().mean():.0f}"
                    for each in both
                ),
                f"{success.mean:+.3f} ± {success.ci95:.3f}",
                *(f"{each['net_utility_per_task'].to_numpy().mean():.1f}" for each in both),
                f"{utility.mean:+.1f} ± {utility.ci95:.1f}",
            )
        )
    header = (
        *("scenario", "tasks/s an EN", "success at units/s, `success`", "the same, `utility`"),
        *("difference", "net utility, `success`", "net utility, `utility`", "gain"),
    )
    return markdown(header, rows)


def _success(metrics: polars.DataFrame, name: str) -> polars.DataFrame:
    point = ["arrivals", "rate", "seed"]
    rows = metrics.filter(method=name).sort(*point, "episode")
    own = rows.group_by(point, maintain_order=True).agg(polars.col("success_rate").mean())
    return own.rename({"success_rate": name})


def compared_pairs(metrics: polars.DataFrame, rival: str) -> str:
    """Success of the controller and of a rival at every load of a scenario, and their difference
    over equal runs with its 95 % half-width.
    """
    both = _success(metrics, OWN).join(_success(metrics, rival), on=["arrivals", "rate", "seed"])
    rows = []
    for process, rate in both.select("arrivals", "rate").unique().sort("arrivals", "rate").rows():
        here = both.filter(arrivals=process, rate=rate).sort("seed")
        found = interval((here[OWN] - here[rival]).to_list())
        rows.append(
            (
                process,
                f"{rate:g}",
                f"{here[OWN].to_numpy().mean():.4f}",
                f"{here[rival].to_numpy().mean():.4f}",
                f"{round(found.mean, 4) + 0.0:+.4f} ± {found.ci95:.4f}",
            )
        )
    header = ("arrivals", "tasks/s", f"`{OWN}`", f"`{rival}`", "difference")
    return markdown(header, rows)


def page(
    rivals: Study, universal: Study | None, pair: Study | None, past: Study | None
) -> dict[str, str]:
    """Every measured part of the page that there are data for."""
    metrics = rivals.metrics if universal is None else together(rivals, universal)
    found = {"standings": standings(metrics), "trade": trade(metrics)}
    if pair is not None and past is not None:
        alone = pair.metrics.filter(scenario="paper")
        shared = [pair.metrics.filter(scenario="shared-sn"), past.metrics.filter(_specialist())]
        found["prices"] = compared_pairs(alone, "adaptive-prices")
        found["specialist"] = compared_pairs(
            polars.concat(shared, how="diagonal_relaxed"), _SPECIALIST
        )
    return found


# What is switched off, in the order of the code.
_PARTS = {
    "updates": "all status updates",
    "subset": "SN subsets",
    "rivals": "adding the rivals' traffic to the backlog estimate",
    "full": "remembering that an SN was full",
    "scaling": "scaling with the EN/SN ratio and the node count",
    "rotation": "using SNs that look alike in turn",
    "uncertainty": "uncertainty that grows with age and rivals",
    "closing": "statuses with which SNs close and open, and the reserve",
    "silence": "taking a silent SN to be down",
    "unknown": "wider uncertainty where demands are not as declared",
    "late_results": "counting late results against an SN",
    "stagger": "weighting the benefit of a status differently for each EN",
    "tie_noise": "a random term that separates near-equal SNs",
    "price": "a price on capacity",
    "full_boost": "more statuses from SNs that are often full",
    "unreported": "a benefit of change that has not been reported for long",
}


def parts_worth(played: Study) -> str:
    """Success of the whole minus that without each part, paired over runs, with half-widths, and on
    how many sites it gains or loses more than that.
    """
    whole, left_out = _whole_and_parts(played)
    scenarios = whole["scenario"].unique(maintain_order=True).to_list()
    rows = []
    for part, what in _PARTS.items():
        cells, gains, losses = [], 0, 0
        for scenario in scenarios:
            without = left_out.filter(method=f"{OWN}:off={part}")
            both = (each.sort("seed", "episode") for each in (whole, without))
            mine, its = (each.filter(scenario=scenario)["success_rate"] for each in both)
            found = interval((mine - its).to_list())
            gains += found.mean > found.ci95
            losses += -found.mean > found.ci95
            cells.append(f"{round(found.mean, 4) + 0.0:+.4f} ± {found.ci95:.4f}")
        rows.append((f"`{part}`", what, f"{gains}", f"{losses}", *cells))
    header = ("part", "what is switched off", "sites where it gains", "where it loses")
    return markdown((*header, *(f"`{s}`" for s in scenarios)), rows)


def parts(played: Study) -> str:
    """Success and update cost of the whole and without each part, where many nodes meet."""
    both = polars.concat(_whole_and_parts(played), how="diagonal_relaxed")
    scenarios = both["scenario"].unique(maintain_order=True).to_list()
    rows = []
    for name in both["method"].unique(maintain_order=True):
        cells = []
        for scenario in scenarios:
            here = both.filter(scenario=scenario, method=name)
            success, cost = (here[k].to_numpy().mean() for k in _TRADE[:2])
            cells.append(f"{success:.3f} at {cost:.0f}")
        rows.append((f"`{name}`", *cells))
    header = ("success at units/s", *(f"`{scenario}`" for scenario in scenarios))
    return markdown(header, rows)


def _whole_and_parts(played: Study) -> tuple[polars.DataFrame, polars.DataFrame]:
    whole = polars.col("sweep").is_null()
    return played.metrics.filter(whole), played.metrics.filter(~whole)


def card(universal: Study, pair: Study) -> dict[str, str]:
    """The measured part of the controller's card."""
    played = together(universal, pair).filter(polars.col("sweep").is_null(), method=OWN)
    return {"results": standings_by_load(played)}


_SPECIALIST = "cosmo-next/shared-sn"


def _specialist() -> polars.Expr:
    plain = polars.col("sweep").is_null() & (polars.col("scenario") == "shared-sn")
    return plain & (polars.col("method") == _SPECIALIST)


def standings_by_load(metrics: polars.DataFrame) -> str:
    """Of one method at every load of every scenario."""
    summary, rows = summarise(metrics), []
    keys = ["scenario", "arrivals", "rate"]
    for scenario, process, rate in summary.select(keys).unique(maintain_order=True).rows():
        here = summary.filter(scenario=scenario, arrivals=process, rate=rate)
        cells = (_cell(here, metric, digits) for metric, digits in _SHOWN)
        rows.append((f"`{scenario}`", process, f"{rate:g}", *cells))
    header = ("scenario", "arrivals", "tasks/s an EN", "success", "update cost, units/s")
    return markdown((*header, "net utility"), rows)
