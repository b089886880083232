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


def test_trainings_like_the_shipped_controller_have_its_ranks_and_no_spread(regenerate):
    trainings, study = docs_module("trainings"), regenerate.known("benchmark")
    told = {"rounds": {"1": [20, 20], "2": [20, 20]}, "tracks": {}}
    for track in study.plan.tracks:
        rows = study.metrics.filter(
            scenario=study.plan.scenario(track.scenario).name, method="cosmo-next"
        ).sort("seed", "episode")
        own = {name: rows[name].to_list() for name in trainings.SHOWN}
        told["tracks"][track.name] = {"shipped": own, "1": own, "2": own}
    header, _, *lines = trainings.tables(told, study).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    columns = [cell.strip() for cell in header.strip("|").split("|")]
    board = regenerate.board_of(study)
    for row, track in zip(rows[:-1], study.plan.tracks, strict=True):
        found = dict(zip(columns, row, strict=True))
        [line] = [each for each in board.tracks[track.name] if each.entry.method == "cosmo-next"]
        assert found["track"] == track.name
        assert found["trainings"] == f"{found['shipped']} ± 0.000"
        assert found["rank, own cost"] == str(line.own_rank)
        assert found["rank, equal cost"] == str(line.equal_rank)
    # One training that loses everything everywhere costs ranks.
    worse = {name: [0.0] * 10 for name in trainings.SHOWN}
    for found in told["tracks"].values():
        found["2"] = worse
    told["rounds"]["2"] = [17, 20]
    *_, last, _, early = trainings.tables(told, study).splitlines()
    assert "17 to 20 of 20 rounds" in early
    assert float(last.split("|")[-2].split()[0]) > board.equal_ranks["cosmo-next"].rank


def test_the_live_world_of_the_thesis_has_its_gain_over_the_floor():
    thesis, cost = docs_module("thesis"), {"update_cost_rate": [10.0, 20.0]}
    rows = [
        {
            "family": family,
            "setting": family,
            "embedded": {"success_rate": [0.5, 0.7], **cost},
            "live": {"success_rate": success, **cost},
        }
        for family, success in (("no updates", [0.5, 0.6]), ("cosmo-next", [0.7, 0.9]))
    ]
    assert thesis.live_table(rows).splitlines()[-1] == (
        "| cosmo-next | as shipped | 0.600 at 15 | 0.800 at 15 | +0.250 |"
    )
