"""The measured parts of docs/reproduction.md, learning.md, intervals.md and ablation.md."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import polars
from welch import Sample, welch_p, welch_power

from cosmo.measure import METRICS
from cosmo.report import tables
from cosmo.report.gains import (
    average_gains_table,
    claims_beside,
    gains_at_loads,
    gains_table,
    net_utility_table,
)
from cosmo.report.table import markdown
from cosmo.scenario import load as load_scenario
from cosmo.study import Study
from cosmo.study.paper_results import reported
from cosmo.study.statistics import rivals_of, summarise, with_paper

BOTH = ("deterministic", "poisson")
SIDE_BY_SIDE = ("success_rate", "decision_accuracy", "update_cost_rate", "net_utility_per_task")
SHOWN = tuple(
    (name, METRICS[name].label.capitalize(), METRICS[name].digits)
    for name in (*SIDE_BY_SIDE, "decision_regret")
)
PAIR = ("cosmo", "cosmo-flat")


def summary_of(study: Study) -> polars.DataFrame:
    """Means and intervals over runs, with the paper's numbers beside them."""
    return with_paper(summarise(study.metrics), study.plan)


def all_metrics(summary: polars.DataFrame) -> str:
    """Success, accuracy, update cost, net utility and regret for both arrival processes."""
    return "\n\n".join(
        f"#### {title}, {process}\n\n{tables.comparison(summary, process, metric, digits)}"
        for metric, title, digits in SHOWN
        for process in BOTH
    )


def made_from(study: Study) -> str:
    """Versions and machine."""
    versions = ", ".join(f"{name} {value}" for name, value in study.about["versions"].items())
    return (
        f"Measured with cosmo {study.about['version']} ({versions}) on {study.about['machine']};"
        f" {len(study.plan.seeds)} runs, {study.plan.episodes} evaluation episodes each."
    )


def _cell(summary: polars.DataFrame, metric: str, digits: int, **point: object) -> str:
    """Mean ± standard deviation over runs; – if it was not measured."""
    row = summary.filter(metric=metric, **point)
    if not len(row) or row["mean"][0] is None:
        return "–"
    spread = "" if row["std"][0] is None else f" ± {row['std'][0]:.{digits}f}"
    return f"{row['mean'][0]:.{digits}f}{spread}"


def reward_scale(ours: polars.DataFrame, other: polars.DataFrame) -> str:
    """The paper's `cosmo`, ours with s_r = V (its word) and ours with s_r = 10 V, side by side."""
    rows = []
    points = other.select("arrivals", "rate").unique().sort("arrivals", "rate").rows()
    for process, rate in points:
        place = {"arrivals": process, "rate": rate, "method": "cosmo"}
        for metric, title, digits in SHOWN:
            if metric not in SIDE_BY_SIDE:
                continue
            paper = ours.filter(metric=metric, **place)["paper"][0]
            told = "–" if paper is None else f"{paper:.{digits}f}"
            cells = (_cell(summary, metric, digits, **place) for summary in (other, ours))
            rows.append((process, f"{rate:g}", title.lower(), told, *cells))
    header = ("arrivals", "tasks/s", "metric", "paper", "s_r = V", "s_r = 10 V")
    return markdown(header, rows)


def gains(study: Study, focus: str = "cosmo") -> str:
    """On average and at every load: success and accuracy, and net utility beside them."""
    claims = claims_beside(summary_of(study))
    relative = "\n\n".join(
        f"{title}:\n\n{table(study.metrics, focus, metric, claims)}"
        for table, which in ((average_gains_table, "on average"), (gains_table, "at each load"))
        for metric, title in (
            ("success_rate", f"Success rate, {which}"),
            ("decision_accuracy", f"Decision accuracy, {which}"),
        )
    )
    net = net_utility_table(study.metrics, focus, claims)
    return f"{relative}\n\nNet utility per task, differences:\n\n{net}"


def first_three(study: Study) -> str:
    """The paper has three runs; of a study with more, what the first three say by themselves."""
    seeds = study.plan.seeds[:3]
    if len(study.plan.seeds) == len(seeds):
        return "The tables of this page are of three runs, like the paper's."
    few = replace(study, metrics=study.metrics.filter(polars.col("seed").is_in(seeds)))
    summary = summary_of(few)
    averages = "\n\n".join(
        f"{title}:\n\n{average_gains_table(few.metrics, PAIR[0], metric, claims_beside(summary))}"
        for metric, title in (
            ("success_rate", "Success rate, gains on average"),
            ("decision_accuracy", "Decision accuracy, gains on average"),
        )
    )
    return f"{tables.paper_against_ours(summary)}\n\n{averages}"


