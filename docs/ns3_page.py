"""The measured parts of docs/ns3.md, from studies of both engines and the fit of the channel."""

from typing import Any

import numpy as np
import polars
from paper_page import SHOWN

from cosmo.control import method, simulate
from cosmo.report.table import markdown
from cosmo.scenario import load as load_scenario


def differences(metrics: polars.DataFrame) -> polars.DataFrame:
    """Success on ns-3 minus that on the embedded engine, at every point."""
    point = ["arrivals", "rate", "method"]
    pairs = metrics.group_by(*point, "scenario").agg(polars.col("success_rate").mean())
    both = pairs.filter(scenario="paper").join(pairs.filter(scenario="paper-ns3"), on=point)
    return both.with_columns(
        difference=polars.col("success_rate_right") - polars.col("success_rate")
    )


def explained(metrics: polars.DataFrame) -> str:
    """How far apart the engines are, in words."""
    gaps = differences(metrics).filter(polars.col("method") != "cosmo")
    lines = []
    for text, some in (
        ("Up to 280 tasks/s", gaps.filter(polars.col("rate") <= 280)),
        ("At 320 tasks/s", gaps.filter(polars.col("rate") == 320)),
    ):
        worst = some.sort(polars.col("difference").abs(), descending=True).row(0, named=True)
        lines.append(
            f"{text} the largest difference is {worst['difference']:+.3f}"
            f" (`{worst['method']}`, {worst['arrivals']}, {worst['rate']:g});"
            f" the mean of their sizes is {np.abs(some['difference'].to_numpy()).mean():.3f}."
        )
    return "\n".join([*lines, "", at_320(metrics)])


def at_320(metrics: polars.DataFrame) -> str:
    """Where the differences at 320 tasks/s come from: the embedded engine with ns-3's headers."""

    def success(up_mbps: float) -> float:
        scenario = load_scenario("paper", ["workload.rate=320", f"backhaul.up_mbps={up_mbps}"])
        found = [simulate(scenario, method("all-offload"), seeds=seed) for seed in (0, 1, 2)]
        return float(np.mean([each.metrics["success_rate"].mean for each in found]))

    rate = round(96.0 * 1472 / 1502, 2)
    on_ns3 = metrics.filter(scenario="paper-ns3", method="all-offload", rate=320.0)
    real = np.mean(on_ns3.filter(arrivals="poisson")["success_rate"].to_numpy())
    return (
        "At 320 tasks/s two resources are near saturation that matter little at lower rates.\n"
        "The link to the SN is 93 % busy if everything is offloaded, 95 % with packet headers.\n"
        f"If the link is slowed by as much (`--set backhaul.up_mbps={rate}`), `all-offload`"
        f" (Poisson) falls from {success(96.0):.3f} to {success(rate):.3f}\n"
        f"on the embedded engine, too; on ns-3 it is {real:.3f}.\n"
        "The longest delays of the access channel are longer than on the embedded engine (the 95th"
        " percentile below, under\nCalibration)."
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


def transfer(summary: polars.DataFrame) -> str:
    """`cosmo` on both engines."""
    rows = []
    here = summary.filter(method="cosmo")
    for process, rate in here.select("arrivals", "rate").unique().sort("arrivals", "rate").rows():
        cells = []
        for metric, _, digits in SHOWN[:3]:
            for world in worlds_of(summary):
                point = here.filter(arrivals=process, rate=rate, scenario=world, metric=metric)
                row = point.row(0, named=True)
                cells.append(f"{row['mean']:.{digits}f} ± {row['std']:.{digits}f}")
        rows.append((process, f"{rate:g}", *cells))
    names = [f"{title}, {engine}" for _, title, _ in SHOWN[:3] for engine in ("embedded", "ns-3")]
    return markdown(("arrivals", "tasks/s", *names), rows)


def many_nodes(summary: polars.DataFrame) -> str:
    """Success and update cost on both engines, world by world."""
    parts = []
    for world in sorted({name.removesuffix("-ns3") for name in summary["scenario"]}):
        both = summary.filter(polars.col("scenario").is_in([world, f"{world}-ns3"]))
        for metric, title, digits in SHOWN:
            if metric in ("success_rate", "update_cost_rate"):
                shown = engines(both, "poisson", metric, digits)
                parts.append(f"`{world}`, {title.lower()}:\n\n{shown}")
    return "\n\n".join(parts)


def calibration(told: dict[str, Any]) -> str:
    """What `calibrate.described` found."""
    rows = []
    for fit in told["rates"]:
        cells = []
        for name in ("mean_ms", "p95_ms"):
            real, ours = fit[name], fit[f"embedded_{name}"]
            cells += [f"{real:.2f}", f"{ours:.2f}", f"{ours / real - 1:+.1%}"]
        rows.append((f"{fit['rate']:g}", *cells, str(fit["lost"])))
    header = ("tasks/s", "mean, ms", "embedded", "error", "p95, ms", "embedded", "error", "lost")
    fields = ", ".join(f"`access.{name}` = {value}" for name, value in told["access"].items())
    return f"{fields}\n\n{markdown(header, rows)}"
