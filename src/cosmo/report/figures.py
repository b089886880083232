"""Figures of a study in the paper's form: deterministic and Poisson side by side."""

import io
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray
from polars import selectors

from cosmo.files import whole_file
from cosmo.measure import METRICS
from cosmo.report.style import looks
from cosmo.study.statistics import smoothed

FORMATS = ("pdf", "svg", "png")
_DPI = 150.0  # of the PNG
Panel = Any  # matplotlib's Axes


_STYLE: Any = {
    "svg.hashsalt": "cosmo",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "text.parse_math": False,  # a name may have dollars in it
}


@cache
def _shown() -> Any:
    """The class of figures that notebooks show by themselves, whether or not pyplot is in use."""
    from matplotlib.figure import Figure

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            with io.BytesIO() as buffer:
                self.savefig(buffer, format="png", dpi=100)
                return buffer.getvalue()

    return Shown


def panels(titles: list[str], draw: Callable[[Panel, str], None], label: str) -> Any:
    """A figure with one panel for each title (an arrival process), and one legend below."""
    from matplotlib import rc_context

    with rc_context(_STYLE):
        figure = _shown()(figsize=(4.4 * len(titles), 3.9))
        row = figure.subplots(1, len(titles), sharey=True, squeeze=False)
        for panel, title in zip(row[0], titles, strict=True):
            draw(panel, title)
            panel.set_title(title)
        row[0][0].set_ylabel(label)
        entries: dict[str, Any] = {}
        for panel in row[0]:
            for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
                entries.setdefault(name, handle)
        figure.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=4,
            fontsize=8, frameon=False,
        )  # fmt: skip
        figure.set_layout_engine("constrained")
    return figure


def saved(figure: Any, path: Path, formats: tuple[str, ...]) -> list[Path]:
    """The figure as files of these formats, the same bytes every time.

    Each format's own canvas draws it: `savefig` would draw it twice, and lay it out each time.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    written = []
    with rc_context(_STYLE):
        pdf: Any = FigureCanvasPdf(figure)  # their methods have no types
        svg: Any = FigureCanvasSVG(figure)
        agg: Any = FigureCanvasAgg(figure)  # the last one lays it out
        figure.get_layout_engine().execute(figure)
        figure.set_layout_engine("none")
        for kind in formats:
            figure.set_dpi(_DPI)  # others change it
            target = path.with_name(f"{path.name}.{kind}")  # a name may have dots of its own
            # No date: the same study gives the same bytes.
            with whole_file(target) as temporary:
                if kind == "pdf":
                    pdf.print_pdf(temporary, metadata={"CreationDate": None})
                elif kind == "svg":
                    svg.print_svg(temporary, metadata={"Date": None})
                else:
                    agg.print_png(temporary)
            written.append(target)
    return written


def half_widths() -> polars.Expr:
    """What is drawn around means: 95 % intervals, of two runs their range, of one nothing."""
    two = polars.col("std") / 2**0.5  # half of the range
    return polars.when(polars.col("runs") == 2).then(two).otherwise("ci95").fill_null(0.0)


def lines(
    table: polars.DataFrame, of: str, over: str
) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """Every line's name (in column `of`, as they come) and its numbers, in order of `over`."""
    groups = table.sort(over, maintain_order=True).partition_by(of, as_dict=True)
    for name in table[of].unique(maintain_order=True):
        numbers = groups[name,].select(selectors.numeric())
        yield name, {column.name: column.to_numpy() for column in numbers}


def metric_figure(
    summary: polars.DataFrame,
    bounds: polars.DataFrame,
    metric: str,
    path: Path,
    methods: Iterable[str] | None = None,
    formats: tuple[str, ...] = FORMATS,
    focus: str | None = None,
    yardsticks: Collection[str] = (),
) -> list[Path]:
    """Write the figure of `metric_over_load` and return its files, one for each format."""
    figure = metric_over_load(summary, bounds, metric, methods, focus, yardsticks)
    return saved(figure, path, formats)


