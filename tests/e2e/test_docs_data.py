"""The measured parts of the docs are what docs/data says, and name nothing that does not exist."""

import re

import polars
import pytest
from doc_pages import DOCS, docs_module

from cosmo.control import METHODS
from cosmo.policy.learned_methods import LEARNED
from cosmo.scenario import dump, preset_names
from cosmo.scenario import load as load_scenario
from cosmo.study import load_plan, plan_names

PART = re.compile(r"<!-- ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)
NAME = re.compile(r"\| `([^`|]+)` (?=\|)")


@pytest.fixture(scope="module")
def regenerate():
    return docs_module("regenerate")


@pytest.fixture(scope="module")
def pages(regenerate):
    return regenerate.pages(simulated=False)


def test_pages_are_what_their_data_say(regenerate, pages, monkeypatch):
    monkeypatch.setattr(regenerate, "pages", lambda simulated: pages)
    assert regenerate.differing() == []


def test_a_number_that_was_touched_is_found(regenerate, pages, monkeypatch):
    touched = {page: dict(parts) for page, parts in pages.items()}
    part = touched["reproduction.md"]["paper-against-ours"]
    touched["reproduction.md"]["paper-against-ours"] = part.replace("0.", "1.", 1)
    touched["ns3.md"]["nowhere"] = "a part without a place"
    monkeypatch.setattr(regenerate, "pages", lambda simulated: touched)
    assert set(regenerate.differing()) == {"reproduction.md: paper-against-ours", "ns3.md: nowhere"}


def test_every_part_of_a_page_is_made_by_somebody(pages):
    """But what needs simulation, or data that this version cannot read."""
    for path in DOCS.glob("*.md"):
        here = {name for name, _ in PART.findall(path.read_text())}
        made = set(pages.get(path.name, {}))
        assert made <= here
        assert path.name == "ns3.md" or made == here, path.name


def test_tables_name_methods_that_exist():
    plans = [load_plan(each) for each in [*plan_names(), *(DOCS / "plans").glob("*.toml")]]
    known = {*METHODS, *LEARNED, *(name for plan in plans for name in plan.trainings())}
    worlds = {load_scenario(name).name for name in preset_names()}
    worlds |= {f"held-out-{seed}" for seed in docs_module("held_out").SEEDS}
    found = set()
    for path in DOCS.glob("*.md"):
        for _, part in PART.findall(path.read_text()):
            found |= {name.partition(":")[0] for name in NAME.findall(part)}
    assert "cosmo" in found
    assert found - worlds <= known


def test_topologies_that_no_training_has_seen_are_as_they_were_drawn():
    held_out = docs_module("held_out")
    for seed in held_out.SEEDS:
        text = (held_out.FOLDER / f"{seed}.toml").read_text()
        assert text == dump(held_out.drawn(seed)), seed
    assert (held_out.FOLDER / "plan.toml").read_text() == held_out.plan()


def test_engines_stand_side_by_side():
    rows = [
        {"scenario": world, "arrivals": "poisson", "rate": rate, "method": name,
         "metric": "success_rate", "mean": mean}
        for world, rate, name, mean in (
            ("paper", 120.0, "all-local", 0.25), ("paper-ns3", 120.0, "all-local", 0.26),
            ("paper", 320.0, "all-local", 0.06), ("paper-ns3", 320.0, "all-local", 0.05),
            ("paper", 120.0, "cosmo", 0.99), ("paper-ns3", 120.0, "cosmo", 0.98),
        )
    ]  # fmt: skip
    table = docs_module("ns3_page").engines(polars.DataFrame(rows), "poisson").splitlines()
    assert table[0] == "| method | 120 | 320 |"
    assert table[2:] == [
        "| `all-local` | 0.250 → 0.260 | 0.060 → 0.050 |",
        "| `cosmo` | 0.990 → 0.980 | – |",
    ]
