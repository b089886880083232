"""Options that several commands share, and how they become a scenario."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cosmo.errors import InputError
from cosmo.scenario import Scenario, load

ScenarioOption = Annotated[
    str, typer.Option("--scenario", "-s", help="A preset's name or a TOML file.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Set a field of the scenario, e.g. workload.rate=220. Repeatable."),
]
ArrivalsOption = Annotated[
    str | None, typer.Option(help="deterministic, poisson, bursty or steps (workload.arrivals).")
]
RateOption = Annotated[str | None, typer.Option(help="Tasks/s in each cell (workload.rate).")]
EngineOption = Annotated[
    str | None, typer.Option(help="embedded or ns3 (engine): what carries messages.")
]
SeedOption = Annotated[int, typer.Option(help="Seed of the run.")]
EpisodesOption = Annotated[int, typer.Option(help="How many episodes to play.")]
TraceOption = Annotated[
    Path | None,
    typer.Option(help="Take the tasks from this CSV or Parquet file (workload.trace)."),
]
SEED_LIMIT = 2**63  # columns of tables have 64 bits
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]


def chosen_settings(
    settings: list[str] | None,
    arrivals: str | None,
    rate: str | None,
    engine: str | None,
    trace: Path | None = None,
) -> list[str]:
    """What the options set in a scenario."""
    file = None if trace is None else json.dumps(str(trace))  # a text, whatever it is called
    shorthand = (
        ("workload.arrivals", arrivals),
        ("workload.rate", rate),
        ("engine", engine),
        ("workload.trace", file),
    )
    return [
        *(settings or []),
        *(f"{name}={value}" for name, value in shorthand if value is not None),
    ]


def chosen_scenario(
    source: str,
    settings: list[str] | None,
    arrivals: str | None,
    rate: str | None,
    engine: str | None = None,
    trace: Path | None = None,
) -> Scenario:
    """The scenario that the options describe."""
    return load(source, chosen_settings(settings, arrivals, rate, engine, trace))


def check_run(seed: int, episodes: int) -> None:
    """Refuse what no run can have."""
    if not 0 <= seed < SEED_LIMIT:
        raise InputError(f"--seed = {seed}: must be 0 or greater, and below 2^63")
    if not 1 <= episodes <= 1_000_000:
        raise InputError(f"--episodes = {episodes}: must be from 1 to 1000000")


def check_output(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse an output that could not be written, before the work and not after it."""
    if path.suffix not in suffixes:
        raise InputError(f"'{path}': must end in {' or '.join(suffixes)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"'{path}': must be a file in an existing folder")
