"""JSON schemas of the files that people write: what is right passes, what is wrong does not."""

import json
import tomllib
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from cosmo.cli.schema import KINDS, schema_of

DOCS = Path(__file__).parents[2] / "docs"
PACKAGES = {
    "scenario": "cosmo.scenario", "plan": "cosmo.study", "daemon": "cosmo.live",
    "metrics": "cosmo.live.readings",
}  # fmt: skip


def _files(kind):
    presets = resources.files(PACKAGES[kind]).joinpath("presets")
    found = {each.name: each.read_text() for each in presets.iterdir() if each.suffix == ".toml"}
    if kind == "plan":
        found |= {each.name: each.read_text() for each in (DOCS / "plans").glob("*.toml")}
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_the_package_is_as_its_schema_says(kind):
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    checker = jsonschema.Draft202012Validator(schema)
    files = _files(kind)
    assert files
    for name, text in files.items():
        wrong = [error.message for error in checker.iter_errors(tomllib.loads(text))]
        assert wrong == [], name


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("scenario", "[sn]\nslotz = 3\n"),
        ("scenario", '[sn]\nslots = "three"\n'),
        ("scenario", "[episode]\nwindow_ms = -1\n"),
        ("plan", "episodes = 0\n"),
        ("plan", "rate = [120]\n"),
        ("daemon", 'role = "ue"\n'),
        ("daemon", "[log]\nrow = 5\n"),
    ],
)
def test_mistakes_are_found(kind, text):
    checker = jsonschema.Draft202012Validator(schema_of(kind))
    assert not checker.is_valid(tomllib.loads(text))


def test_the_command_prints_or_writes_it(cosmo, tmp_path):
    code, out, _ = cosmo("schema", "scenario")
    assert (code, json.loads(out)["title"]) == (0, "CoSMO scenario")
    path = tmp_path / "plan.schema.json"
    assert cosmo("schema", "plan", "--out", path)[0] == 0
    assert "extends" in json.loads(path.read_text())["properties"]
    code, _, err = cosmo("schema", "scenarios")
    assert (code, err.count("\n")) == (2, 1)
    assert "must be one of scenario, plan, daemon" in err


def test_versions_of_engines_and_libraries_on_request(cosmo):
    code, out, _ = cosmo("--version", "--all")
    names = [line.split()[0] for line in out.splitlines()]
    assert code == 0
    assert names[:4] == ["cosmo", "python", "numpy", "numba"]
    assert "jax" in names
    assert out.count("engine ") == 3
    assert cosmo("--version")[1].count("\n") == 1
