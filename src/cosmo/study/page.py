"""One HTML file with everything in it: charts, tables, the episode viewer; works offline."""

import json
from importlib import resources
from pathlib import Path
from typing import Any

import polars

from cosmo.files import whole_file
from cosmo.measure import METRICS
from cosmo.study import markup, tables
from cosmo.study.gains import claims_beside, gains_table
from cosmo.study.statistics import smoothed
from cosmo.study.store import Study
from cosmo.study.style import METRIC_TITLES, colour

_HIDDEN = ("random", "never")  # until they are asked for


def write_page(
    study: Study,
    summary: polars.DataFrame,
    bounds: polars.DataFrame,
    recordings: list[dict[str, Any]],
    path: Path,
) -> None:
    """Write `report.html`."""
    from plotly.offline import get_plotlyjs

    methods = summary["method"].unique(maintain_order=True).to_list()
    plan = study.plan
    data = {
        "subtitle": f"{plan.description or plan.name} · {len(plan.seeds)} runs,"
        f" {plan.episodes} evaluation episodes each",
        "summary": _records(summary.drop("paper_std")),
        "bounds": _records(bounds),
        "titles": {name: METRIC_TITLES.get(name, name.replace("_", " ")) for name in METRICS},
        "colours": {name: colour(name) for name in methods},
        "hidden": [name for name in _HIDDEN if name in methods],
        "curves": _curves(study.curves),
        "recordings": recordings,
        "paper": _rounded(tables.paper_rows(summary)),
        "tables": _tables(study, summary),
        "about": _about(study),
    }
    plotly, script = (markup.one_newline(text) for text in (get_plotlyjs(), _part("report.js")))
    values = {
        "POLICY": markup.in_html(markup.policy([plotly, script])),
        "TITLE": markup.in_html(f"CoSMO: {plan.name}"),
        "CSS": _part("report.css"),
        "PLOTLY": plotly,
        "DATA": markup.in_script(data),
        "JS": script,
    }
    with whole_file(path) as temporary:
        temporary.write_text(markup.filled(_part("report.html"), values), encoding="utf-8")


def _part(name: str) -> str:
    return resources.files("cosmo.study").joinpath("page", name).read_text(encoding="utf-8")


def _records(table: polars.DataFrame) -> list[dict[str, Any]]:
    return _rounded(list(table.iter_rows(named=True)))


def _rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            name: float(f"{value:.6g}") if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _curves(curves: polars.DataFrame) -> list[dict[str, Any]]:
    keys = ["scenario", "method", "arrivals", "rate", "seed"]
    return [
        dict(zip(keys, key, strict=True))
        | {"reward": [round(value) for value in smoothed(run.sort("episode")["reward"].to_list())]}
        for key, run in curves.group_by(keys, maintain_order=True)
    ]


def _tables(study: Study, summary: polars.DataFrame) -> list[dict[str, Any]]:
    names = summary["scenario"].unique(maintain_order=True).to_list()
    found = []
    for name in names:
        metrics, curves = study.metrics.filter(scenario=name), study.curves.filter(scenario=name)
        for table in _tables_of(summary.filter(scenario=name), metrics, curves):
            if len(names) > 1:
                table["title"] = f"{name}: {table['title']}"
            found.append(table)
    return found


def _tables_of(
    summary: polars.DataFrame, metrics: polars.DataFrame, curves: polars.DataFrame
) -> list[dict[str, Any]]:
    found = []
    methods = set(summary["method"])
    processes = summary["arrivals"].unique(maintain_order=True).to_list()
    if {"cosmo", "cosmo-flat"} <= methods:
        for title, columns in (
            ("Gate ablation (mean ± standard deviation over runs)", tables.ABLATION),
            ("Gate ablation in detail", tables.ABLATION_DETAILED),
        ):
            header = ["arrivals", "tasks/s", "method", *(name for name, _, _ in columns)]
            rows = tables.ablation_rows(summary, columns, processes)
            found.append({"title": title, "header": header, "rows": rows})
    if "cosmo" in methods:
        for metric in ("success_rate", "decision_accuracy"):
            text = gains_table(metrics, "cosmo", metric, claims_beside(summary))
            title = f"Relative gain of cosmo in {METRIC_TITLES[metric]}"
            found.append({"title": title, **_parsed(text)})
        title = "Success of cosmo minus the others', on equal workloads (95 % bootstrap interval)"
        text = tables.paired_table(metrics, "cosmo", "success_rate")
        found.append({"title": title, **_parsed(text)})
    if len(curves):
        title = "Episodes until the training reward is stable (median t90)"
        found.append({"title": title, **_parsed(tables.stabilisation_table(curves))})
    return found


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
