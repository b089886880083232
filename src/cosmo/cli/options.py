"""Options that several commands share, and how they become a scenario."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TypeVar, get_args

import typer

from cosmo.cli.console import note
from cosmo.device import VARIABLE, chosen_device
from cosmo.errors import InputError
from cosmo.scenario import Scenario, load
from cosmo.scenario.model import Engine
from cosmo.seeds import SEED_LIMIT

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
RatesOption = Annotated[
    str | None,
    typer.Option(
        "--rates",
        "--rate",
        help="Tasks/s in each cell, one or several, e.g. 220,320.",
    ),
]
EngineOption = Annotated[
    str | None, typer.Option(help=f"What plays it (engine): {', '.join(get_args(Engine))}.")
]
EnginesOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help=f"What plays it: {', '.join(get_args(Engine))}; several, with commas, are compared.",
    ),
]


def _choose_device(context: typer.Context, name: str | None) -> str | None:
    """Also for the processes that this command starts, and no longer than it runs."""
    if name is not None:
        before = os.environ.get(VARIABLE)
        os.environ[VARIABLE] = _usable(chosen_device(name))
        context.call_on_close(lambda: _set_device(before))
    return name


def _usable(device: str) -> str:
    """The device, or the CPU, and one line that says why."""
    if device == "gpu":
        from cosmo.world.device import cuda
        from cosmo.world.device_code import NoGpuError

        try:
            cuda()
        except NoGpuError as why:
            note(f"device = 'gpu': {why}; played on the CPU, with the same results")
            return "cpu"
    return device


def _set_device(name: str | None) -> None:
    os.environ.pop(VARIABLE, None)
    if name is not None:
        os.environ[VARIABLE] = name


DeviceOption = Annotated[
    str | None,
    typer.Option(
        help="Where rules are played: cpu or gpu, with the same results (gpu: the extra 'gpu').",
        callback=_choose_device,
    ),
]
OutOption = Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")]
SeedsOption = Annotated[
    str, typer.Option("--seeds", "--seed", help="Seeds of the runs, one or several, e.g. 0,1,2.")
]
EpisodesOption = Annotated[int, typer.Option(help="Number of episodes to play.")]
TraceOption = Annotated[
    Path | None,
    typer.Option(help="Take the tasks from this CSV or Parquet file (workload.trace)."),
]
EventsOption = Annotated[
    Path | None,
    typer.Option(
        help="Take speeds, outages and tenants' tasks from this CSV or Parquet file"
        " (workload.events)."
    ),
]
Chosen = TypeVar("Chosen")
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]


def words_of(text: str | None) -> list[str]:
    """Split an option at its commas; none if it was not given."""
    return [] if text is None else [word.strip() for word in text.split(",")]


def chosen_settings(
    settings: list[str] | None,
    arrivals: str | None,
    rate: str | None,
    engine: str | None,
    trace: Path | None = None,
    events: Path | None = None,
) -> list[str]:
    """The settings of a scenario that the options stand for."""
    # Texts, whatever the files are called.
    file, happens = (None if path is None else json.dumps(str(path)) for path in (trace, events))
    shorthand = (
        ("workload.arrivals", arrivals),
        ("workload.rate", rate),
        ("engine", engine),
        ("workload.trace", file),
        ("workload.events", happens),
    )
    return [
        *(settings or []),
        *(f"{name}={value}" for name, value in shorthand if value is not None),
    ]


def chosen_scenarios(
    source: str,
    settings: list[str] | None,
    arrivals: str | None,
    rates: str | None,
    engine: str | None = None,
    trace: Path | None = None,
    events: Path | None = None,
) -> list[Scenario]:
    """The scenario that the options describe, at each of the rates."""
    return [
        load(source, chosen_settings(settings, arrivals, rate, engine, trace, events))
        for rate in rates_of(rates)
    ]


def only_one(option: str, text: str, values: Sequence[Chosen]) -> Chosen:
    """The only value of an option that takes several elsewhere."""
    if len(values) != 1:
        raise InputError(f"{option} = {text!r}: must be one value here")
    return values[0]


def check_episodes_option(episodes: int) -> None:
    """Raise InputError for a number of episodes that is not allowed."""
    if not 1 <= episodes <= 1_000_000:
        raise InputError(f"--episodes = {episodes}: must be from 1 to 1000000")


def rates_of(text: str | None) -> list[str | None]:
    """The rates of the option, each as it was written; a single None if it was not given."""
    return [*words_of(text)] or [None]


def numbers_of(text: str | None) -> list[float]:
    """The numbers of the option `--rates`; empty if it was not given."""
    try:
        return [float(word) for word in words_of(text)]
    except ValueError:
        raise InputError(f"--rates = {text!r}: must be numbers of tasks/s, as in 220,320") from None


def seeds_from(text: str) -> list[int]:
    """The seeds of the option `--seeds`."""
    parts = words_of(text)
    seeds = [int(part) for part in parts if part.isdecimal() and len(part) < 20]
    if len(set(seeds)) < len(parts) or max(seeds) >= SEED_LIMIT:
        raise InputError(
            f"--seeds = {text!r}: must be different whole numbers below 2^63, as in 0,1,2"
        )
    return seeds


def check_output(path: Path, suffixes: tuple[str, ...]) -> None:
    """Raise InputError if the output could not be written, before the work begins."""
    if path.suffix not in suffixes:
        raise InputError(f"'{path}': must end in {' or '.join(suffixes)}")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise InputError(f"'{path}': must be a file in an existing folder")
