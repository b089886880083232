"""`cosmo bound`: how many tasks any policy can serve in time, for each episode (R34)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli import options
from cosmo.cli.console import number, prepare_engine, print_json, progress, show
from cosmo.cli.documents import metrics_document
from cosmo.measure import clairvoyant_bound, interval, interval_text
from cosmo.measure.clairvoyant import GRID_MS, ClairvoyantBound
from cosmo.scenario import Scenario
from cosmo.workload import episode


def bound(
    scenario_name: options.ScenarioOption = "paper",
    arrivals: options.ArrivalsOption = None,
    rates: options.RatesOption = None,
    settings: options.SetOption = None,
    seeds: options.SeedsOption = "0",
    episodes: options.EpisodesOption = 1,
    grid_ms: Annotated[
        float,
        typer.Option(help="Length of the time cells in ms; a finer grid may give a lower bound."),
    ] = GRID_MS,
    trace: options.TraceOption = None,
    events: options.EventsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Compute the clairvoyant bound of the success rate of every policy on these episodes.

    cosmo bound --rates 320 --episodes 2
    """
    scenarios = options.chosen_scenarios(
        scenario_name, settings, arrivals, rates, None, trace, events
    )
    runs = [(scenario, seed) for scenario in scenarios for seed in options.seeds_from(seeds)]
    options.check_episodes_option(episodes)
    prepare_engine()
    results: list[list[ClairvoyantBound]] = []
    with progress(f"{scenarios[0].name}, bound") as share_done:
        for done, (scenario, seed) in enumerate(runs):
            found = []
            for count in range(episodes):
                world = episode(scenario, seed, count)
                found.append(clairvoyant_bound(scenario, world, grid_ms))
                share_done((done + (count + 1) / episodes) / len(runs))
            results.append(found)
    if as_json:
        documents = [
            _document(scenario, trace, seed, grid_ms, found)
            for (scenario, seed), found in zip(runs, results, strict=True)
        ]
        print_json(documents[0] if len(runs) == 1 else {"runs": documents})
        return
    for (scenario, seed), found in zip(runs, results, strict=True):
        _show(scenario, trace, seed, found)


def _document(
    scenario: Scenario, trace: Path | None, seed: int, grid_ms: float, found: list[ClairvoyantBound]
) -> dict[str, object]:
    mean = interval([each.success_rate for each in found])
    return {
        "scenario": scenario.name,
        "arrivals": None if trace else scenario.workload.arrivals,
        "rate": None if trace else scenario.workload.rate,
        "trace": None if trace is None else str(trace),
        "seed": seed,
        "grid_ms": grid_ms,
        **metrics_document({"success_rate": mean}),
        "episodes": [
            {
                "success_rate": each.success_rate,
                "successes": each.successes,
                "measured": each.measured,
                "unknowns": each.unknowns,
                "seconds": round(each.seconds, 3),
            }
            for each in found
        ],
    }


def _show(scenario: Scenario, trace: Path | None, seed: int, found: list[ClairvoyantBound]) -> None:
    mean = interval([each.success_rate for each in found])
    load = (
        f"trace {trace}" if trace else f"{scenario.workload.arrivals}, {scenario.workload.rate:g}"
    )
    title = f"clairvoyant bound on {scenario.name} ({load}), seed {seed}: "
    title += interval_text(mean.mean, mean.ci95, len(found), 4)
    table = Table("episode", title=title, title_justify="left", title_style="bold", box=SIMPLE)
    for column in ("success rate", "successes", "of tasks", "unknowns", "seconds"):
        table.add_column(column, justify="right")
    for count, each in enumerate(found):
        cells = each.successes, each.measured, each.unknowns
        rate_and_time = number(each.success_rate, 4), number(each.seconds, 1)
        table.add_row(str(count), rate_and_time[0], *map(str, cells), rate_and_time[1])
    show(table)
