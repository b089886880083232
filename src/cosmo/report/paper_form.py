"""The paper's tables and figures in its form and order, in one folder, from a study of its world.

Numbers are the paper's: tables 1 to 4 are settings, as this study really had them; its figures 1 to
3 are drawings. What the paper says in its text (gains, t90, single numbers) comes last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars

from cosmo.files import made_folder, whole_file
from cosmo.learn.config import TrainingConfig
from cosmo.report import figures, tables
from cosmo.report.table import Column, Table
from cosmo.study.paper_results import reported
from cosmo.study.store import Study

_FIGURES = (
    ("figure-4-accuracy", "decision_accuracy"),
    ("figure-5-success", "success_rate"),
    ("figure-6-update-cost", "update_cost_rate"),
)
_PAIR = ("cosmo", "cosmo-flat")
# Files of the report's tables here; the paper's detailed one has Poisson arrivals alone.
_ABLATIONS = (("table-5-ablation", "ablation"), ("table-6-ablation-detailed", "ablation-detailed"))
_TEXTS = (("text-gains", "gains"), ("text-t90", "t90"), ("all-numbers", "paper-against-ours"))


def has_the_papers_world(summary: polars.DataFrame) -> bool:
    """Whether a scenario's summary has numbers of the paper beside it, and its method."""
    return bool(summary["paper"].is_not_null().any()) and _PAIR[0] in set(summary["method"])


def write_paper_form(
    study: Study,
    results: tables.Results,
    limits: polars.DataFrame,
    folder: Path,
    formats: tuple[str, ...] = figures.FORMATS,
) -> tuple[list[Path], list[Path]]:
    """(figures, tables) that were written; `results` and `limits` are of the paper's world alone.

    What the study has not played is left out.
    """
    made_folder(folder)
    summary, curves = results.summary, results.curves
    methods = reported()["method"].unique(maintain_order=True).to_list()
    drawn = []
    for stem, metric in _FIGURES:
        drawn += figures.metric_figure(summary, limits, metric, folder / stem, methods, formats)
    for stem, shown in (("figure-7-reward", _PAIR[:1]), ("figure-8-ablation-reward", _PAIR)):
        own = curves.filter(polars.col("method").is_in(shown))
        rates = own.filter(method=shown[-1])["rate"].unique()
        own = own.filter(polars.col("rate").is_in(rates.implode()))
        if len(own):
            drawn += figures.reward_figure(own, list(shown), folder / stem, formats)
    own = curves.filter(polars.col("method").is_in(_PAIR))
    about = replace(results, focus=_PAIR[0], curves=own)
    written = []
    for stem, table in _tables(study, about):
        written.append(write_text(folder / f"{stem}.md", table.markdown()))
        written.append(write_text(folder / f"{stem}.tex", table.latex(stem)))
    for stem, name in _TEXTS:
        if found := tables.tables_of(about, name):
            written.append(write_text(folder / f"{stem}.md", tables.together(found)))
    return drawn, written


def write_text(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all; its path."""
    with whole_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    return path


def _tables(study: Study, results: tables.Results) -> Iterator[tuple[str, Table]]:
    """(file, table) of settings and ablations."""
    for stem, caption, fields in _settings(study, results.summary["scenario"][0]):
        yield stem, Table(caption, (Column("field"), Column("value")), tuple(fields))
    for stem, name in _ABLATIONS:
        poisson = results.summary.filter(arrivals="poisson")
        here = results if name == "ablation" else replace(results, summary=poisson)
        for table in tables.tables_of(here, name):
            yield stem, table


def _settings(study: Study, name: str) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """(file, caption, rows) of the four tables of settings."""
    scenario = next(found for found, *_ in study.plan.points() if found.name == name)
    world = scenario.model_dump(mode="json")
    config = study.plan.config(_PAIR[0])
    assert isinstance(config, TrainingConfig)
    training = config.model_dump(mode="json")
    runs = {"runs": len(study.plan.seeds), "evaluation_episodes": study.plan.episodes}
    groups = ("mobility", "access", "backhaul", "en", "sn", "storage", "episode")
    environment = {group: world[group] for group in groups}
    rewards = {
        "utility": world["utility"],
        "auxiliary": training["en"].pop("auxiliary"),
        "exploration": training["exploration"],
        "episodes": training["episodes"],
        "validate_every": training["validate_every"],
        **runs,
    }
    agents = {group: training[group] for group in ("encoder", "en", "sn")}
    yield "table-1-environment", "Simulation environment", _rows(environment)
    yield "table-2-rewards-and-training", "Reward and training configuration", _rows(rewards)
    yield "table-3-agents", "Agent architecture and learning parameters", _rows(agents)
    yield "table-4-workload", "Dataset and workload parameters", _rows(world["workload"])


def _rows(told: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Every field with its value, groups by dotted names."""
    rows: list[tuple[str, str]] = []
    for key, value in told.items():
        if isinstance(value, Mapping):
            rows += _rows(value, f"{prefix}{key}.")
        else:
            listed = value if isinstance(value, list) else [value]
            cell = ", ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in listed)
            rows.append((f"{prefix}{key}", cell))
    return rows
