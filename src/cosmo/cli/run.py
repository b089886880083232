"""`cosmo run`: the main job, a preset of `cosmo compare`: CoSMO at one load, and everyone."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.compare import RunEpisodesOption, compared, fields_of, words_of
from cosmo.cli.options import JsonOption, ScenarioOption, SetOption
from cosmo.cli.study import WorkersOption
from cosmo.cli.train import seeds_from
from cosmo.control import BASELINES

_FOCUS = "cosmo"


def run(
    scenario_name: ScenarioOption = "paper",
    arrivals: Annotated[
        str, typer.Option(help="Arrival processes, separated by commas.")
    ] = "deterministic,poisson",
    rate: Annotated[float, typer.Option(help="Tasks/s in each cell.")] = 320.0,
    settings: SetOption = None,
    seeds: Annotated[str, typer.Option(help="Seeds of the runs, e.g. 0,1,2.")] = "0,1,2",
    episodes: RunEpisodesOption = 5,
    workers: WorkersOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")] = Path(
        "cosmo-run"
    ),
    as_json: JsonOption = False,
) -> None:
    """Train cosmo at one load, compare it with every baseline on equal workloads, report.

    cosmo run --rate 220 --out at-220
    """
    plan = {
        "name": "run",
        "description": f"CoSMO and every baseline at {rate:g} tasks/s",
        "scenarios": [scenario_name],
        "arrivals": words_of(arrivals),
        "rates": [rate],
        "seeds": seeds_from(seeds),
        "episodes": episodes,
        "focus": _FOCUS,
        "compare": [{"methods": [_FOCUS, "cosmo-next", *BASELINES]}],
    }
    compared(plan | fields_of(settings, None), workers, out, as_json)
