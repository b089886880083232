"""Figures of a comparison."""

from collections.abc import Sequence
from pathlib import Path

import polars

from cosmo.files import whole_file
from cosmo.study.comparison import Comparison


def success_figure(comparison: Comparison, path: Path, methods: Sequence[str]) -> None:
    """Success rate over the load, with intervals, the paper's points and both bounds, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    processes = comparison.table["arrivals"].unique(maintain_order=True).to_list()
    figure, panels = pyplot.subplots(
        1, len(processes), figsize=(4.6 * len(processes), 3.8), sharey=True, squeeze=False
    )
    for panel, process in zip(panels[0], processes, strict=True):
        here = comparison.table.filter(
            polars.col("method").is_in(methods), arrivals=process, metric="success_rate"
        )
        for name, rows in here.group_by("method", maintain_order=True):
            line = panel.errorbar(
                rows["rate"], rows["mean"], yerr=rows["ci95"], marker="o", ms=3, capsize=2,
                label=name[0],
            )  # fmt: skip
            points = rows.filter(polars.col("paper").is_not_null())
            panel.plot(points["rate"], points["paper"], "x", color=line[0].get_color(), ms=8)
        bounds = comparison.bounds.filter(arrivals=process)
        panel.plot(bounds["rate"], bounds["fluid"], "k--", lw=1, label="fluid bound")
        panel.plot(bounds["rate"], bounds["mean"], "k:", lw=1, label="µ*/rate")
        rates = bounds["rate"].to_list()
        labels = [f"{rate:g}" for rate in rates]
        panel.set(title=process, xlabel="tasks/s in each cell", ylim=(0, 1.03))
        panel.set_xticks(rates, labels)
    panels[0][0].set_ylabel("success rate")
    panels[0][0].plot([], [], "kx", ms=8, label="paper")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.set_layout_engine("constrained")
    with whole_file(path) as temporary:
        figure.savefig(temporary, format="png", dpi=150)
    pyplot.close(figure)
