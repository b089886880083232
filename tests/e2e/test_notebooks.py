"""The example notebooks run from top to bottom, show what they promise, and are kept empty.

Cells are executed as plain Python, without a kernel: notebooks here use nothing else. What the last
expression of a cell gives is asked for its HTML, as a notebook would.
"""

import ast
import json

import matplotlib
import pytest
from doc_pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def _cells(path, kind="code"):
    told = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in told["cells"] if cell["cell_type"] == kind]


def _shown(source, names, place):
    """Execute a cell; the value of its last expression, None if it ends in something else."""
    tree = ast.parse(source, place)
    last = tree.body[-1]
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module(tree.body[: -shown or None], []), place, "exec"), names)
    return eval(compile(ast.Expression(last.value), place, "eval"), names) if shown else None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs_and_shows_its_results(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    names, seen = {"__name__": "__main__"}, []
    for number, cell in enumerate(_cells(path)):
        value = _shown("".join(cell["source"]), names, f"{path.name}[{number}]")
        rich = [getattr(value, name, lambda: None)() for name in ("_repr_html_", "_repr_png_")]
        seen += [(type(value).__name__, each[:4]) for each in rich if each is not None]
    assert ("Comparison", "<p><") in seen
    assert ("Picture", b"\x89PNG") in seen


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_keeps_no_output(path):
    assert len(NOTEBOOKS) == 2
    assert _cells(path, "markdown")
    for cell in _cells(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        assert not any(line.startswith(("%", "!")) for line in cell["source"])
