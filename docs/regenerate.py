"""Writes the measured parts of the docs anew: `make docs` (hours, on ns-3 and on trainings most).

`docs/data/` holds what the pages were made from: metrics and curves of the whole paper, of
`cosmo-next` and all baselines, of both engines, and the fit of the embedded channel. A
measured part of a page stands between `<!-- NAME -->` and `<!-- end -->`.

    python docs/regenerate.py            # measure everything again, then write
    python docs/regenerate.py engines    # measure only that
    python docs/regenerate.py --pages    # write from docs/data alone
"""

import json
import re
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import next_page
import numpy as np
import polars

from cosmo.control import BASELINES, method, simulate
from cosmo.errors import InputError
from cosmo.ns3.calibrate import calibrate
from cosmo.scenario import load as load_scenario
from cosmo.study import LocalExecutor, Study, conduct, figures, load, load_plan, tables
from cosmo.study.checks import CURVES_FILE, METRICS_FILE
from cosmo.study.plan import Plan
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import STUDY

DOCS = Path(__file__).parent
DATA = DOCS / "data"
STUDIES = {
    "paper": load_plan("paper"),
    "reward-scale-1": load_plan(
        "paper",
        [
            'compare=[{methods=["cosmo"], rates=[120.0, 220.0, 320.0]}]',
            'training.settings=["sn.reward_scale=1.0"]',
        ],
    ),
    "engines": load_plan("engines"),
    "next": load_plan("next"),
}
CALIBRATION = "calibration"
SHOWN = (*next_page.SHOWN, ("decision_regret", "Decision regret", 3))


