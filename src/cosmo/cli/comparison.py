"""Prints the results of a study: tables within 80 columns, and the verdict."""

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from cosmo.cli.console import show, show_words
from cosmo.cli.sweeps import print_sweeps
from cosmo.errors import InputError
from cosmo.measure import METRICS, interval_text

# What is shown of a method at one load: metric, the column's title, with an interval?
_SHOWN = (
    ("success_rate", "success", True),
    ("decision_accuracy", "accuracy", False),
    ("net_utility_per_task", "net utility", False),
    ("update_cost_rate", "cost", False),
)
_AVERAGED = ("net_utility_per_task", "update_cost_rate")
_LOADS_A_TABLE = 4  # columns that fit beside a method's name, net utility and cost


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
                _one_load(study, here, rates[0])
            else:
                for first in range(0, len(rates), _LOADS_A_TABLE):
                    _several_loads(study, here, rates[first : first + _LOADS_A_TABLE])
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
    print_sweeps(study, _table)
    _print_engines(study)
    if study.plan.tracks:
        _print_leaderboard(study)


def _print_leaderboard(study) -> None:  # type: ignore[no-untyped-def]
    """Means over all tracks, best rank at equal cost first."""
    from cosmo.report.leaderboard import overall_table
    from cosmo.study.leaderboard import board_of

    try:
        whole = overall_table(board_of(study))
    except InputError as error:  # what failed may be tried again
        show_words(f"no leaderboard: {error}")
        return
    titles = {"success, tuned": "tuned", "regret, tuned": "regret", "rank, own cost": "own cost"}
    titles |= {"rank, equal cost": "equal cost"}
    places = [whole.header.index(name) for name in titles]
    table = _table("Success over all tracks, regret, and ranks at ...", list(titles.values()))
    for row in whole.texts():
        mark = ">" if row[0] == study.focus else ""
        table.add_row(mark, Text(row[0]), *(row[place] for place in places))
    show(table)


def _print_tuned(study) -> None:  # type: ignore[no-untyped-def]
    """What tuned methods were set to, and their success with default and tuned parameters."""
    from cosmo.report.tuned import tuned_table

    for scenario in study.tuned["scenario"].unique(maintain_order=True):
        title = f"{scenario}: success with default and tuned parameters"
        table = _table(title, ["tasks/s", "default", "tuned"])
        metrics, tuned = (each.filter(scenario=scenario) for each in (study.metrics, study.tuned))
        for _, rate, _, setting, before, after, *_ in tuned_table(metrics, tuned).rows:
            cells = (interval_text(each[0], each[1], each[2], 3) for each in (before, after))
            table.add_row("", Text(setting), f"{rate:g}", *cells)
        show(table)


def _print_engines(study) -> None:  # type: ignore[no-untyped-def]
    """What was played on several engines: success on each, and the verdict."""
    from cosmo.report.engines import engine_differences, sentences

    found = engine_differences(study)
    places = dict.fromkeys((each.scenario, each.arrivals, each.engines) for each in found)
    for scenario, arrivals, engines in places:
        title = f"{scenario}, {arrivals}: success on {' and '.join(engines)}"
        table = _table(title, ["tasks/s", *engines, "difference"])
        for each in found:
            if (each.scenario, each.arrivals, each.engines) == (scenario, arrivals, engines):
                cells = [
                    f"{each.rate:g}",
                    *(interval_text(value, None, 1, 3) for value in each.success),
                ]
                table.add_row("", Text(each.method), *cells, str(each.difference))
        show(table)
    for sentence in sentences(found):
        show_words(sentence)


def _named(study, here) -> list[tuple[str, str, str]]:  # type: ignore[no-untyped-def]
    """Rows (method, mark, shown name), best success first, yardsticks last."""
    import polars

    success = here.filter(metric="success_rate")
    means = success.group_by("method", maintain_order=True).agg(polars.col("mean").mean())
    ranked = means.sort("mean", descending=True, nulls_last=True)["method"].to_list()
    yardsticks = [name for name in ranked if name != study.focus and study.is_yardstick(name)]
    first = [name for name in ranked if name not in yardsticks]
    return [
        *((name, ">" if name == study.focus else "", name) for name in first),
        *((name, "", f"({name})") for name in yardsticks),
    ]


def _table(title: str, columns: list[str]) -> Table:
    table = Table(
        title=Text(title),
        title_style="bold",
        title_justify="left",
        box=SIMPLE,
        padding=(0, 1, 0, 0),
    )
    table.add_column("", width=1)
    table.add_column("method", min_width=22, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _one_load(study, here, rate: float) -> None:  # type: ignore[no-untyped-def]
    """Metrics of every method; the paper's own numbers in brackets."""
    paper = " (paper's in brackets)" if here["paper"].is_not_null().any() else ""
    place = f"{here['scenario'][0]}, {here['arrivals'][0]}, {rate:g} tasks/s"
    table = _table(f"{place}{paper}", [title for _, title, _ in _SHOWN])
    for name, mark, shown in _named(study, here):
        cells = []
        for metric, _, with_interval in _SHOWN:
            digits = METRICS[metric].digits
            row = here.filter(method=name, metric=metric).row(0, named=True)
            text = interval_text(
                row["mean"], row["ci95"] if with_interval else None, row["runs"], digits
            )
            if row["paper"] is not None:
                text += f"\n({row['paper']:.{digits}f})"
            cells.append(text)
        table.add_row(mark, Text(shown), *cells)
    show(table)


def _several_loads(study, here, rates: list[float]) -> None:  # type: ignore[no-untyped-def]
    """Success at each load; net utility and cost as means over these loads."""
    title = f"{here['scenario'][0]}, {here['arrivals'][0]}: success at tasks/s"
    table = _table(title, [*(f"{rate:g}" for rate in rates), "net util.", "cost"])
    some = here.filter(here["rate"].is_in(rates))
    for name, mark, shown in _named(study, some):
        own = some.filter(method=name)
        cells = []
        for rate in rates:
            row = own.filter(metric="success_rate", rate=rate)
            cells.append(interval_text(row["mean"][0], None, 1, 3) if len(row) else "–")
        means = (own.filter(metric=metric)["mean"].mean() for metric in _AVERAGED)
        cells += [interval_text(mean, None, 1, 1) for mean in means]
        table.add_row(mark, Text(shown), *cells)
    show(table)
