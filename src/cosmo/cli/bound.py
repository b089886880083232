"""`cosmo bound`: how many tasks any policy can serve in time, episode by episode (R34)."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from cosmo.cli.console import number, prepare_engine, print_json, progress, show
from cosmo.cli.documents import metrics_document
from cosmo.cli.options import (
    ArrivalsOption,
    EpisodesOption,
    JsonOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SetOption,
    check_run,
    chosen_scenario,
)
from cosmo.measure import clairvoyant_bound, interval, told
from cosmo.measure.clairvoyant import GRID_MS
from cosmo.workload import episode, from_tasks, read_trace


def bound(
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    episodes: EpisodesOption = 1,
    grid_ms: Annotated[
        float, typer.Option(help="Cells of time in ms; a finer grid may give a lower bound.")
    ] = GRID_MS,
    trace: Annotated[
        Path | None, typer.Option(help="Take the tasks from this CSV or Parquet file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compute the clairvoyant bound of the success rate of every policy on these episodes.

    cosmo bound --rate 320 --episodes 2
    """
    scenario = chosen_scenario(scenario_name, settings, arrivals, rate)
    check_run(seed, episodes)
    tasks = None if trace is None else read_trace(trace, scenario)
    prepare_engine()
    found = []
    with progress(f"{scenario.name}, bound") as share_done:
        for count in range(episodes):
            world = (
                episode(scenario, seed, count)
                if tasks is None
                else from_tasks(scenario, tasks, seed, count)
            )
            found.append(clairvoyant_bound(scenario, world, grid_ms))
            share_done((count + 1) / episodes)
    mean = interval([each.success_rate for each in found])
    if as_json:
        print_json(
            {
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
        )
        return
    load = (
        f"trace {trace}" if trace else f"{scenario.workload.arrivals}, {scenario.workload.rate:g}"
    )
    title = f"clairvoyant bound on {scenario.name} ({load}), seed {seed}: "
    title += told(mean.mean, mean.ci95, len(found), 4)
    table = Table("episode", title=title, title_justify="left", title_style="bold", box=SIMPLE)
    for column in ("success rate", "successes", "of tasks", "unknowns", "seconds"):
        table.add_column(column, justify="right")
    for count, each in enumerate(found):
        cells = each.successes, each.measured, each.unknowns
        rate_and_time = number(each.success_rate, 4), number(each.seconds, 1)
        table.add_row(str(count), rate_and_time[0], *map(str, cells), rate_and_time[1])
    show(table)
