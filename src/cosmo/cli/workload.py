"""`cosmo workload`: write the tasks of an episode as a trace file."""

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
from cosmo.workload import write_trace


def workload(
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rates: RatesOption = None,
    settings: SetOption = None,
    seeds: SeedsOption = "0",
    episode: Annotated[int, typer.Option(help="Number of the episode in the run.")] = 0,
) -> None:
    """Write the tasks that a scenario generates, for `--trace` or for other tools.

    cosmo workload --rates 280 --seeds 3 --out trace.csv
    """
    scenarios = chosen_scenarios(scenario_name, settings, arrivals, rates)
    scenario = only_one("--rates", rates or "", scenarios)
    seed = only_one("--seeds", seeds, seeds_from(seeds))
    if not 0 <= episode < 1_000_000:
        raise InputError(f"--episode = {episode}: must be from 0 to 999999")
    check_output(out, (".csv", ".parquet"))
    tasks = generate(scenario, seed, episode).tasks
    write_trace(out, tasks, scenario.en.count)
    notes.print(f"wrote {len(tasks)} tasks to {out}", soft_wrap=True)
