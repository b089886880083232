"""`cosmo run`: train `cosmo` at one load and compare it with all baselines (a preset)."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli import options
from cosmo.cli.compare import RunEpisodesOption, compared, fields_of
from cosmo.cli.study import WorkersOption
from cosmo.control import BASELINES

_FOCUS = "cosmo"


def run(
    scenario_name: options.ScenarioOption = "paper",
    arrivals: Annotated[
        str, typer.Option(help="Arrival processes, separated by commas.")
    ] = "deterministic,poisson",
    rates: options.RatesOption = "320",
    settings: options.SetOption = None,
    seeds: options.SeedsOption = "0,1,2",
    episodes: RunEpisodesOption = 5,
    workers: WorkersOption = None,
    out: options.OutOption = Path("cosmo-run"),
    as_json: options.JsonOption = False,
) -> None:
    """Train cosmo at one load, compare it with every baseline on equal workloads, write a report.

    cosmo run --rates 220 --out at-220
    """
    plan = {
        "name": "run",
        "description": f"CoSMO and every baseline at {rates} tasks/s",
        "scenarios": [scenario_name],
        "arrivals": options.words_of(arrivals),
        "rates": options.numbers_of(rates),
        "seeds": options.seeds_from(seeds),
        "episodes": episodes,
        "focus": _FOCUS,
        "compare": [{"methods": [_FOCUS, "cosmo-next", *BASELINES]}],
    }
    compared(plan | fields_of(settings, None), workers, out, as_json)
