"""What the page of a study shows, as plain data: verdicts first, then numbers, then texts."""

import json
import math
from dataclasses import replace
from typing import Any

import polars

from cosmo.measure import METRICS, interval_text
from cosmo.policy.learned_methods import LEARNED
from cosmo.report import explained
from cosmo.report.engines import engine_differences, engine_table, sentences
from cosmo.report.paper_claim import claim_sentences
from cosmo.report.style import looks
from cosmo.report.tables import TABLES, Results, results_of, tables_of
from cosmo.report.verdict import YARDSTICK_NOTE
from cosmo.study import method_files
from cosmo.study.statistics import Difference, paired_with, smoothed
from cosmo.study.store import Study

_PAPER = "paper-against-ours"


def page_data(study: Study, summary: polars.DataFrame, bounds: polars.DataFrame) -> dict[str, Any]:
    """All but the recorded episodes; `summary` has the paper's numbers beside ours."""
    plan, focus = study.plan, study.focus
    methods = summary["method"].unique(maintain_order=True).to_list()
    yardsticks = [name for name in methods if name != focus and study.is_yardstick(name)]
    scenarios = study.metrics["scenario"].unique(maintain_order=True).to_list()
    found = [results_of(study, summary, name) for name in scenarios]
    verdicts = [each.verdict for each in found if each.verdict is not None]
    return {
        "subtitle": plan.description or plan.name,
        "focus": focus,
        "home": verdicts[0].scenario if verdicts else scenarios[0],
        "verdicts": [
            {
                "scenario": each.scenario,
                "sentence": each.verdict.sentence(),
                "where": each.verdict.where(),
                "claims": [
                    *claim_sentences(each),
                    *filter(
                        None, [each.verdict.by_net_utility(), each.verdict.upper_limit(bounds)]
                    ),
                ],
            }
            for each in found
            if each.verdict is not None
        ],
        "yardstickNote": YARDSTICK_NOTE,
        "looks": [
            {
                "method": name,
                "colour": look.colour,
                "symbol": look.symbol,
                "dash": look.dash,
                "yardstick": name in yardsticks,
            }
            for name, look in looks(methods, focus, yardsticks).items()
        ],
        "summary": {
            name: [_short(value) for value in summary[name]]
            for name in summary.columns
            if name != "paper_std"
        }
        | {"text": _texts(summary)},
        "pairs": _pairs(study, methods),
        "terms": explained.terms(next(study.plan.points())[0]),
        "methods": explained.methods(study, methods),
        "tuning": explained.tuning(study),
        "sites": explained.sites(study),
        "bounds": _records(bounds),
        "metrics": {
            name: {"label": each.label, **each._asdict()} for name, each in METRICS.items()
        },
        "curves": _curves(study),
        "engines": _engines(study),
        "paper": [table.as_data() for each in found for table in tables_of(each, _PAPER)],
        "tables": _tables(found),
        "about": _about(study),
    }


def empty_data(subtitle: str, about: list[tuple[str, str]]) -> dict[str, Any]:
    """The data of a page that has nothing but recorded episodes."""
    lists = (
        "verdicts",
        "looks",
        "pairs",
        "bounds",
        "curves",
        "paper",
        "tables",
        "terms",
        "methods",
        "sites",
    )
    return {
        "subtitle": subtitle,
        "focus": "",
        "home": "",
        "yardstickNote": "",
        "summary": {},
        "metrics": {},
        "engines": {"points": []},
        **{name: [] for name in lists},
        "about": about,
    }


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _texts(summary: polars.DataFrame) -> list[str]:
    """Every mean with its interval; rounded once, as a number that is rounded twice is wrong."""
    columns = ("metric", "mean", "ci95", "runs")
    return [mean_text(*row) for row in summary.select(columns).iter_rows()]


