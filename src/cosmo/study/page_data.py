"""What the page of a study shows, as plain data: verdicts first, then numbers, then texts."""

import json
from typing import Any

import polars

from cosmo.measure import METRICS
from cosmo.policy.learned_methods import LEARNED
from cosmo.study import markup, tables
from cosmo.study.gains import claims_beside, gains_table
from cosmo.study.statistics import paired_with, smoothed
from cosmo.study.store import Study
from cosmo.study.style import METRIC_TITLES, looks
from cosmo.study.verdict import YARDSTICK_NOTE, Verdict, verdict


def page_data(study: Study, summary: polars.DataFrame, bounds: polars.DataFrame) -> dict[str, Any]:
    """All but the recorded episodes; `summary` has the paper's numbers beside ours."""
    plan, focus = study.plan, study.focus
    methods = summary["method"].unique(maintain_order=True).to_list()
    yardsticks = [name for name in methods if name != focus and study.is_yardstick(name)]
    scenarios = study.metrics["scenario"].unique(maintain_order=True).to_list()
    found = {name: _verdict(study, name) for name in scenarios}
    told = [each for each in found.values() if each is not None]
    return {
        "subtitle": plan.description or plan.name,
        "focus": focus,
        "home": told[0].scenario if told else scenarios[0],
        "verdicts": [
            {"scenario": each.scenario, "sentence": each.sentence(), "where": each.where()}
            for each in told
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
        },
        "pairs": _pairs(study, methods),
        "bounds": _records(bounds),
        "titles": {name: METRIC_TITLES.get(name, name.replace("_", " ")) for name in METRICS},
        "curves": _curves(study),
        "paper": [{key: _short(row[key]) for key in row} for row in tables.paper_rows(summary)],
        "tables": [table for name in scenarios for table in _tables(study, summary, name, found)],
        "about": _about(study),
    }


def empty_data(subtitle: str, about: list[tuple[str, str]]) -> dict[str, Any]:
    """The data of a page that has nothing but recorded episodes."""
    lists = ("verdicts", "looks", "pairs", "bounds", "curves", "paper", "tables")
    return {
        "subtitle": subtitle,
        "focus": "",
        "home": "",
        "yardstickNote": "",
        "summary": {},
        "titles": {},
        **{name: [] for name in lists},
        "about": about,
    }


def _verdict(study: Study, scenario: str) -> Verdict | None:
    return verdict(study.metrics.filter(scenario=scenario), study.focus, study.is_yardstick)


def _short(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


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
            "success": [_short(row[part]) for part in ("difference", "low", "high")],
        }
        for row in paired_with(study.metrics, study.focus, others).iter_rows(named=True)
        if row["low"] is not None
    ]


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


def _tables(
    study: Study, summary: polars.DataFrame, scenario: str, verdicts: dict[str, Verdict | None]
) -> list[dict[str, Any]]:
    """Of one scenario, whose name is in the titles if there are several."""
    own, metrics = summary.filter(scenario=scenario), study.metrics.filter(scenario=scenario)
    curves, focus = study.curves.filter(scenario=scenario), study.focus
    processes = own["arrivals"].unique(maintain_order=True).to_list()
    found: list[dict[str, Any]] = []
    told = verdicts[scenario]
    if told is not None:
        title = "Standings over all loads of the focus, best success first"
        found.append({"title": title, **_parsed(tables.standings_table(told))})
        for metric, name in (("success_rate", "Success"), ("net_utility_per_task", "Net utility")):
            if metric in metrics.columns:
                title = f"{name} of {focus} minus the others', on equal workloads (95 % interval)"
                text = tables.paired_table(metrics, focus, metric)
                found.append({"title": title, **_parsed(text)})
        for metric in ("success_rate", "decision_accuracy"):
            text = gains_table(metrics, focus, metric, claims_beside(own))
            title = f"Relative gain of {focus} in {METRIC_TITLES[metric]}"
            found.append({"title": title, **_parsed(text)})
    for metric, digits in (("success_rate", 3), ("net_utility_per_task", 1)):
        for process in processes:
            title = f"{METRIC_TITLES[metric].capitalize()}, {process}"
            text = tables.comparison(own, process, metric, digits)
            found.append({"title": title, **_parsed(text)})
    if tables.ablations(own["method"].unique()):
        for title, columns in (
            ("Gate ablation (mean ± standard deviation over runs)", tables.ABLATION),
            ("Gate ablation in detail", tables.ABLATION_DETAILED),
        ):
            header = ["arrivals", "tasks/s", "method", *(name for name, _, _ in columns)]
            rows = tables.ablation_rows(own, columns, processes)
            found.append({"title": title, "header": header, "rows": rows})
    if len(curves):
        title = "Episodes until the training reward is stable (median t90)"
        found.append({"title": title, **_parsed(tables.stabilisation_table(curves))})
    if study.metrics["scenario"].n_unique() > 1:
        for table in found:
            table["title"] = f"{scenario}: {table['title']}"
    return [table for table in found if table["rows"]]


def _parsed(text: str) -> dict[str, Any]:
    """A Markdown table as header and rows."""
    lines = [[cell.strip("`") for cell in markup.cells(line)] for line in text.splitlines()]
    return {"header": lines[0], "rows": lines[2:]}


def _about(study: Study) -> list[tuple[str, str]]:
    versions = ", ".join(f"{name} {value}" for name, value in study.about["versions"].items())
    return [
        (
            "p",
            f"Made by cosmo {study.about['version']} on {study.about['machine']}, with {versions}.",
        ),
        ("p", "Regenerate it from the study's folder, or do the study again:"),
        ("pre", "cosmo report DIR\ncosmo study run DIR/plan.toml --out ANOTHER"),
        ("h3", "The plan"),
        ("pre", json.dumps(study.plan.model_dump(mode="json"), indent=2)),
    ]
