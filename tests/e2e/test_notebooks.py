"""The example notebooks run from top to bottom, and the outputs kept in them are of these cells."""

import json

import pytest
from doc_pages import ROOT, docs_module

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def notebooks():
    return docs_module("notebooks")


def _kinds(notebook):
    """Of every code cell, what kinds of output there are."""
    return [
        [(output["output_type"], sorted(output.get("data", {}))) for output in cell["outputs"]]
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_and_shows_what_is_kept_in_it(path, notebooks):
    kept, found = json.loads(path.read_text("utf-8")), notebooks.executed(path)
    assert _kinds(kept) == _kinds(found)
    shown = [kind for cell in _kinds(found) for _, kinds in cell for kind in kinds]
    assert shown.count("image/png") >= 1
    assert shown.count("text/html") >= 1


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_of_the_cells_as_they_are(path, notebooks):
    """`make notebooks` after a change of a cell."""
    assert len(NOTEBOOKS) == 2
    notebook = json.loads(path.read_text("utf-8"))
    assert notebook["metadata"]["executed"] == notebooks.digest(notebook)
    assert path.stat().st_size < 400_000
    assert str(ROOT) not in path.read_text("utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_the_package_where_it_is_missing(path, monkeypatch, tmp_path):
    """As in Colab: from a wheel beside the notebook, or one line says what to do."""
    import importlib.util
    import subprocess

    asked = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", lambda command, **_: asked.append(command))
    cells = json.loads(path.read_text("utf-8"))["cells"]
    first = "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])
    with pytest.raises(SystemExit, match=r"upload cosmo_edge-….whl beside this notebook"):
        exec(first, {})
    wheel = tmp_path / "cosmo_edge-0.2.0-py3-none-any.whl"
    wheel.touch()
    exec(first, {})
    assert asked[0][1:] == ["-m", "pip", "install", "-q", f"{wheel.resolve()}[lab,tune]"]
