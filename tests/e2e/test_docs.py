"""Every example in README and docs runs as it stands there, page by page, in an empty folder."""

import json
import re
from pathlib import Path

import pytest
from doc_pages import FENCE, ROOT, follow, quoted

from cosmo.envs import EnView, SnView
from cosmo.learn.config import TrainingConfig
from cosmo.live.config import NodeConfig
from cosmo.report.tables import paper_against_ours, paper_rows
from cosmo.scenario import Scenario
from cosmo.scenario import load as load_scenario
from cosmo.study import load_plan, load_study
from cosmo.study.statistics import summarise, with_paper
from observations import site

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ELSEWHERE = (  # run in integrations/test_tutorials.py, test_fifteen_minutes.py, test_finished.py
    "sb3.md", "multi_agent.md", "fifteen_minutes.md", "mappo.md",
)  # fmt: skip


SHORT_WORLD = ["episode.window_ms=900", "episode.warmup_ms=200"]
SHORT_TRAINING = [
    "episodes=2", "validate_every=1", "encoder.collection_episodes=2", "encoder.epochs=2"
]  # fmt: skip


LEARNED, FEW = ["cosmo", "aoi-threshold"], ["power-of-d", "aoi-threshold"]
SHORT_NEXT = ["episodes=2", "worlds=2", "window_ms=800.0", "en.steps=4", "en.batch=32"]
SHORT_MULTI_NODE = [
    "multi_node.generations=1", "multi_node.pairs=1", "multi_node.worlds=1",
    "multi_node.window_ms=[150.0, 250.0]", "multi_node.warmup_ms=50.0",
]  # fmt: skip
OURS = ["cosmo-next", "all-offload"]


def _has_trace(arguments):
    """Its episodes are as long as the trace."""
    return "--trace" in arguments or "recorded.toml" in arguments


def _cheaper(arguments):
    """The same command on shorter episodes, with less training and fewer methods."""
    if "--episodes" in arguments:
        place = arguments.index("--episodes") + 1
        arguments[place] = str(min(2, int(arguments[place])))
    if any(word.endswith("live") for word in arguments[1:]):  # however busy the machine is
        arguments += ["--set", "live.most_late_ms=1000"]
    if arguments[0] == "bound" or (arguments[0] == "simulate" and not _has_trace(arguments)):
        arguments += [part for item in SHORT_WORLD for part in ("--set", item)]
    if arguments[0] in ("run", "train", "compare"):
        short = SHORT_NEXT if "cosmo-next" in arguments else SHORT_TRAINING
        short = [*short, *SHORT_MULTI_NODE] if "universal" in arguments else short
        settings = [*SHORT_WORLD, *(f"training.{item}" for item in short)]
        arguments += [part for item in settings for part in ("--set", item)]
    if arguments[0] == "compare":
        if "--rates" in arguments:
            place = arguments.index("--rates") + 1
            arguments[place] = arguments[place].split(",")[0]
        arguments += ["--episodes", "1", "--seeds", "0"]
        if "--runs" in arguments:
            place = arguments.index("--runs")
            del arguments[place : place + 2]
    if arguments[0] == "tune":
        arguments += ["--trials", "2", "--episodes", "1", "--seeds", "0"]
        arguments += [part for item in SHORT_WORLD for part in ("--set", item)]
    if arguments[0] == "run":
        arguments += ["--episodes", "1", "--seeds", "0"]
    if arguments[:2] == ["study", "run"]:
        plan = Path(arguments[2]).stem
        ours = plan.startswith("universal")
        rivals = plan == "many-nodes-rivals"  # too many nodes to train for within a test
        methods = OURS if ours else FEW if rivals else LEARNED
        if plan == "benchmark":
            methods = ["cosmo-next", "periodic", "shared-knowledge"]
            two = [{"name": "pair", "scenario": "paper", "rate": 220.0}]
            two.append({"name": "crowd", "scenario": "campus", "rate": 150.0})
            tracks = "".join(
                f"{{name={json.dumps(each['name'])}, scenario={json.dumps(each['scenario'])},"
                f" rate={each['rate']}}}, "
                for each in two
            )
            arguments += ["--set", f"tracks=[{tracks}]", "--set", "tune.settings=2"]
        kept = f"compare=[{{methods={json.dumps(methods)}}}]"
        settings = [f"settings={json.dumps(SHORT_WORLD)}", "episodes=1", "rates=[160.0]", kept]
        settings.append('arrivals=["poisson"]')
        settings += [f"training.settings={json.dumps(SHORT_TRAINING)}", "seeds=[0, 1]"]
        arguments += [part for item in settings for part in ("--set", item)]
    return arguments


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pieces_of_files_are_what_the_files_say(page):
    for _, text in FENCE.findall(page.read_text()):
        file, piece = quoted(text)
        assert file is None or piece in (ROOT / file).read_text(), f"{file} has no more:\n{piece}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in ELSEWHERE], ids=lambda page: page.name
)
def test_examples_run(page, cosmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow(page, cosmo, _cheaper)


def _fields(model, prefix=""):
    for name, field in model.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            yield from _fields(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


@pytest.mark.parametrize(
    ("page", "model"),
    [("reference.md", Scenario), ("learning.md", TrainingConfig), ("live.md", NodeConfig)],
)
def test_the_docs_name_every_field(page, model):
    text = (ROOT / "docs" / page).read_text()
    assert [name for name in _fields(model) if f"`{name}`" not in text] == []


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_map_of_the_house_names_every_package_and_module():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    words = set(re.findall(r"[a-z_0-9]+", text))
    house = ROOT / "src" / "cosmo"
    for path in [*house.rglob("*.py"), *house.rglob("*.h")]:
        by_name = path.parent.name in ("cli", "study", "rules")  # of a command, a rule: found by it
        if not path.name.startswith("__") and not by_name:
            assert path.stem in words, f"{path} is not on the map"


def test_the_tables_of_the_docs_are_what_their_data_say():
    """`docs/data` is a real run; the pages were made from it and from nothing else."""
    study = load_study(ROOT / "docs" / "data" / "paper")
    summary = with_paper(summarise(study.metrics), study.plan)
    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert paper_against_ours(summary).markdown() in text
    assert study.plan == load_plan("paper", [f"seeds={list(study.plan.seeds)}"])
    for metric, floor in (("success_rate", 0.02), ("decision_accuracy", 0.02)):
        rows = [row for row in paper_rows(summary) if row["method"] == "cosmo"]
        points = [row for row in rows if row["metric"] == metric]
        assert len(points) == 6
        assert all(row["ours"] >= row["paper"] - floor for row in points)
    costs = [row for row in rows if "update_cost" in row["metric"]]
    assert len(costs) == 7
    assert all(row["ours"] <= 1.1 * row["paper"] for row in costs)


@pytest.mark.parametrize("view", [EnView, SnView])
def test_the_environments_page_names_every_number(view):
    text = (ROOT / "docs" / "environments.md").read_text()
    names = view(site(load_scenario("paper"))).names
    assert [name for name in names if f"`{name}`" not in text] == []
