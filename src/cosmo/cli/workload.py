"""`cosmo workload`: write the tasks of an episode, and the events of its nodes, as files."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import notes
from cosmo.cli.options import (
    ArrivalsOption,
    RatesOption,
    ScenarioOption,
    SeedsOption,
    SetOption,
    check_output,
    chosen_scenarios,
    only_one,
    seeds_from,
)
from cosmo.errors import InputError
from cosmo.workload import episode as generate
from cosmo.workload import write_events, write_trace


def workload(
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rates: RatesOption = None,
    settings: SetOption = None,
    seeds: SeedsOption = "0",
    episode: Annotated[int, typer.Option(help="Number of the episode in the run.")] = 0,
    events_out: Annotated[
        Path | None,
        typer.Option(help="Also write speeds, outages and tenants' tasks to this file."),
    ] = None,
) -> None:
    """Write the tasks that a scenario generates, for `--trace` or for other tools.

    With `--events-out`, also all that happens at its nodes, for `--events`.

    cosmo workload --rates 280 --seeds 3 --out trace.csv
    """
    scenarios = chosen_scenarios(scenario_name, settings, arrivals, rates)
    scenario = only_one("--rates", rates or "", scenarios)
    seed = only_one("--seeds", seeds, seeds_from(seeds))
    if not 0 <= episode < 1_000_000:
        raise InputError(f"--episode = {episode}: must be from 0 to 999999")
    check_output(out, (".csv", ".parquet"))
    if events_out is not None:
        check_output(events_out, (".csv", ".parquet"))
    made = generate(scenario, seed, episode)
    write_trace(out, made.tasks, scenario.en.count)
    notes.print(f"wrote {len(made.tasks)} tasks to {out}", soft_wrap=True)
    if events_out is not None:
        write_events(events_out, made, scenario.en.count)
        count = len(made.events) + len(made.background)
        notes.print(f"wrote {count} events to {events_out}", soft_wrap=True)
