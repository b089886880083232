"""The paper's tables and figures, in its form and order, from the data of the docs."""

from pathlib import Path

import pytest

from cosmo.report.paper_form import has_the_papers_world, write_paper_form
from cosmo.report.tables import results_of
from cosmo.study import load_study
from cosmo.study.statistics import bounds, summarise, with_paper

DATA = Path(__file__).parents[2] / "docs" / "data" / "paper"
ORDER = [
    "all-numbers.md", "figure-4-accuracy.png", "figure-5-success.png", "figure-6-update-cost.png",
    "figure-7-reward.png", "figure-8-ablation-reward.png", "table-1-environment.md",
    "table-2-rewards-and-training.md", "table-3-agents.md", "table-4-workload.md",
    "table-5-ablation.md", "table-6-ablation-detailed.md", "text-gains.md", "text-t90.md",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    study, folder = load_study(DATA), tmp_path_factory.mktemp("form") / "paper"
    summary = with_paper(summarise(study.metrics), study.plan)
    assert has_the_papers_world(summary)
    results = results_of(study, summary, "paper")
    drawn, written = write_paper_form(study, results, bounds(study.plan), folder, ("png",))
    assert {*drawn, *written} == set(folder.iterdir())
    return folder


def test_every_table_and_figure_is_there_under_the_papers_number(folder):
    names = sorted(path.name for path in folder.iterdir() if path.suffix != ".tex")
    assert names == ORDER
    tables = {path.stem for path in folder.glob("table-*.md")}
    assert {path.stem for path in folder.glob("*.tex")} == tables


def test_all_79_numbers_stand_beside_ours(folder):
    assert (folder / "all-numbers.md").read_text().count("\n") == 2 + 79


def test_settings_are_those_that_were_used(folder):
    assert "| en.storage_bytes | 240000 |" in (folder / "table-1-environment.md").read_text()
    assert (
        "| utility.false_positive | 5 |" in (folder / "table-2-rewards-and-training.md").read_text()
    )
    assert "| sn.intervals_ms | 20, 25," in (folder / "table-3-agents.md").read_text()
    assert "| input_bytes | 20000, 50000 |" in (folder / "table-4-workload.md").read_text()


def test_the_detailed_ablation_is_the_papers_six_rows(folder):
    lines = (folder / "table-6-ablation-detailed.md").read_text().splitlines()[2:]
    assert len(lines) == 6
    assert all(line.startswith("| poisson |") for line in lines)