def metric_over_load(
    summary: polars.DataFrame,
    bounds: polars.DataFrame,
    metric: str,
    methods: Iterable[str] | None = None,
    focus: str | None = None,
    yardsticks: Collection[str] = (),
) -> Any:
    """A metric over the load: means with 95 % intervals, the paper's points as crosses.

    A `matplotlib.figure.Figure`.
    """
    styles = looks(summary["method"].unique(maintain_order=True), focus, yardsticks)
    here = summary.filter(polars.col("mean").is_not_null(), metric=metric).with_columns(
        half_width=half_widths()
    )
    if methods is not None:
        here = here.filter(polars.col("method").is_in(list(methods)))
    processes = here["arrivals"].unique(maintain_order=True).to_list()

    def draw(panel: Panel, process: str) -> None:
        rates: set[float] = set()
        for name, rows in lines(here.filter(arrivals=process), "method", "rate"):
            look = styles[name]
            rates.update(rows["rate"])
            panel.errorbar(
                rows["rate"], rows["mean"], yerr=rows["half_width"], label=name,
                color=look.colour, marker=look.mark, ls=look.line, lw=look.width, ms=4, capsize=2,
                zorder=3 if name == focus else 2,
            )  # fmt: skip
            known = ~np.isnan(rows["paper"])
            if known.any():
                panel.plot(
                    rows["rate"][known], rows["paper"][known], "x", color=look.colour, ms=8, mew=1.5
                )
        if here["paper"].is_not_null().any():
            panel.plot([], [], "kx", ms=7, label="paper")
        if metric == "success_rate":
            own = bounds.filter(arrivals=process).sort("rate")
            panel.plot(own["rate"], own["fluid_bound"], "k--", lw=1, label="fluid bound")
            panel.plot(own["rate"], own["mean_bound"], "k:", lw=1, label="µ*/rate")
            bound = own.filter(polars.col("clairvoyant_bound").is_not_null())
            if len(bound):
                panel.plot(
                    bound["rate"], bound["clairvoyant_bound"], "k_", ms=14, mew=1.5,
                    label="clairvoyant bound",
                )  # fmt: skip
        if metric == "update_cost_rate":
            panel.set_yscale("symlog", linthresh=1.0)
            panel.set_ylim(bottom=0)
        elif METRICS[metric].is_share:
            panel.set_ylim(0, 1.03)
        panel.set_xlabel("tasks/s in each cell")
        panel.set_xticks(sorted(rates), [f"{rate:g}" for rate in sorted(rates)])

    return panels(processes, draw, METRICS[metric].label)


def reward_figure(
    curves: polars.DataFrame,
    methods: list[str],
    path: Path,
    formats: tuple[str, ...] = FORMATS,
) -> list[Path]:
    """Five-episode moving averages of the training reward: mean and range over runs."""
    import matplotlib

    here = curves.filter(polars.col("method").is_in(methods))
    processes = here["arrivals"].unique(maintain_order=True).to_list()
    rates = sorted(here["rate"].unique())
    shades = matplotlib.colormaps["viridis"].resampled(max(len(rates), 2))
    styles = dict(zip(methods, ("-", "--", ":"), strict=False))

    def draw(panel: Panel, process: str) -> None:
        for (name, rate), rows in here.filter(arrivals=process).group_by(
            ["method", "rate"], maintain_order=True
        ):
            runs = [
                smoothed(run.sort("episode")["reward"].to_list())
                for _, run in rows.group_by("seed", maintain_order=True)
            ]
            table = polars.DataFrame({str(k): run for k, run in enumerate(runs)})
            mean = table.mean_horizontal()
            low, high = table.min_horizontal(), table.max_horizontal()
            episodes = range(1, len(mean) + 1)
            shade = shades(rates.index(rate))
            label = f"{rate:g}" if len(methods) == 1 else f"{name}, {rate:g}"
            panel.plot(episodes, mean, styles[str(name)], color=shade, lw=1.4, label=label)
            panel.fill_between(episodes, low, high, color=shade, alpha=0.12, lw=0)
        panel.set_xlabel("training episode")

    return saved(panels(processes, draw, "training reward (5-episode mean)"), path, formats)


def pareto_figure(
    summary: polars.DataFrame,
    path: Path,
    formats: tuple[str, ...] = FORMATS,
    focus: str | None = None,
    yardsticks: Collection[str] = (),
) -> list[Path]:
    """Success against update cost: every method at every load; larger marks, higher loads."""
    styles = looks(summary["method"].unique(maintain_order=True), focus, yardsticks)
    wide = summary.filter(polars.col("metric").is_in(["success_rate", "update_cost_rate"])).pivot(
        "metric", index=["arrivals", "rate", "method"], values="mean"
    )
    processes = wide["arrivals"].unique(maintain_order=True).to_list()
    rates = sorted(wide["rate"].unique())

    def draw(panel: Panel, process: str) -> None:
        for name, rows in lines(wide.filter(arrivals=process), "method", "rate"):
            look = styles[name]
            sizes = [12 + 10 * rates.index(rate) for rate in rows["rate"]]
            panel.plot(
                rows["update_cost_rate"], rows["success_rate"], look.line, color=look.colour, lw=0.7
            )
            panel.scatter(
                rows["update_cost_rate"], rows["success_rate"], s=sizes, label=name,
                color=look.colour, marker=look.mark, zorder=4 if name == focus else 3,
            )  # fmt: skip
        panel.set_xscale("symlog", linthresh=1.0)
        panel.set_xlim(left=-0.1)
        panel.set_ylim(0, 1.03)
        panel.set_xlabel("update cost (units/s)")

    return saved(panels(processes, draw, "success rate"), path, formats)
