"""`cosmo workload`: write the tasks of an episode, and the events of its nodes, as files."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli import options
from cosmo.cli.console import note
from cosmo.errors import InputError
from cosmo.workload import episode as generate
from cosmo.workload import write_events, write_trace


def workload(
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: options.ScenarioOption = "paper",
    arrivals: options.ArrivalsOption = None,
    rates: options.RatesOption = None,
    settings: options.SetOption = None,
    seeds: options.SeedsOption = "0",
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
    scenarios = options.chosen_scenarios(scenario_name, settings, arrivals, rates)
    scenario = options.only_one("--rates", rates or "", scenarios)
    seed = options.only_one("--seeds", seeds, options.seeds_from(seeds))
    if not 0 <= episode < 1_000_000:
        raise InputError(f"--episode = {episode}: must be from 0 to 999999")
    options.check_output(out, (".csv", ".parquet"))
    if events_out is not None:
        options.check_output(events_out, (".csv", ".parquet"))
    made = generate(scenario, seed, episode)
    write_trace(out, made.tasks, scenario.en.count)
    note(f"wrote {len(made.tasks)} tasks to {out}")
    if events_out is not None:
        write_events(events_out, made, scenario.en.count)
        count = len(made.events) + len(made.background)
        note(f"wrote {count} events to {events_out}")
