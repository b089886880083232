"""`cosmo import`: convert a public trace of another system for a scenario."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import notes
from cosmo.cli.options import (
    ScenarioOption,
    SeedsOption,
    SetOption,
    check_output,
    only_one,
    seeds_from,
)
from cosmo.errors import InputError, did_you_mean
from cosmo.scenario import load
from cosmo.workload import FORMATS, imported, whole_windows, write_trace


def import_trace(
    kind: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(FORMATS)}.")],
    file: Annotated[Path, typer.Argument(help="The CSV file as it is published.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: ScenarioOption = "paper",
    rate: Annotated[
        float | None,
        typer.Option(help="Mean tasks/s in each cell, the scenario's rate by default."),
    ] = None,
    most: Annotated[int, typer.Option(help="Largest number of tasks to convert.")] = 20_000,
    settings: SetOption = None,
    seeds: SeedsOption = "0",
) -> None:
    """Convert a public trace to tasks of a scenario, for `--trace` or `workload.trace`.

    cosmo import azure-functions-2021 trace.txt --rates 150 --out azure.parquet
    """
    scenario = load(scenario_name, settings or [])
    seed = only_one("--seeds", seeds, seeds_from(seeds))
    if kind not in FORMATS:
        close = did_you_mean(kind, FORMATS)
        raise InputError(f"format = {kind!r}: must be one of {', '.join(FORMATS)}{close}")
    if most < 1:
        raise InputError(f"--most = {most}: must be 1 or greater")
    check_output(out, (".csv", ".parquet"))
    wanted = scenario.workload.rate if rate is None else rate
    tasks = imported(FORMATS[kind](file), scenario, wanted, most, seed)
    write_trace(out, tasks, scenario.en.count)
    windows = whole_windows(tasks, scenario.episode.window_ms)
    notes.print(
        f"wrote {len(tasks)} tasks to {out}: {windows} window(s) of"
        f" {scenario.episode.window_ms:g} ms; sizes and deadlines are the scenario's",
        soft_wrap=True,
    )
