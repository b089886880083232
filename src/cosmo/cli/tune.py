"""`cosmo tune`: choose the parameters of a method on validation workloads."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from cosmo.cli import options
from cosmo.cli.compare import ProcessesOption, SomeSeedsOption
from cosmo.cli.console import note, prepare_engine, print_json, progress, show, show_words
from cosmo.cli.study import WorkersOption, chosen_executor
from cosmo.measure import METRICS, interval_text

_ROWS = 10  # of the best settings; all are in trials.parquet


def tune(
    method_name: Annotated[
        str, typer.Argument(metavar="METHOD", help="A method's name, or file.py:Class.")
    ],
    over: Annotated[
        list[str],
        typer.Option(
            help="A parameter and its range, threshold_ms=0:30 or interval_ms=1:1000:log, or its"
            " values, keep=2,3,5. Repeatable."
        ),
    ],
    scenario_name: options.ScenarioOption = "paper",
    rates: options.RatesOption = None,
    arrivals: ProcessesOption = None,
    settings: options.SetOption = None,
    metric: Annotated[
        str, typer.Option(help="Metric to maximise, e.g. net_utility_per_task.")
    ] = "success_rate",
    trials: Annotated[int, typer.Option(help="Largest number of settings to try.")] = 32,
    seeds: SomeSeedsOption = None,
    episodes: Annotated[int, typer.Option(help="Validation episodes of each run.")] = 5,
    search_seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    workers: WorkersOption = None,
    device: options.DeviceOption = None,
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    out: options.OutOption = Path("cosmo-tune"),
    as_json: options.JsonOption = False,
) -> None:
    """Choose parameters of a method on validation workloads, never on those of evaluation.

    Prints the best setting as a method that can be pasted, and how it compares
    with the default on episodes that the search did not use. The same command
    resumes where it was interrupted.

    cosmo tune my.py:LeastSlack --over threshold_ms=0:30 --rates 220,320

    cosmo tune power-of-d --over keep=2,3,5 --over threshold_ms=1:50:log -s district
    """
    from cosmo.scenario import load, without_trace
    from cosmo.study.search import Search, as_texts
    from cosmo.study.tuning import tuned_in

    given = load(scenario_name, settings or [])
    scenario = without_trace(given)
    search = Search(
        scenario=scenario,
        method=method_name,
        over=as_texts(over),
        arrivals=tuple(options.words_of(arrivals) or [scenario.workload.arrivals]),
        rates=tuple(options.numbers_of(rates) or [float(scenario.workload.rate)]),
        seeds=tuple(options.seeds_from(seeds or "0,1,2")),
        episodes=episodes,
        metric=metric,
        seed=search_seed,
        trials=trials,
    )
    chosen = chosen_executor(executor, workers, address)
    prepare_engine(scenario)
    if given.workload.trace:
        note("tuned on Poisson arrivals: a trace is for evaluation alone")
    with progress(f"{method_name}, {trials} trials") as share_done:
        found = tuned_in(out, search, chosen, share_done)
    if as_json:
        print_json(_document(found))
        return
    loads = ", ".join(f"{rate:g}" for rate in search.rates)
    place = f"{search.scenario.name}, {', '.join(search.arrivals)} at {loads} tasks/s"
    runs = f"{len(search.seeds)} run(s) of {search.episodes} validation episode(s)"
    show_words(f"{method_name} on {place}; {runs}, mean over the loads")
    show(_table(found))
    for cause in dict.fromkeys(found.trials["failed"].drop_nulls()):
        note(f"failed: {cause}")
    show_words(found.sentence())
    show(f"best: {found.method}")
    rivals = " ".join(dict.fromkeys([found.method, search.method]))
    note(f"trials: {out / 'trials.parquet'}\nnext: cosmo compare {rivals} self-tracking")


def _table(found) -> Table:  # type: ignore[no-untyped-def]
    """The table of the best settings and the default."""
    from cosmo.study.tuning import SHOWN

    shown = dict.fromkeys([found.search.metric, *SHOWN])
    titles = {"success_rate": "success", "net_utility_per_task": "net utility"}
    titles |= {"update_cost_rate": "cost", "decision_accuracy": "accuracy"}
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("setting", overflow="fold")
    for name in shown:
        table.add_column(titles.get(name, name), justify="right", no_wrap=True)
    for place, row in enumerate(found.ranked().iter_rows(named=True), 1):
        default = row["method"] == found.search.method
        if place > _ROWS and not default:
            continue
        setting = ", ".join(f"{name}={row[name]}" for name in found.search.over)
        failed = "" if row["failed"] is None else ": failed"
        cells = [interval_text(row[name], None, 1, METRICS[name].digits) for name in shown]
        table.add_row(str(place), Text(("(default)" if default else setting) + failed), *cells)
    return table


def _document(found) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    """The JSON document; its keys are always the same."""
    lead = found.difference
    return {
        "question": found.search.document() | {"scenario": found.search.scenario.name},
        "best": {"method": found.method, "parameters": dict(found.parameters)},
        "default": found.search.method,
        "compared": {
            "metric": found.search.metric,
            "episodes": found.checked_on,
            "best": found.best_mean,
            "default": found.default_mean,
            "difference": None if lead is None else lead.mean,
            "low": None if lead is None else lead.low,
            "high": None if lead is None else lead.high,
        },
        "trials": found.to_frame().to_dicts(),
    }
