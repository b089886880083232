"""Prints the results of a study: tables within 80 columns, and the verdict."""

from rich.box import SIMPLE
from rich.table import Table as RichTable
from rich.text import Text

from cosmo.cli.console import show, show_words
from cosmo.errors import InputError
from cosmo.measure import METRICS, interval_text
from cosmo.report.table import Column, Table, fixed, short

# What is shown of a method at one load: metric, the column's title, with an interval?
_SHOWN = (
    ("success_rate", "success", True),
    ("decision_accuracy", "accuracy", False),
    ("net_utility_per_task", "net utility", False),
    ("update_cost_rate", "cost", False),
)
_AVERAGED = {"net_utility_per_task": "net util.", "update_cost_rate": "cost"}
_LOADS_A_TABLE = 4  # columns that fit beside a method's name, net utility and cost
_VALUES_A_TABLE = 6  # columns that fit beside a method's name


def print_results(study) -> None:  # type: ignore[no-untyped-def]
    """A table for each scenario and arrival process, best first, then a verdict for each scenario.

    The focus is marked with `>`; yardsticks come last, in brackets.
    """
    from cosmo.report.paper_claim import claim_sentences
    from cosmo.report.sweeps import swept_scenarios
    from cosmo.report.tables import results_of
    from cosmo.report.verdict import no_verdict, verdict
    from cosmo.study.statistics import summarise, with_paper

    # A swept scenario is a column of the sweep's table, and has none of its own.
    summary = with_paper(summarise(study.metrics), study.plan)
    summary = summary.filter(~summary["scenario"].is_in(swept_scenarios(study)))
    for scenario in summary["scenario"].unique(maintain_order=True):
        for process in summary.filter(scenario=scenario)["arrivals"].unique(maintain_order=True):
            here = summary.filter(scenario=scenario, arrivals=process)
            rates = sorted(here["rate"].unique())
            if len(rates) == 1:
                _show(study, _one_load(study, here, rates[0]))
            else:
                for first in range(0, len(rates), _LOADS_A_TABLE):
                    some = rates[first : first + _LOADS_A_TABLE]
                    _show(study, _several_loads(study, here, some))
    _print_tuned(study)
    for scenario in summary["scenario"].unique(maintain_order=True):
        found = verdict(study.metrics.filter(scenario=scenario), study.focus, study.is_yardstick)
        if found is None:
            show_words(no_verdict(study.focus, scenario))
        else:
            show_words(found.sentence())
            show_words(f"({found.where()})")
            for text in claim_sentences(results_of(study, summary, scenario)):
                show_words(text)
    _print_sweeps(study)
    _print_engines(study)
    if study.plan.tracks:
        _print_leaderboard(study)


def _show(study, table: Table) -> None:  # type: ignore[no-untyped-def]
    """Print a table of methods: the focus marked with `>`, yardsticks in brackets."""
    drawn = RichTable(title=Text(table.title), title_style="bold", title_justify="left", box=SIMPLE)
    drawn.padding = (0, 1, 0, 0)
    drawn.add_column("", width=1)
    drawn.add_column("method", min_width=22, overflow="fold")
    for head in table.header[1:]:
        drawn.add_column(head, justify="right", no_wrap=True)
    for name, *cells in table.texts():
        if name == study.focus:
            drawn.add_row(">", Text(name), *cells)
        else:
            drawn.add_row("", Text(f"({name})" if study.is_yardstick(name) else name), *cells)
    show(drawn)


def _print_leaderboard(study) -> None:  # type: ignore[no-untyped-def]
    """Means over all tracks, best rank at equal cost first."""
    from cosmo.report.leaderboard import overall_table
    from cosmo.study.leaderboard import board_of

    try:
        whole = overall_table(board_of(study))
    except InputError as error:  # what failed may be tried again
        show_words(f"no leaderboard: {error}")
        return
    shown = {"method": "method", "success, tuned": "tuned", "regret, tuned": "regret"}
    shown |= {"rank, own cost": "own cost", "rank, equal cost": "equal cost"}
    _show(study, whole.only("Success over all tracks, regret, and ranks at ...", shown))


def _print_tuned(study) -> None:  # type: ignore[no-untyped-def]
    """What tuned methods were set to, and their success with default and tuned parameters."""
    from cosmo.report.tuned import tuned_table

    shown = {"tuned to": "method", "tasks/s": "tasks/s"}
    shown |= {f"success, {which}": which for which in ("default", "tuned")}
    for scenario in study.tuned["scenario"].unique(maintain_order=True):
        metrics, tuned = (each.filter(scenario=scenario) for each in (study.metrics, study.tuned))
        title = f"{scenario}: success with default and tuned parameters"
        _show(study, tuned_table(metrics, tuned).only(title, shown))


