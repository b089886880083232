"""A page of the docs alone takes a newcomer from an empty folder to a page about her own policy:
an own policy, a site with four ENs and three SNs, an own trace of 20 000 tasks, five methods.
"""

import re

import polars
import pytest
from doc_pages import ROOT, follow

from commands import Cosmo

PAGE = ROOT / "docs" / "tasks" / "fifteen_minutes.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


@pytest.fixture
def cosmo_here(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    return Cosmo(monkeypatch, capsys)


def test_a_page_about_the_own_policy(cosmo_here, folder):
    printed = follow(PAGE, cosmo_here)
    [table] = [text for line, text in printed.items() if line.startswith("cosmo compare")]
    assert re.search(r"^ >  by_turns.py:ByTurns", table, re.MULTILINE)
    assert max(map(len, table.splitlines())) <= 80
    page = (folder / "mine" / "report" / "report.html").read_text()
    first = re.search(r'<p id="verdict">([^<]+)', page)[1]
    assert first.startswith("by_turns.py:ByTurns ")
    rows = polars.read_parquet(folder / "mine" / "metrics.parquet")
    assert rows["method"].n_unique() == 6
    own = rows.filter(method="by_turns.py:ByTurns")
    assert own["success_rate"].std() > 0.0  # windows, not replays
    assert own["success_rate"].is_between(0.3, 1.0).all()
    assert len(polars.read_csv(folder / "tasks.csv")) == 20_000


def test_the_same_trace_as_part_of_the_scenario_wherever_one_stands(cosmo_here, folder):
    """Every task of whole windows is played, at every EN, and no UE walks out of a cell."""
    text = (folder / "site.toml").read_text()
    (folder / "recorded.toml").write_text(f'{text}\n[workload]\ntrace = "tasks.csv"\n')
    code, out, err = cosmo_here(
        "simulate", "--scenario", "recorded.toml", "--method", "self-tracking", "--json",
        "--tasks-out", "played.parquet",
    )  # fmt: skip
    assert code == 0, err
    assert '"episodes": 6' in out  # whole windows of 5 s in about 34 s
    played = polars.read_parquet("played.parquet")
    given = polars.read_csv("tasks.csv").filter(polars.col("time_ms") < 30_000)
    assert len(played) == len(given)
    assert set(played["en"]) == {0, 1, 2, 3}
    assert "none" not in set(played["outcome"])
    assert "are played of" not in err
    code, _, err = cosmo_here(
        "simulate", "--scenario", "recorded.toml", "--method", "all-local", "--episodes", "8"
    )
    assert "site: 40 s are played of 34 s recorded: intervals are 1.2 times as wide" in err
