"""From a study's results to figures, tables and the page."""

from dataclasses import dataclass
from pathlib import Path

import polars

from cosmo.files import file_name, made_folder, whole_file
from cosmo.study import figures, tables
from cosmo.study.gains import average_gains_table, claims_beside, gains_table, net_utility_table
from cosmo.study.page import write_page
from cosmo.study.paper_form import has_the_papers_world, write_paper_form
from cosmo.study.recorded import recordings
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import Study
from cosmo.study.sweeps import sweep_figures, swept_scenarios
from cosmo.study.verdict import Verdict, verdict

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


def write_report(study: Study, out: Path, trust: bool = False) -> Written:
    """Figures (PDF, SVG, PNG), tables (Markdown, LaTeX) and `report.html`.

    For the episode viewer every method is played once more. Those that run code from a file are
    left out of it, unless the study is trusted.
    """
    pictures, texts = out / "figures", out / "tables"
    for folder in (out, pictures, texts):
        made_folder(folder)
    summary = with_paper(summarise(study.metrics), study.plan)
    limits = bounds(study.plan, study.bounds)
    drawn: list[Path] = []
    written: list[Path] = []
    swept = swept_scenarios(study)
    for scenario in summary["scenario"].unique(maintain_order=True):
        own, own_limits = summary.filter(scenario=scenario), limits.filter(scenario=scenario)
        suffix = "" if summary["scenario"].n_unique() == 1 else f"-{file_name(scenario)}"
        # One load of a value of a sweep is a point of the sweep's figure.
        if scenario not in swept or own.select("arrivals", "rate").n_unique() > 1:
            drawn += _figures(study, own, own_limits, pictures, suffix)
        written += _tables(study, own, texts, suffix)
        if has_the_papers_world(own):
            more = write_paper_form(study, own, own_limits, out / f"paper{suffix}")
            drawn, written = drawn + more[0], written + more[1]
    drawn += sweep_figures(study, pictures)
    page = out / "report.html"
    write_page(study, summary, limits, recordings(study, trust), page)
    return Written(page, drawn, written)


def _figures(
    study: Study, summary: polars.DataFrame, limits: polars.DataFrame, folder: Path, suffix: str
) -> list[Path]:
    """Of one scenario."""
    focus, drawn = study.focus, []
    yardsticks = [name for name in summary["method"].unique() if study.is_yardstick(name)]
    for name, metric in _FIGURES:
        if summary.filter(polars.col("mean").is_not_null(), metric=metric).height:
            path = folder / f"{name}{suffix}"
            drawn += figures.metric_figure(
                summary, limits, metric, path, focus=focus, yardsticks=yardsticks
            )
    path = folder / f"pareto{suffix}"
    drawn += figures.pareto_figure(summary, path, focus=focus, yardsticks=yardsticks)
    curves = study.curves.filter(scenario=summary["scenario"][0])
    if len(curves):
        trained = curves["method"].unique(maintain_order=True).to_list()
        main = [focus] if focus in trained else trained[:1]
        drawn += figures.reward_figure(curves, main, folder / f"reward{suffix}")
        for whole, part in tables.ablations(trained):
            both = curves.filter(method=part)["rate"].unique()
            own = curves.filter(polars.col("rate").is_in(both.implode()))
            path = folder / f"ablation-reward{suffix}"
            drawn += figures.reward_figure(own, [whole, part], path)
    return drawn


def _tables(study: Study, summary: polars.DataFrame, folder: Path, suffix: str) -> list[Path]:
    """Of one scenario."""
    texts: dict[str, str] = {}
    scenario, focus = summary["scenario"][0], study.focus
    metrics = study.metrics.filter(scenario=scenario)
    curves = study.curves.filter(scenario=scenario)
    processes = summary["arrivals"].unique(maintain_order=True).to_list()
    told = verdict(metrics, focus, study.is_yardstick)
    if told is not None:
        texts[f"verdict{suffix}.md"] = verdict_text(told)
    if tables.ablations(summary["method"].unique()):
        for name, columns in (
            ("ablation", tables.ABLATION),
            ("ablation-detailed", tables.ABLATION_DETAILED),
        ):
            header = ["arrivals", "tasks/s", "method", *(title for title, _, _ in columns)]
            rows = tables.ablation_rows(summary, columns, processes)
            caption = "Hierarchical gate–route ablation (mean ± standard deviation)"
            texts[f"{name}{suffix}.md"] = tables.markdown(header, rows)
            texts[f"{name}{suffix}.tex"] = tables.latex(header, rows, caption, f"tab:{name}")
    if told is not None:
        claims = claims_beside(summary)
        texts[f"gains{suffix}.md"] = "\n\n".join(
            f"{metric}\n\n{table(metrics, focus, metric, claims)}"
            for metric in ("success_rate", "decision_accuracy")
            for table in (gains_table, average_gains_table)
        )
        if "net_utility_per_task" in metrics.columns:
            net = net_utility_table(metrics, focus, claims)
            texts[f"gains{suffix}.md"] += f"\n\nnet_utility_per_task\n\n{net}"
        texts[f"paired{suffix}.md"] = "\n\n".join(
            f"{metric}\n\n{tables.paired_table(metrics, focus, metric)}"
            for metric in ("success_rate", "net_utility_per_task")
            if metric in metrics.columns
        )
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


def verdict_text(told: Verdict) -> str:
    """The sentence, what it is about, and the standings as a table, in Markdown."""
    return f"{told.sentence()}\n\n({told.where()})\n\n{tables.standings_table(told)}"
