"""Whole commands at 80 columns, on worlds of a second."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from golden_text import as_before, eighty_columns
from small import SHORT, small_plan

from cosmo import load, simulate
from cosmo.cli import evaluate
from cosmo.study import store

PLANS = Path(__file__).parents[2] / "docs" / "plans"
_SHORT = [part for item in SHORT for part in ("--set", item)]


@pytest.fixture(autouse=True)
def narrow(monkeypatch, tmp_path):
    eighty_columns(monkeypatch)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("simulate", ["simulate", "-m", "aoi-threshold", "--episodes", "3", *_SHORT]),
        ("bound", ["bound", "--rate", "320", "--episodes", "3", *_SHORT]),
        ("workload", ["workload", "--out", "tasks.csv", *_SHORT]),
        ("scenario-check", ["scenario", "check", "campus"]),
    ],
)
def test_a_command(cosmo, name, arguments):
    code, out, err = cosmo(*arguments)
    assert code == 0
    said = err.replace("compiling the engine, once on this machine …\n", "")
    as_before(name, out + said if name != "bound" else re.sub(r"\d+\.\d(?= *\n)", "0.0", out))


@pytest.mark.parametrize("plan", ["paper", PLANS / "next.toml"])
def test_lists_of_a_document_are_broken_up(cosmo, plan):
    code, out, _ = cosmo("study", "show", plan)
    assert code == 0
    long = [line for line in out.splitlines() if len(line) > 80]
    assert not [line for line in long if not line.startswith("description")]


def test_study_status(cosmo, tmp_path):
    store.prepare(tmp_path / "study", small_plan())
    code, out, _ = cosmo("study", "status", "study")
    assert code == 0
    as_before("study-status", out)


def test_evaluate(cosmo, monkeypatch):
    """With made-up controllers, so that nobody has to train any."""
    scenarios = tuple(load("paper", [*SHORT, f"workload.rate={rate}"]) for rate in (120, 120, 320))
    played = [
        simulate(scenario, "never", seeds=seed, episodes=2)
        for seed, scenario in enumerate(scenarios)
    ]
    controller = SimpleNamespace(method="cosmo", seeds=(0, 1, 2), device="")
    monkeypatch.setattr(evaluate, "load_controller", lambda folder: controller)
    monkeypatch.setattr(evaluate, "trained_on", lambda found: scenarios)
    monkeypatch.setattr(evaluate, "play_runs", lambda *given, **more: played)
    code, out, _ = cosmo("evaluate", "trained", "--episodes", "2")
    assert code == 0
    as_before("evaluate", out)