def reproduction(study: Study) -> dict[str, str]:
    """Every measured part of reproduction.md that is made of the paper's study."""
    summary = summary_of(study)
    results = tables.results_of(study, summary, summary["scenario"][0])
    names = ("paper-against-ours", "t90", "ablation", "ablation-detailed")
    shown = {name: tables.together(tables.tables_of(results, name)) for name in names}
    return {
        "made-from": made_from(study),
        "paper-against-ours": shown["paper-against-ours"],
        "ablation": f"{shown['ablation']}\n\n{shown['ablation-detailed']}",
        "gains": gains(study),
        "first-three": first_three(study),
        "t90": shown["t90"],
        "all-loads": all_metrics(summary),
    }


def headline(study: Study) -> str:
    """The paper's headline numbers beside ours, Poisson arrivals: the table of the README."""
    summary, claims = summary_of(study), claims_beside(summary_of(study))
    rows = []
    for title, metric, rates, digits in (
        ("success rate", "success_rate", (120.0, 220.0, 320.0), 3),
        ("decision accuracy", "decision_accuracy", (120.0, 220.0, 320.0), 3),
        ("update cost in units/s", "update_cost_rate", (120.0, 320.0), 1),
    ):
        own = summary.filter(metric=metric, arrivals="poisson", method=PAIR[0])
        pairs = [own.filter(rate=rate).select("paper", "mean").row(0) for rate in rates]
        cells = (
            " / ".join(f"{each:.{digits}f}" for each in side) for side in zip(*pairs, strict=True)
        )
        rows.append((f"{title} at {' / '.join(f'{rate:g}' for rate in rates)} tasks/s", *cells))
    theirs = claims.average(PAIR[0], "success_rate", "poisson", "all")["mean"]
    for title, opponents, paper in (
        ("the paper's six baselines", claims.competitors, f"{theirs:+.1%}"),
        ("all rules of this repository", rivals_of(study.metrics, PAIR[0]), "–"),
    ):
        found = gains_at_loads(study.metrics, PAIR[0], "success_rate", opponents)
        mean = fmean(each.gain for each in found if each.arrivals == "poisson")
        rows.append(
            (f"success gain over the best of {title}, mean of all loads", paper, f"{mean:+.1%}")
        )
    return markdown(("`cosmo`, Poisson arrivals", "paper", "ours"), rows)


def intervals(study: Study) -> dict[str, str]:
    """The parts of intervals.md: every variant at every load that it was trained for."""
    summary = summarise(study.metrics)
    window_ms = load_scenario().episode.window_ms
    rows = []
    for rate in sorted(summary["rate"].unique()):
        here = summary.filter(rate=rate, arrivals="poisson")
        for name in here["method"].unique(maintain_order=True):
            own = here.filter(method=name)
            decisions = own.filter(metric="update_decisions")["mean"][0]
            cells = [_cell(own, "update_decisions", 0), f"{window_ms / (decisions - 1):.0f}"]
            cells += [
                _cell(own, metric, digits) for metric, _, digits in SHOWN if metric in SIDE_BY_SIDE
            ]
            rows.append((f"{rate:g}", f"`{name}`", *cells))
    header = (
        "tasks/s", "method", "SN decisions", "mean interval, ms", "success rate",
        "decision accuracy", "update cost (units/s)", "net utility per task",
    )  # fmt: skip
    return {"made-from": made_from(study), "variants": markdown(header, rows)}


def _sample(row: dict[str, float], mean: str, std: str, runs: int) -> Sample:
    return Sample(row[mean], row[std], runs)


def papers_tests(runs: int = 3) -> str:
    """Welch's test of the paper's own means and deviations, and what its sample could find."""
    rows = []
    table = reported().filter(polars.col("metric").is_in(["success_rate", "decision_accuracy"]))
    for metric in ("success_rate", "decision_accuracy"):
        for process in BOTH:
            for rate in (220.0, 320.0):
                here = table.filter(metric=metric, arrivals=process, rate=rate)
                one, other = (
                    _sample(here.filter(method=name).row(0, named=True), "value", "std", runs)
                    for name in PAIR
                )
                rows.append((metric, process, f"{rate:g}", *_tested(one, other)))
    header = (
        "metric", "arrivals", "tasks/s", *PAIR, "difference", "Welch's p",
        "power for this difference",
    )  # fmt: skip
    return markdown(header, rows)


