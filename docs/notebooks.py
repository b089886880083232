"""Executes the example notebooks and keeps their outputs in them: `make notebooks` (minutes).

    python docs/notebooks.py [NOTEBOOK.ipynb…]

Cells are executed as plain Python, without a kernel: notebooks here use nothing else. What a cell
prints, the value of its last expression and the figures that it leaves open are kept as Jupyter
would keep them, so that a reader sees them without running anything.
"""

import ast
import base64
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from cosmo.files import whole_file

NOTEBOOKS = Path(__file__).parents[1] / "examples" / "notebooks"


def source(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def digest(notebook: dict[str, Any]) -> str:
    """Of all code: outputs are those of cells with this digest."""
    code = [source(cell) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return hashlib.sha256("\0".join(code).encode()).hexdigest()


def _value(text: str, names: dict[str, Any], place: str) -> Any:
    """Execute a cell; the value of its last expression, None if it ends in something else."""
    tree = ast.parse(text, place)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr) or text.rstrip().endswith(";"):
        exec(compile(tree, place, "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), place, "exec"), names)
    return eval(compile(ast.Expression(last.value), place, "eval"), names)


def _shown(value: Any) -> dict[str, Any]:
    """{MIME type: content} of a value, as a notebook asks for it."""
    data: dict[str, Any] = {"text/plain": repr(value)}
    for kind, name in (("text/html", "_repr_html_"), ("image/png", "_repr_png_")):
        made = getattr(value, name, lambda: None)()
        if made is not None:
            data[kind] = made if isinstance(made, str) else base64.b64encode(made).decode()
    return data


def _figures() -> Iterator[dict[str, Any]]:
    """Figures that a cell has left open."""
    from matplotlib import pyplot

    for number in pyplot.get_fignums():
        file, figure = io.BytesIO(), pyplot.figure(number)
        figure.savefig(file, format="png", dpi=80, bbox_inches="tight")
        pyplot.close(figure)
        yield {"text/plain": repr(figure), "image/png": base64.b64encode(file.getvalue()).decode()}


def executed(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of all its cells, run from top to bottom in an empty folder."""
    import matplotlib

    matplotlib.use("agg")
    notebook: dict[str, Any] = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, cell in enumerate(code, 1):
            printed = io.StringIO()
            with redirect_stdout(printed), redirect_stderr(io.StringIO()):
                value = _value(source(cell), names, f"{path.name}[{number}]")
            outputs: list[dict[str, Any]] = []
            if printed.getvalue():
                text = printed.getvalue().splitlines(keepends=True)
                outputs.append({"output_type": "stream", "name": "stdout", "text": text})
            if value is not None:
                outputs.append({"output_type": "execute_result", "execution_count": number,
                                "data": _shown(value), "metadata": {}})  # fmt: skip
            outputs += [{"output_type": "display_data", "data": data, "metadata": {}}
                        for data in _figures()]  # fmt: skip
            cell["execution_count"], cell["outputs"] = number, outputs
    notebook["metadata"]["executed"] = digest(notebook)
    return notebook


def main(paths: list[Path]) -> None:
    """Execute notebooks in place."""
    for path in paths or sorted(NOTEBOOKS.glob("*.ipynb")):
        text = json.dumps(executed(path), indent=1, ensure_ascii=False) + "\n"
        with whole_file(path) as temporary:
            temporary.write_text(text, "utf-8")
        print(f"{os.path.relpath(path)}: {len(text) / 1000:.0f} kB")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
