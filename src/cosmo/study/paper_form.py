"""The paper's tables and figures in its form and order, in one folder, from a study of its world.

Numbers are the paper's: tables 1 to 4 are settings, as this study really had them; its figures 1 to
3 are drawings. What the paper says in its text (gains, t90, single numbers) comes last.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars

from cosmo.files import made_folder, whole_file
from cosmo.learn.config import TrainingConfig
from cosmo.study import figures, tables
from cosmo.study.gains import average_gains_table, claims_beside, gains_table, net_utility_table
from cosmo.study.reported import reported
from cosmo.study.store import Study

_FIGURES = (
    ("figure-4-accuracy", "decision_accuracy"),
    ("figure-5-success", "success_rate"),
    ("figure-6-update-cost", "update_cost_rate"),
)
_PAIR = ("cosmo", "cosmo-flat")
_ABLATIONS = (
    ("table-5-ablation", tables.ABLATION, ("deterministic", "poisson")),
    ("table-6-ablation-detailed", tables.ABLATION_DETAILED, ("poisson",)),
)


def has_the_papers_world(summary: polars.DataFrame) -> bool:
    """Whether a scenario's summary has numbers of the paper beside it, and its method."""
    return bool(summary["paper"].is_not_null().any()) and _PAIR[0] in set(summary["method"])


def write_paper_form(
    study: Study,
    summary: polars.DataFrame,
    limits: polars.DataFrame,
    folder: Path,
    formats: tuple[str, ...] = figures.FORMATS,
) -> tuple[list[Path], list[Path]]:
    """(figures, tables) that were written; `summary` and `limits` are of the paper's world alone.

    What the study has not played is left out.
    """
    made_folder(folder)
    [name] = summary["scenario"].unique()
    metrics, curves = study.metrics.filter(scenario=name), study.curves.filter(scenario=name)
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
    texts = dict(_texts(study, summary, metrics, curves))
    for file, text in texts.items():
        with whole_file(folder / file) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
    return drawn, [folder / file for file in texts]


def _texts(
    study: Study, summary: polars.DataFrame, metrics: polars.DataFrame, curves: polars.DataFrame
) -> Iterator[tuple[str, str]]:
    for stem, caption, fields in _settings(study, summary["scenario"][0]):
        yield from _both(stem, ("field", "value"), fields, caption)
    if set(summary["method"]) >= set(_PAIR):
        for stem, columns, processes in _ABLATIONS:
            rows = tables.ablation_rows(summary, columns, processes)
            header = ("arrivals", "tasks/s", "method", *(title for title, _, _ in columns))
            caption = "Hierarchical gate–route ablation (mean ± standard deviation)"
            yield from _both(stem, header, rows, caption)
    claims = claims_beside(summary)
    yield (
        "text-gains.md",
        "\n\n".join(
            f"{metric}\n\n{table(metrics, _PAIR[0], metric, claims)}"
            for metric in ("decision_accuracy", "success_rate")
            for table in (gains_table, average_gains_table)
        )
        + f"\n\nnet_utility_per_task\n\n{net_utility_table(metrics, _PAIR[0], claims)}",
    )
    if len(curves):
        own = curves.filter(polars.col("method").is_in(_PAIR))
        yield "text-t90.md", tables.stabilisation_table(own)
    yield "all-numbers.md", tables.paper_against_ours(summary)


def _both(
    stem: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str
) -> Iterator[tuple[str, str]]:
    yield f"{stem}.md", tables.markdown(header, rows)
    yield f"{stem}.tex", tables.latex(header, rows, caption, f"tab:{stem}")


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
