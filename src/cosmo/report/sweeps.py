"""Results over an axis of one's own: a field of the scenario or a parameter of the methods.

A panel is a load of a scenario, a line a method, the axis the field.
"""

from pathlib import Path
from typing import Any

import polars

from cosmo.files import file_name
from cosmo.measure import METRICS
from cosmo.report.figures import FORMATS, Panel, half_widths, lines, panels, saved
from cosmo.report.style import looks
from cosmo.study.statistics import POINT, summarise
from cosmo.study.store import Study

OF_A_METHOD = "method."  # how the fields of sweeps begin that are parameters


def sweep_table(study: Study) -> polars.DataFrame:
    """Means of all that is part of a sweep; empty if there is none.

    Columns: `field`, `value` (text), `number` (null if the value is none), `place` (of the value
    in the plan, from 0), `load` (scenario, arrivals, tasks/s), `line` (the method without what is
    swept), `scenario`, `method`, `metric`, `mean`, `ci95`, `std`, `runs`.
    """
    if "sweep" not in study.metrics.columns:
        return polars.DataFrame()
    rows = study.metrics.filter(polars.col("sweep").is_not_null())
    if not len(rows):
        return polars.DataFrame()
    axes = rows.select("scenario", "method", "swept", "sweep", "sweep_value").unique(
        maintain_order=True
    )
    of_method = polars.col("sweep").str.starts_with(OF_A_METHOD)
    name = polars.when(of_method).then(polars.col("method")).otherwise(polars.col("scenario"))
    parameter = polars.col("sweep").str.strip_prefix(OF_A_METHOD)
    table = summarise(rows).join(axes, on=["scenario", "method"], maintain_order="left")
    world = polars.when(of_method).then(polars.col("scenario")).otherwise(polars.col("swept"))
    rate = polars.col("rate").map_elements(lambda rate: f"{rate:g}", polars.String)
    found = table.with_columns(
        field=polars.col("sweep"),
        # The value ends the name of what was swept: NAME field=VALUE.
        value=name.str.split(polars.concat_str(parameter, polars.lit("="))).list.last(),
        number=polars.col("sweep_value"),
        load=polars.concat_str(
            world, polars.lit(", "), "arrivals", polars.lit(", "), rate, polars.lit(" tasks/s")
        ),
        line=polars.when(of_method).then(polars.col("swept")).otherwise(polars.col("method")),
    )
    places = found.select("field", "value").unique(maintain_order=True)
    places = places.with_columns(place=polars.int_range(polars.len()).over("field"))
    columns = ["field", "value", "number", "place", "load", "line", *POINT[0:1], POINT[3]]
    return found.join(places, on=["field", "value"], maintain_order="left").select(
        *columns, "metric", "mean", "ci95", "std", "runs"
    )


def swept_scenarios(study: Study) -> list[str]:
    """Names of the scenarios that are values of a sweep, in the plan's order."""
    table = sweep_table(study)
    rows = table.filter(~table["field"].str.starts_with(OF_A_METHOD)) if len(table) else table
    return rows["scenario"].unique(maintain_order=True).to_list() if len(rows) else []


def sweep_figure(study: Study, field: str, metric: str = "success_rate") -> Any:
    """A metric over a swept field, as a matplotlib `Figure`: means with 95 % intervals."""
    table = sweep_table(study).filter(field=field, metric=metric)
    table = table.filter(polars.col("mean").is_not_null()).with_columns(half_width=half_widths())
    names = table["line"].unique(maintain_order=True).to_list()
    styles = looks(names, study.focus, [name for name in names if study.is_yardstick(name)])
    numbers = not table["number"].has_nulls()
    over = "number" if numbers else "place"
    values = table.select("value", "place").unique(maintain_order=True)

    def draw(panel: Panel, load: str) -> None:
        for name, rows in lines(table.filter(load=load), "line", over):
            look = styles[name]
            panel.errorbar(
                rows[over], rows["mean"], yerr=rows["half_width"], label=name, color=look.colour,
                marker=look.mark, ls=look.line, lw=look.width, ms=4, capsize=2,
            )  # fmt: skip
        if not numbers:
            panel.set_xticks(values["place"].to_list(), values["value"].to_list())
        panel.set_xlabel(field)

    loads = table["load"].unique(maintain_order=True).to_list()
    return panels(loads, draw, METRICS[metric].label)


def sweep_figures(study: Study, folder: Path, formats: tuple[str, ...] = FORMATS) -> list[Path]:
    """Files of a figure of success for every field that was swept."""
    table = sweep_table(study)
    fields = table["field"].unique(maintain_order=True).to_list() if len(table) else []
    written = []
    for field in fields:
        path = folder / f"sweep-{file_name(field)}"
        written += saved(sweep_figure(study, field), path, formats)
    return written
