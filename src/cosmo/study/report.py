"""From a study's results to figures, tables and the page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from cosmo.control import method
from cosmo.errors import InputError
from cosmo.files import file_name, made_folder, whole_file
from cosmo.node import Method
from cosmo.policy.learned_methods import LEARNED
from cosmo.policy.trained import trained_method
from cosmo.study import figures, tables
from cosmo.study.gains import average_gains_table, claims_beside, gains_table, net_utility_table
from cosmo.study.page import write_page
from cosmo.study.paper_form import has_the_papers_world, write_paper_form
from cosmo.study.recording import record
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import Study
from cosmo.study.units import at_load
from cosmo.workload import episode

_RECORDED = ("cosmo", "aoi-threshold", "self-tracking")  # what the episode viewer can show
_FIGURES = (
    ("success", "success_rate"),
    ("accuracy", "decision_accuracy"),
    ("update-cost", "update_cost_rate"),
    ("regret", "decision_regret"),
)


@dataclass(frozen=True)
class Written:
    """Where things are."""

    page: Path
    figures: list[Path]
    tables: list[Path]


def write_report(study: Study, out: Path) -> Written:
    """Figures (PDF, SVG, PNG), tables (Markdown, LaTeX) and `report.html`."""
    pictures, texts = out / "figures", out / "tables"
    for folder in (out, pictures, texts):
        made_folder(folder)
    summary = with_paper(summarise(study.metrics), study.plan)
    limits = bounds(study.plan, study.bounds)
    drawn: list[Path] = []
    written: list[Path] = []
    for scenario in summary["scenario"].unique(maintain_order=True):
        own, own_limits = summary.filter(scenario=scenario), limits.filter(scenario=scenario)
        curves = study.curves.filter(scenario=scenario)
        suffix = "" if summary["scenario"].n_unique() == 1 else f"-{file_name(scenario)}"
        drawn += _figures(own, own_limits, curves, pictures, suffix)
        metrics = study.metrics.filter(scenario=scenario)
        written += _tables(own, metrics, curves, texts, suffix)
        if has_the_papers_world(own):
            more = write_paper_form(study, own, own_limits, out / f"paper{suffix}")
            drawn, written = drawn + more[0], written + more[1]
    page = out / "report.html"
    write_page(study, summary, limits, _recordings(study), page)
    return Written(page, drawn, written)


def _figures(
    summary: polars.DataFrame,
    limits: polars.DataFrame,
    curves: polars.DataFrame,
    folder: Path,
    suffix: str,
) -> list[Path]:
    drawn = []
    for name, metric in _FIGURES:
        if summary.filter(polars.col("mean").is_not_null(), metric=metric).height:
            drawn += figures.metric_figure(summary, limits, metric, folder / f"{name}{suffix}")
    drawn += figures.pareto_figure(summary, folder / f"pareto{suffix}")
    if len(curves):
        both = curves.filter(method="cosmo-flat")["rate"].unique()
        main = curves["method"].unique(maintain_order=True).to_list()[:1]
        drawn += figures.reward_figure(curves, main, folder / f"reward{suffix}")
        if len(both):
            paired = curves.filter(polars.col("rate").is_in(both.implode()))
            path = folder / f"ablation-reward{suffix}"
            drawn += figures.reward_figure(paired, ["cosmo", "cosmo-flat"], path)
    return drawn


def _tables(
    summary: polars.DataFrame,
    metrics: polars.DataFrame,
    curves: polars.DataFrame,
    folder: Path,
    suffix: str,
) -> list[Path]:
    texts: dict[str, str] = {}
    processes = summary["arrivals"].unique(maintain_order=True).to_list()
    if {"cosmo", "cosmo-flat"} <= set(summary["method"]):
        for name, columns in (
            ("ablation", tables.ABLATION),
            ("ablation-detailed", tables.ABLATION_DETAILED),
        ):
            header = ["arrivals", "tasks/s", "method", *(title for title, _, _ in columns)]
            rows = tables.ablation_rows(summary, columns, processes)
            caption = "Hierarchical gate–route ablation (mean ± standard deviation)"
            texts[f"{name}{suffix}.md"] = tables.markdown(header, rows)
            texts[f"{name}{suffix}.tex"] = tables.latex(header, rows, caption, f"tab:{name}")
    if "cosmo" in set(summary["method"]):
        claims = claims_beside(summary)
        texts[f"gains{suffix}.md"] = "\n\n".join(
            f"{metric}\n\n{table(metrics, 'cosmo', metric, claims)}"
            for metric in ("success_rate", "decision_accuracy")
            for table in (gains_table, average_gains_table)
        )
        texts[f"gains{suffix}.md"] += (
            f"\n\nnet_utility_per_task\n\n{net_utility_table(metrics, 'cosmo', claims)}"
        )
        texts[f"paired{suffix}.md"] = tables.paired_table(metrics, "cosmo", "success_rate")
    if len(curves):
        texts[f"t90{suffix}.md"] = tables.stabilisation_table(curves)
    if summary["paper"].is_not_null().any():
        texts[f"paper-against-ours{suffix}.md"] = tables.paper_against_ours(summary)
    shown = (
        ("success_rate", 3),
        ("net_utility_per_task", 1),
        ("decision_accuracy", 3),
        ("update_cost_rate", 1),
    )
    texts[f"comparison{suffix}.md"] = "\n\n".join(
        f"{metric}, {process}\n\n{tables.comparison(summary, process, metric, digits)}"
        for metric, digits in (*shown, ("decision_regret", 3))
        for process in processes
    )
    written = []
    for name, text in texts.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")
        written.append(folder / name)
    return written


def _recordings(study: Study) -> list[dict[str, Any]]:
    """One episode of a few methods, at the highest load of the last arrival process."""
    points = list(study.plan.points())
    scenario, process, rate, _ = max(points, key=lambda point: (point[1] == "poisson", point[2]))
    here = at_load(scenario, process, rate)
    seed = study.plan.seeds[0]
    found = []
    for name in _RECORDED:
        if (scenario, process, rate, name) not in points:
            continue
        if name in LEARNED:
            try:
                folder = study.checkpoint(name, rate, process, scenario.name)
            except InputError:
                continue  # it has not got that far
            chosen: Method = trained_method(name, folder)
        else:
            chosen = method(name)
        recording = record(here, chosen, episode(here, seed, 0), seed)
        title = f"{name}, {process}, {rate:g} tasks/s, seed {seed}, episode 0"
        found.append({"title": title, **recording})
    return found