def _print_engines(study) -> None:  # type: ignore[no-untyped-def]
    """What was played on several engines: success on each, and the verdict."""
    from cosmo.report.engines import engine_differences, sentences

    found = engine_differences(study)
    places = dict.fromkeys((each.scenario, each.arrivals, each.engines) for each in found)
    for scenario, arrivals, engines in places:
        rows = (
            (each.method, each.rate, *each.success, each.difference)
            for each in found
            if (each.scenario, each.arrivals, each.engines) == (scenario, arrivals, engines)
        )
        title = f"{scenario}, {arrivals}: success on {' and '.join(engines)}"
        on_each = (Column(engine, form=fixed(3)) for engine in engines)
        columns = Column("method"), Column("tasks/s", form=short), *on_each, Column("difference")
        _show(study, Table(title, columns, tuple(rows)))
    for sentence in sentences(found):
        show_words(sentence)


def _print_sweeps(study) -> None:  # type: ignore[no-untyped-def]
    """A table for each swept field and load, methods best first; then a verdict for each value."""
    from cosmo.report.sweeps import sweep_table, swept_scenarios
    from cosmo.report.verdict import verdict

    swept = sweep_table(study)
    if not len(swept):
        return
    swept = swept.filter(metric="success_rate")
    for (field, load), rows in swept.group_by(["field", "load"], maintain_order=True):
        values = rows.sort("place")["value"].unique(maintain_order=True).to_list()
        for first in range(0, len(values), _VALUES_A_TABLE):
            some = values[first : first + _VALUES_A_TABLE]
            _show(study, _several_values(f"{load}: success over {field}", rows, some))
    found = None
    for scenario in swept_scenarios(study):
        [(field, value), *_] = swept.filter(scenario=scenario).select("field", "value").iter_rows()
        here = study.metrics.filter(scenario=scenario)
        found = verdict(here, study.focus, study.is_yardstick)
        if found is not None:
            show_words(f"{field}={value}: {found.sentence()}")
    if found is not None:
        show_words(f"({found.where().replace(f' {field}={value}', '', 1)})")


def _ranked(rows, of: str = "method") -> list[str]:  # type: ignore[no-untyped-def]
    """The names in a column, best mean first."""
    import polars

    means = rows.group_by(of, maintain_order=True).agg(polars.col("mean").mean())
    names: list[str] = means.sort("mean", descending=True, nulls_last=True)[of].to_list()
    return names


def _methods(study, here) -> list[str]:  # type: ignore[no-untyped-def]
    """Names of the methods, best success first, yardsticks last."""
    ranked = _ranked(here.filter(metric="success_rate"))
    return sorted(ranked, key=lambda name: name != study.focus and study.is_yardstick(name))


def _one_load(study, here, rate: float) -> Table:  # type: ignore[no-untyped-def]
    """Metrics of every method; the paper's own numbers in brackets."""
    paper = " (paper's in brackets)" if here["paper"].is_not_null().any() else ""
    rows = []
    for name in _methods(study, here):
        cells = []
        for metric, _, with_interval in _SHOWN:
            digits = METRICS[metric].digits
            row = here.filter(method=name, metric=metric).row(0, named=True)
            half = row["ci95"] if with_interval else None
            text = interval_text(row["mean"], half, row["runs"], digits)
            if row["paper"] is not None:
                text += f"\n({row['paper']:.{digits}f})"
            cells.append(text)
        rows.append((name, *cells))
    title = f"{here['scenario'][0]}, {here['arrivals'][0]}, {rate:g} tasks/s{paper}"
    columns = (Column(title) for title in ("method", *(title for _, title, _ in _SHOWN)))
    return Table(title, tuple(columns), tuple(rows))


def _several_loads(study, here, rates: list[float]) -> Table:  # type: ignore[no-untyped-def]
    """Success at each load; net utility and cost as means over these loads."""
    some = here.filter(here["rate"].is_in(rates))
    rows = []
    for name in _methods(study, some):
        own = some.filter(method=name)
        success = dict(own.filter(metric="success_rate").select("rate", "mean").iter_rows())
        means = (own.filter(metric=metric)["mean"].mean() for metric in _AVERAGED)
        rows.append((name, *map(success.get, rates), *means))
    by_load = (Column(f"{rate:g}", form=fixed(3)) for rate in rates)
    averaged = (Column(title, form=fixed(1)) for title in _AVERAGED.values())
    title = f"{here['scenario'][0]}, {here['arrivals'][0]}: success at tasks/s"
    return Table(title, (Column("method"), *by_load, *averaged), tuple(rows))


def _several_values(title: str, rows, values: list[str]) -> Table:  # type: ignore[no-untyped-def]
    """Success at each value of a swept field."""
    some = rows.filter(rows["value"].is_in(values))
    found = []
    for name in _ranked(some, "line"):
        success = dict(some.filter(line=name).select("value", "mean").iter_rows())
        found.append((name, *map(success.get, values)))
    columns = (Column(value, form=fixed(3)) for value in values)
    return Table(title, (Column("method"), *columns), tuple(found))
