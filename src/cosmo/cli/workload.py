"""`cosmo workload`: the tasks of an episode as a trace file."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import notes
from cosmo.cli.options import (
    ArrivalsOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SetOption,
    check_output,
    check_run,
    chosen_scenario,
)
from cosmo.errors import InputError
from cosmo.workload import episode as generate
from cosmo.workload import write_trace


def workload(
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    episode: Annotated[int, typer.Option(help="Number of the episode in the run.")] = 0,
) -> None:
    """Write the tasks that a scenario generates, for `--trace` or for other tools.

    cosmo workload --rate 280 --seed 3 --out trace.csv
    """
    scenario = chosen_scenario(scenario_name, settings, arrivals, rate)
    check_run(seed, 1)
    if not 0 <= episode < 1_000_000:
        raise InputError(f"--episode = {episode}: must be from 0 to 999999")
    check_output(out, (".csv", ".parquet"))
    tasks = generate(scenario, seed, episode).tasks
    write_trace(out, tasks, scenario.en.count)
    notes.print(f"wrote {len(tasks)} tasks to {out}", soft_wrap=True)
