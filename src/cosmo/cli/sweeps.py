"""Prints the results of a sweep: success over the swept field, within 80 columns."""

from rich.text import Text

from cosmo.cli.console import show, show_words
from cosmo.measure import interval_text

_VALUES_A_TABLE = 6  # columns that fit beside a method's name


def print_sweeps(study, table_of) -> None:  # type: ignore[no-untyped-def]
    """A table for each swept field and load, methods best first; then a verdict for each value.

    `table_of(title, columns)` makes an empty table in the style of the other results.
    """
    from cosmo.report.sweeps import sweep_table, swept_scenarios
    from cosmo.report.verdict import verdict

    swept = sweep_table(study)
    if not len(swept):
        return
    swept = swept.filter(metric="success_rate")
    for (field, load), rows in swept.group_by(["field", "load"], maintain_order=True):
        values = rows.sort("place")["value"].unique(maintain_order=True).to_list()
        for first in range(0, len(values), _VALUES_A_TABLE):
            _print_table(study, rows, f"{load}: success over {field}",
                         values[first : first + _VALUES_A_TABLE], table_of)  # fmt: skip
    found = None
    for scenario in swept_scenarios(study):
        [(field, value), *_] = swept.filter(scenario=scenario).select("field", "value").iter_rows()
        here = study.metrics.filter(scenario=scenario)
        found = verdict(here, study.focus, study.is_yardstick)
        if found is not None:
            show_words(f"{field}={value}: {found.sentence()}")
    if found is not None:
        show_words(f"({found.where().replace(f' {field}={value}', '', 1)})")


def _print_table(study, rows, title, values, table_of) -> None:  # type: ignore[no-untyped-def]
    import polars

    table = table_of(title, values)
    some = rows.filter(polars.col("value").is_in(values))
    means = some.group_by("line", maintain_order=True).agg(polars.col("mean").mean())
    for name in means.sort("mean", descending=True, nulls_last=True)["line"]:
        own = {row["value"]: row for row in some.filter(line=name).iter_rows(named=True)}
        cells = [
            interval_text(own[value]["mean"], None, own[value]["runs"], 3) if value in own else "–"
            for value in values
        ]
        yardstick = name != study.focus and study.is_yardstick(name)
        mark = ">" if name == study.focus else ""
        table.add_row(mark, Text(f"({name})" if yardstick else name), *cells)
    show(table)