def measure(name: str, plan: Plan) -> None:
    """Carry a study out and keep its small data."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        print(f"{name} …", flush=True)
        progress = conduct(plan, folder, LocalExecutor())
        if progress.failed:
            sys.exit(f"{name}: {progress.failed}")
        (DATA / name).mkdir(parents=True, exist_ok=True)
        for file in (STUDY, METRICS_FILE, CURVES_FILE):
            if (folder / file).exists():
                shutil.copy(folder / file, DATA / name / file)


def measure_channel() -> None:
    """Fit the embedded channel to ns-3, as `cosmo calibrate access` does."""
    print(f"{CALIBRATION} …", flush=True)
    scenario = load_scenario()
    found = calibrate(scenario, scenario.workload.rates_of_interest, seed=1000, episodes=2)
    fields = ("rate_mbps", "overhead_ms", "contention_ms")
    told = {
        "access": {name: getattr(found, name) for name in fields},
        "rates": [asdict(fit) for fit in found.fits],
    }
    text = json.dumps(told, indent=1)
    (DATA / f"{CALIBRATION}.json").write_text(text + "\n", encoding="utf-8")


def all_metrics(summary: polars.DataFrame) -> str:
    """Success, accuracy, update cost and regret for both arrival processes."""
    return "\n\n".join(
        f"#### {title}, {process}\n\n{tables.comparison(summary, process, metric, digits)}"
        for metric, title, digits in SHOWN
        for process in ("deterministic", "poisson")
    )


def reward_scale(ours: polars.DataFrame, other: polars.DataFrame) -> str:
    """`cosmo` with s_r = 10 V and with s_r = V."""
    rows = []
    for scale, summary in (("10 V", ours), ("V", other)):
        points = (
            other.select("arrivals", "rate").unique(maintain_order=True).sort("arrivals", "rate")
        )
        for process, rate in points.iter_rows():
            here = summary.filter(arrivals=process, rate=rate, method="cosmo")
            cells = [
                "{mean:.{digits}f} ± {std:.{digits}f}".format(
                    digits=digits, **here.filter(metric=metric).row(0, named=True)
                )
                for metric, _, digits in SHOWN[:3]
            ]
            rows.append((scale, process, f"{rate:g}", *cells))
    header = ("s_r", "arrivals", "tasks/s", "success rate", "decision accuracy", "update cost")
    return tables.markdown(header, rows)


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
        found = [simulate(scenario, method("all-offload"), seed) for seed in (0, 1, 2)]
        return float(np.mean([each.metrics["success_rate"].mean for each in found]))

    rate = round(96.0 * 1472 / 1502, 2)
    on_ns3 = metrics.filter(scenario="paper-ns3", method="all-offload", rate=320.0)
    real = np.mean(on_ns3.filter(arrivals="poisson")["success_rate"].to_numpy())
    return (
        "At 320 tasks/s two things are near saturation that hardly matter below. The link to the"
        " SN is 93 % busy if everything is offloaded, 95 % with packet headers: `all-offload`"
        f" (Poisson) falls from {success(96.0):.3f} to {success(rate):.3f} on the embedded engine"
        f" too when the link is slowed by as much (`--set backhaul.up_mbps={rate}`), and is"
        f" {real:.3f} on ns-3. And the access channel's longest delays are longer than R6's (the"
        " 95th percentile below, under Calibration)."
    )


def transfer(summary: polars.DataFrame) -> str:
    """`cosmo` on both engines."""
    rows = []
    here = summary.filter(method="cosmo")
    for process, rate in here.select("arrivals", "rate").unique().sort("arrivals", "rate").rows():
        cells = []
        for metric, _, digits in SHOWN[:3]:
            for world in tables.worlds_of(summary):
                point = here.filter(arrivals=process, rate=rate, scenario=world, metric=metric)
                row = point.row(0, named=True)
                cells.append(f"{row['mean']:.{digits}f} ± {row['std']:.{digits}f}")
        rows.append((process, f"{rate:g}", *cells))
    names = [f"{title}, {engine}" for _, title, _ in SHOWN[:3] for engine in ("embedded", "ns-3")]
    return tables.markdown(("arrivals", "tasks/s", *names), rows)


def calibration(told: dict[str, Any]) -> str:
    """What `cosmo calibrate access` found."""
    rows = []
    for fit in told["rates"]:
        cells = []
        for name in ("mean_ms", "p95_ms"):
            real, ours = fit[name], fit[f"embedded_{name}"]
            cells += [f"{real:.2f}", f"{ours:.2f}", f"{ours / real - 1:+.1%}"]
        rows.append((f"{fit['rate']:g}", *cells, str(fit["lost"])))
    header = ("tasks/s", "mean, ms", "R6", "error", "p95, ms", "R6", "error", "lost")
    fields = ", ".join(f"`access.{name}` = {value}" for name, value in told["access"].items())
    return f"{fields}\n\n{tables.markdown(header, rows)}"


def made_from(study: Study) -> str:
    """Versions and machine."""
    versions = ", ".join(f"{name} {value}" for name, value in study.about["versions"].items())
    return (
        f"Measured with cosmo {study.about['version']} ({versions}) on {study.about['machine']};"
        f" {len(study.plan.seeds)} runs, {study.plan.episodes} evaluation episodes each."
    )


def write(page: str, parts: dict[str, str]) -> None:
    """Put texts between their marks."""
    path = DOCS / page
    text = path.read_text(encoding="utf-8")
    for name, part in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not pattern.search(text):
            sys.exit(f"{page}: no place for {name}")
        text = pattern.sub(lambda found: f"{found[1]}\n{part}\n\n{found[2]}", text)  # noqa: B023
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Measure, then write the pages."""
    known = [*STUDIES, CALIBRATION]
    chosen = [] if "--pages" in sys.argv[1:] else sys.argv[1:] or known
    for name in chosen:
        if name not in known:
            sys.exit(f"{name}: must be one of {', '.join(known)}")
        if name == CALIBRATION:
            measure_channel()
        else:
            measure(name, STUDIES[name])
    summaries = {}
    for name in STUDIES:
        try:
            study = load(DATA / name)
        except InputError as error:  # of an older version
            print(f"{name}: {error}; what is made of it stays as it is")
            continue
        summaries[name] = with_paper(summarise(study.metrics), study.plan)
    paper, images = load(DATA / "paper"), DOCS / "images"
    summary, limits = summaries["paper"], bounds(paper.plan)
    for stem, metric, *_ in (("success", "success_rate"), ("update-cost", "update_cost_rate")):
        figures.metric_figure(summary, limits, metric, images / stem, formats=("png",))
    figures.pareto_figure(summary, images / "pareto", formats=("png",))
    figures.reward_figure(paper.curves, ["cosmo"], images / "reward", formats=("png",))
    header = ["arrivals", "tasks/s", "method"]
    processes = ["deterministic", "poisson"]
    ablation, detailed = (
        tables.markdown(
            [*header, *(title for title, _, _ in columns)],
            tables.ablation_rows(summary, columns, processes),
        )
        for columns in (tables.ABLATION, tables.ABLATION_DETAILED)
    )
    write(
        "reproduction.md",
        {
            "made-from": made_from(paper),
            "paper-against-ours": tables.paper_against_ours(summary),
            "ablation": f"{ablation}\n\n{detailed}",
            "gains": "\n\n".join(
                f"{title}:\n\n{tables.gains_table(summary, 'cosmo', metric)}"
                for title, metric in (
                    ("Success rate", "success_rate"),
                    ("Decision accuracy", "decision_accuracy"),
                )
            ),
            "t90": tables.stabilisation_table(paper.curves),
            "all-loads": all_metrics(summary),
        },
    )
    # The same methods, with ten runs, are part of the study of cosmo-next.
    past = load(DATA / "next")
    plain = past.metrics.filter(
        polars.col("sweep").is_null(), polars.col("method").is_in(BASELINES)
    )
    rivals = with_paper(summarise(plain), past.plan)
    usual = polars.col("rate").is_in(load_scenario().workload.rates_of_interest) & polars.col(
        "arrivals"
    ).is_in(processes)
    write("learning.md", {"reward-scale": reward_scale(summary, summaries["reward-scale-1"])})
    write(
        "baselines.md",
        {
            "paper": all_metrics(rivals.filter(usual, scenario="paper")),
            "shared-sn": all_metrics(rivals.filter(scenario="shared-sn")),
        },
    )
    write(
        "ns3.md",
        {"calibration": calibration(json.loads((DATA / f"{CALIBRATION}.json").read_text()))},
    )
    if "engines" in summaries:
        both = summaries["engines"]
        shown = (f"#### {each}\n\n{tables.engines(both, each)}" for each in processes)
        parts = {"engines": "\n\n".join(shown), "transfer": transfer(both)}
        write("ns3.md", parts | {"explained": explained(load(DATA / "engines").metrics)})
    write("next.md", next_page.page(past, summaries["paper"]))
    points = next_page.trade_points(past.metrics)
    next_page.trade_figure(points, images / "next-trade.png")
    shared = rivals.filter(scenario="shared-sn")
    figures.metric_figure(
        shared,
        bounds(past.plan).filter(scenario="shared-sn"),
        "success_rate",
        images / "shared-sn",
        formats=("png",),
    )


if __name__ == "__main__":
    main()
