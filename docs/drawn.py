"""Pictures of the docs, drawn alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars

from cosmo.files import whole_file
from cosmo.report.style import looks

OWN = "cosmo-next"


@contextmanager
def picture(path: Path, size: tuple[float, float], panels: int = 1) -> Iterator[Any]:
    """A figure and its panel, or panels side by side, written as PNG in the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"font.size": 9}):
        figure, axes = pyplot.subplots(1, panels, figsize=size)
        yield figure, axes
        figure.set_layout_engine("constrained")
        with whole_file(path) as temporary:
            figure.savefig(temporary, format="png", dpi=150)
        pyplot.close(figure)


def trade(points: polars.DataFrame, path: Path, columns: int, logarithmic: bool = False) -> None:
    """Success against update cost, a `line` each; our own are the strong ones."""
    with picture(path, (7.6, 5.0)) as (figure, panel):
        panel.grid(alpha=0.25)
        styles = looks(points["line"].unique(maintain_order=True))
        for (name,), line in points.group_by("line", maintain_order=True):
            line = line.sort("update_cost_rate")
            own = str(name).startswith(OWN)
            panel.plot(
                line["update_cost_rate"],
                line["success_rate"],
                marker="o" if own else "s",
                lw=1.8 if own else 1.0,
                ms=5 if own else 4,
                color=styles[str(name)].colour,
                ls=styles[str(name)].line,
                label=str(name),
            )
        if logarithmic:
            panel.set_xscale("symlog", linthresh=1.0)
            panel.set_xlim(left=0)
        panel.set_xlabel("update cost (units/s)")
        panel.set_ylabel("success rate")
        figure.legend(loc="outside lower center", ncols=columns, fontsize=7, frameon=False)
