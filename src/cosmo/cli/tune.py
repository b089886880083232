"""`cosmo tune`: the parameters of a method, chosen on validation workloads."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from cosmo.cli.compare import ProcessesOption, RatesOption, SeedsOption, numbers_of, words_of
from cosmo.cli.console import notes, prepare_engine, print_json, progress, show, show_words
from cosmo.cli.options import JsonOption, ScenarioOption, SetOption
from cosmo.cli.study import WorkersOption, chosen_executor
from cosmo.cli.train import seeds_from
from cosmo.measure import told

_ROWS = 10  # of the best settings; all are in trials.parquet
_RUNS = "0,1,2"


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
    scenario_name: ScenarioOption = "paper",
    rates: RatesOption = None,
    arrivals: ProcessesOption = None,
    settings: SetOption = None,
    metric: Annotated[
        str, typer.Option(help="What is to be great, e.g. net_utility_per_task.")
    ] = "success_rate",
    trials: Annotated[int, typer.Option(help="Settings to try, at most.")] = 32,
    seeds: SeedsOption = None,
    episodes: Annotated[int, typer.Option(help="Validation episodes of each run.")] = 5,
    search_seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    workers: WorkersOption = None,
    executor: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "cosmo-tune"
    ),
    as_json: JsonOption = False,
) -> None:
    """Choose parameters of a method on validation workloads, never on those of evaluation.

    Prints the best setting as a method that can be pasted, and how it compares
    with the default on episodes that the search did not use. The same command
    goes on where it was interrupted.

    cosmo tune my.py:LeastSlack --over threshold_ms=0:30 --rates 220,320

    cosmo tune power-of-d --over keep=2,3,5 --over threshold_ms=1:50:log -s district
    """
    from cosmo.scenario import load
    from cosmo.study.tuning import question_of, tuned_in

    scenario = load(scenario_name, settings or [])
    question = question_of(
        scenario,
        method_name,
        over,
        rates=numbers_of(rates) or None,
        arrivals=words_of(arrivals) or None,
        seeds=seeds_from(seeds or _RUNS),
        episodes=episodes,
        metric=metric,
        search_seed=search_seed,
    )
    chosen = chosen_executor(executor, workers, address)
    prepare_engine(question.scenario)
    if scenario.workload.trace:
        notes.print("tuned on Poisson arrivals: a trace is for evaluation alone", soft_wrap=True)
    with progress(f"{method_name}, {trials} trials") as share_done:
        found = tuned_in(out, question, chosen, trials, share_done)
    if as_json:
        print_json(_document(found))
        return
    loads = ", ".join(f"{rate:g}" for rate in question.rates)
    place = f"{question.scenario.name}, {', '.join(question.arrivals)} at {loads} tasks/s"
    runs = f"{len(question.seeds)} run(s) of {question.episodes} validation episode(s)"
    show_words(f"{method_name} on {place}; {runs}, mean over the loads")
    _print_trials(found)
    show_words(found.sentence())
    show(f"best: {found.method}")
    rivals = " ".join(dict.fromkeys([found.method, found.default]))
    notes.print(
        f"trials: {out / 'trials.parquet'}\nnext: cosmo compare {rivals} self-tracking",
        soft_wrap=True,
    )


def _print_trials(found) -> None:  # type: ignore[no-untyped-def]
    """The best settings, and the default wherever it is."""
    from cosmo.study.tuned import DIGITS

    ranked = found.ranked().with_row_index("place", offset=1)
    shown = dict.fromkeys(
        [found.metric, "success_rate", "net_utility_per_task", "update_cost_rate"]
    )
    titles = {
        "success_rate": "success",
        "net_utility_per_task": "net utility",
        "update_cost_rate": "cost",
        "decision_accuracy": "accuracy",
    }
    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("setting", overflow="fold")
    for name in shown:
        table.add_column(titles.get(name, name), justify="right", no_wrap=True)
    for row in ranked.iter_rows(named=True):
        default = row["method"] == found.default
        if row["place"] > _ROWS and not default:
            continue
        setting = ", ".join(
            f"{name}={row[name]}" for name in found.document["over"] if row[name] is not None
        )
        text = "(default)" if default else setting
        if row["failed"] is not None:
            text = f"{text}: failed"
        cells = [told(row[name], None, 1, DIGITS.get(name, 3)) for name in shown]
        table.add_row(str(row["place"]), Text(text), *cells)
    show(table)
    for cause in dict.fromkeys(found.trials["failed"].drop_nulls()):
        notes.print(f"failed: {cause}", soft_wrap=True)


def _document(found) -> dict[str, Any]:  # type: ignore[no-untyped-def]
    """Stable: the same keys whatever was found."""
    lead = found.difference
    question = dict(found.document)
    question["scenario"] = question["scenario"]["name"]
    return {
        "question": question,
        "best": {"method": found.method, "parameters": dict(found.parameters)},
        "default": found.default,
        "compared": {
            "metric": found.metric,
            "episodes": found.checked_on,
            "best": found.best_mean,
            "default": found.default_mean,
            "difference": None if lead is None else lead.mean,
            "low": None if lead is None else lead.low,
            "high": None if lead is None else lead.high,
        },
        "trials": found.to_frame().to_dicts(),
    }