def mean_text(metric: str, mean: float | None, ci95: float | None, runs: int) -> str:
    """As tables have it, but shares in percent, and no interval beyond what a metric can be."""
    about = METRICS[metric]
    scale, digits, unit = (100.0, 1, " %") if about.is_share else (1.0, about.digits, "")
    if mean is None:
        return interval_text(None, None, 0, digits)
    least = -math.inf if metric.endswith("utility_per_task") else 0.0
    most = 1.0 if about.is_share else math.inf
    if runs > 2 and ci95 is not None and not least <= mean - ci95 <= mean + ci95 <= most:
        low, high = max(least, mean - ci95), min(most, mean + ci95)
        ends = f"({scale * low:.{digits}f} to {scale * high:.{digits}f})"
        return f"{scale * mean:.{digits}f}{unit} {ends}"
    half = None if ci95 is None else scale * ci95
    return interval_text(scale * mean, half, runs, digits) + unit


def _records(table: polars.DataFrame) -> list[dict[str, Any]]:
    return [
        {name: _short(value) for name, value in row.items()} for row in table.iter_rows(named=True)
    ]


def _pairs(study: Study, methods: list[str]) -> list[dict[str, Any]]:
    """The focus minus each other in success, at every load that both were played at."""
    others = [name for name in methods if name != study.focus]
    return [
        {
            "scenario": row["scenario"],
            "arrivals": row["arrivals"],
            "rate": row["rate"],
            "method": row["method"],
            "success": _points(row["difference"], row["low"], row["high"]),
        }
        for row in paired_with(study.metrics, study.focus, others).iter_rows(named=True)
        if row["low"] is not None
    ]


def _points(*difference: float) -> str:
    """A difference of shares with its interval, in points of percentages."""
    return Difference(*(100.0 * each for each in difference)).text(1)


def _engines(study: Study) -> dict[str, Any]:
    """Methods on several engines: the verdict, points of a chart, and a table."""
    found = engine_differences(study)
    points = [
        {
            "label": f"{each.method}, {each.scenario}, {each.arrivals}, {each.rate:g} tasks/s",
            "engines": each.engines,
            "success": [_short(value) for value in each.success],
        }
        for each in found
    ]
    return {"sentences": sentences(found), "table": engine_table(found).as_data(), "points": points}


def _curves(study: Study) -> list[dict[str, Any]]:
    """A training run each; `rate` is null where it was trained once for all loads."""
    keys = ["scenario", "method", "arrivals", "rate", "seed"]
    trainings = study.plan.trainings()
    for_all_loads = {
        name for name, each in trainings.items() if LEARNED[each.method].scope == "scenario"
    }
    found = []
    for key, run in study.curves.group_by(keys, maintain_order=True):
        told = dict(zip(keys, key, strict=True))
        rewards = smoothed(run.sort("episode")["reward"].to_list())
        told |= {"rate": None} if told["method"] in for_all_loads else {}
        found.append({**told, "reward": [round(value) for value in rewards]})
    return found


def _tables(results: list[Results]) -> list[dict[str, Any]]:
    """All of `TABLES` but those that have a section of their own; named by scenario if several."""
    return [
        replace(
            table, title=f"{found.scenario}: {table.title}" if several else table.title
        ).as_data()
        for several in [len(results) > 1]
        for found in results
        for name in TABLES
        if name != _PAPER
        for table in tables_of(found, name)
    ]


def _about(study: Study) -> list[tuple[str, str]]:
    plan = study.plan.model_dump(mode="json")
    if all(scenario.workload.trace for scenario, *_ in study.plan.points()):
        plan = {key: value for key, value in plan.items() if key not in ("arrivals", "rates")}
    trust = " --trust" if any(map(method_files.runs_code, study.plan.methods)) else ""
    again = f"cosmo report DIR{trust}\ncosmo study run DIR/plan.toml{trust} --out ANOTHER"
    versions = ", ".join(f"{name} {value}" for name, value in study.about["versions"].items())
    return [
        (
            "p",
            f"Made by cosmo {study.about['version']} on {study.about['machine']}, with {versions}.",
        ),
        ("p", "Regenerate it from the study's folder, or do the study again:"),
        ("pre", again),
        ("h3", "The plan"),
        ("pre", json.dumps(plan, indent=2)),
    ]