def _tested(one: Sample, other: Sample) -> tuple[str, ...]:
    difference = one.mean - other.mean
    cells = (f"{each.mean:.3f} ± {each.std:.3f}" for each in (one, other))
    p, power = welch_p(one, other), welch_power(difference, one, other)
    return (*cells, f"{difference:+.3f}", f"{p:.2g}", f"{power:.2f}")


def our_tests(metrics: polars.DataFrame, pairs: Sequence[tuple[str, str]]) -> str:
    """Our pairs of variants: Welch's test, and the chance to find a difference of the paper's size.

    The paper's size is that between `cosmo` and `cosmo-flat` at the same load, in success. Holm's p
    is Welch's, corrected for the number of tests in the table.
    """
    summary = summarise(metrics).filter(metric="success_rate")
    rows, chances = [], []
    for process in BOTH:
        for rate in (220.0, 320.0):
            paper = reported().filter(arrivals=process, rate=rate, metric="success_rate")
            theirs = [paper.filter(method=name)["value"][0] for name in PAIR]
            for names in pairs:
                found = [summary.filter(arrivals=process, rate=rate, method=name) for name in names]
                if any(not len(each) for each in found):
                    continue
                one, other = (
                    _sample(each.row(0, named=True), "mean", "std", each["runs"][0])
                    for each in found
                )
                power = welch_power(theirs[0] - theirs[1], one, other)
                chances.append(welch_p(one, other))
                rows.append(
                    (
                        process,
                        f"{rate:g}",
                        f"`{names[0]}` − `{names[1]}`",
                        *_tested(one, other)[:4],
                        f"{theirs[0] - theirs[1]:+.3f}",
                        f"{power:.2f}",
                    )
                )
    header = (
        "arrivals", "tasks/s", "pair", "first", "second", "difference", "Welch's p", "Holm's p",
        "paper's difference", "power for it",
    )  # fmt: skip
    corrected = zip(rows, holm(chances), strict=True)
    return markdown(header, [(*row[:7], f"{p:.2g}", *row[7:]) for row, p in corrected])


def holm(chances: Sequence[float]) -> list[float]:
    """The p values of a family of tests, corrected by Holm's step-down method; in their order."""
    corrected, least = [1.0] * len(chances), 0.0
    for done, place in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        least = max(least, min(1.0, (len(chances) - done) * chances[place]))
        corrected[place] = least
    return corrected


def ablation(paper: Study, own: Study, bootstrapped: Study | None) -> dict[str, str]:
    """The parts of ablation.md, from the studies `paper`, `ablation` and `bootstrapped`."""
    parts = {"papers-tests": papers_tests(), "our-tests": our_tests(paper.metrics, [PAIR])}
    metrics = own.metrics
    if bootstrapped is not None:
        metrics = polars.concat([metrics, bootstrapped.metrics], how="diagonal")
    summary = summarise(metrics)
    columns = (*tables.ABLATION, *tables.ABLATION_DETAILED)
    rows = [
        (
            process,
            f"{rate:g}",
            f"`{name}`",
            *(
                _cell(
                    summary,
                    metric,
                    METRICS[metric].digits,
                    arrivals=process,
                    rate=rate,
                    method=name,
                )
                for metric in (*columns, "net_utility_per_task")
            ),
        )
        for process in BOTH
        for rate in sorted(summary["rate"].unique())
        for name in summary["method"].unique(maintain_order=True)
    ]
    header = ("arrivals", "tasks/s", "method", *map(tables.brief, columns), "net utility")
    pairs = [PAIR, *((name, f"{name}/no-auxiliary") for name in PAIR)]
    pairs += [("cosmo/no-auxiliary", "cosmo-flat/no-auxiliary")]
    pairs += [("cosmo", "cosmo-flat/boundary-only"), ("cosmo", "cosmo-flat/bootstrapped")]
    pairs += [("cosmo/no-auxiliary", "cosmo-flat/bootstrapped-no-auxiliary")]
    return parts | {
        "variants": f"{made_from(own)}\n\n{markdown(header, rows)}",
        "variant-tests": our_tests(metrics, pairs),
    }
