"""From a study's results to figures, tables and the page."""

from dataclasses import dataclass
from pathlib import Path

import polars

from cosmo.files import file_name, made_folder
from cosmo.report import figures, tables
from cosmo.report.engines import engine_differences, engine_table, sentences
from cosmo.report.leaderboard import leaderboard_text
from cosmo.report.markup import in_markdown
from cosmo.report.page import write_page
from cosmo.report.paper_form import has_the_papers_world, write_paper_form, write_text
from cosmo.report.recorded import recordings
from cosmo.report.sweeps import sweep_figures, swept_scenarios
from cosmo.report.verdict import Verdict
from cosmo.scenario.words import knowledge
from cosmo.study.leaderboard import board_of
from cosmo.study.statistics import bounds, summarise, with_paper
from cosmo.study.store import Study

_FIGURES = (
    ("success", "success_rate"),
    ("accuracy", "decision_accuracy"),
    ("update-cost", "update_cost_rate"),
    ("regret", "decision_regret"),
)


@dataclass(frozen=True)
class Written:
    """The files and folders that a report consists of."""

    page: Path
    figures: list[Path]
    tables: list[Path]
    left_out: list[str]  # of the episode viewer: methods that could not be played, and why


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
        results = tables.results_of(study, summary, scenario)
        written += write_tables(results, texts, suffix, known_words(study, scenario))
        if has_the_papers_world(own):
            more = write_paper_form(study, results, own_limits, out / f"paper{suffix}")
            drawn, written = drawn + more[0], written + more[1]
    drawn += sweep_figures(study, pictures)
    found = engine_differences(study)
    if found:
        words = map(in_markdown, sentences(found))
        text = "\n\n".join([*words, engine_table(found).markdown()])
        written.append(write_text(texts / "engines.md", text))
    if study.plan.tracks:
        text = leaderboard_text(board_of(study))
        written.append(write_text(texts / "leaderboard.md", text))
    page = out / "report.html"
    left_out: list[str] = []
    shown = recordings(study, trust, left_out=left_out)
    write_page(study, summary, limits, shown, page, left_out)
    return Written(page, drawn, written, left_out)


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


def known_words(study: Study, scenario: str) -> str:
    """What nodes knew, and what surprised them, as one line of Markdown."""
    played = [each for each, *_ in study.plan.points() if each.name == scenario]
    return in_markdown(" ".join(knowledge(played[0]))) if played else ""


def write_tables(results: tables.Results, folder: Path, suffix: str, known: str) -> list[Path]:
    """All of `tables.TABLES` that one scenario has, `known` below: Markdown, some also LaTeX."""
    written = []
    for name in tables.TABLES:
        found = tables.tables_of(results, name)
        if not found:
            continue
        told = verdict_text(results.verdict) if name == "verdict" and results.verdict else ""
        text = f"{told or tables.together(found)}\n\n{known}"
        written.append(write_text(folder / f"{name}{suffix}.md", text))
        if name in tables.IN_LATEX:
            written.append(write_text(folder / f"{name}{suffix}.tex", found[0].latex(name)))
    return written


def verdict_text(told: Verdict) -> str:
    """The sentence, what it is about, and the standings as a table, in Markdown."""
    words = in_markdown(told.sentence()), f"({in_markdown(told.where())})"
    return "\n\n".join([*words, tables.standings_table(told).markdown()])
