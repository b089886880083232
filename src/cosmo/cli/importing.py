"""`cosmo import`: other people's logs and public traces as traces of a scenario."""

from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo

import typer

from cosmo.cli import options
from cosmo.cli.console import note, print_json
from cosmo.control.simulate import simulate
from cosmo.errors import InputError, did_you_mean
from cosmo.scenario import Scenario, changed, load
from cosmo.workload import (
    FORMATS,
    Imported,
    Tasks,
    imported,
    plausibility,
    read_log,
    tasks_of_log,
    whole_windows,
    write_trace,
)
from cosmo.workload.decision_logs import merged_decisions

Kind = Literal["csv", "parquet", "jsonl"]
LOGS: tuple[Kind, ...] = get_args(Kind)
DECISIONS = "decisions"
_ALL = (*LOGS, DECISIONS, *FORMATS)

_MOST_TASKS, _MOST_MS, _LEAST_MS = 5000, 60_000.0, 1000.0  # of the trace that are played
_SIMPLE = "all-local", "local-until-full", "all-offload"  # rules that know nothing of the SNs
_IN_TIME = 0.999  # tasks in time


def import_trace(
    kind: Annotated[str, typer.Argument(metavar="FORMAT", help=f"One of {', '.join(_ALL)}.")],
    file: Annotated[
        Path, typer.Argument(help="The log, the trace as it is published, or a folder of logs.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV or Parquet file to write.")],
    scenario_name: options.ScenarioOption = "paper",
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", help="Where a field is: time_ms=timestamp:epoch_s. Repeatable."),
    ] = None,
    bad_rows: Annotated[str, typer.Option(help="What to do with bad rows: fail or skip.")] = "fail",
    duplicates: Annotated[str, typer.Option(help="Rows that are the same: keep or drop.")] = "keep",
    speed: Annotated[
        float | None,
        typer.Option(help="Cycles that a slot does in a ms, for demands in CPU time."),
    ] = None,
    time_zone: Annotated[str, typer.Option(help="Of dates that do not say theirs.")] = "UTC",
    rate: Annotated[
        float | None,
        typer.Option(
            "--rates",
            "--rate",
            help="Mean tasks/s in each cell, of a public trace (the scenario's rate).",
        ),
    ] = None,
    most: Annotated[
        int, typer.Option(help="Largest number of tasks to convert, of a public trace.")
    ] = 20_000,
    settings: options.SetOption = None,
    seeds: options.SeedsOption = "0",
    as_json: options.JsonOption = False,
) -> None:
    """Convert a log or a public trace to tasks of a scenario, for `--trace` or `workload.trace`.

    cosmo import csv log.csv --column time_ms=timestamp:epoch_s --out trace.parquet
    """
    scenario = load(scenario_name, settings or [])
    seed = options.only_one("--seeds", seeds, options.seeds_from(seeds))
    if kind not in _ALL:
        close = did_you_mean(kind, _ALL)
        raise InputError(f"format = {kind!r}: must be one of {', '.join(_ALL)}{close}")
    if most < 1:
        raise InputError(f"--most = {most}: must be 1 or greater")
    options.check_output(out, (".csv", ".parquet"))
    if kind in LOGS:
        if rate is not None:
            raise InputError("--rates: not with a log, whose times stay as they are")
        rules: dict[str, Any] = {
            "bad_rows": _one_of("--bad-rows", bad_rows, ("fail", "skip")),
            "duplicates": _one_of("--duplicates", duplicates, ("keep", "drop")),
            "speed": speed,
            "zone": _zone(time_zone),
            "seed": seed,
        }
        found = tasks_of_log(read_log(file, kind), scenario, columns or (), **rules)
    elif kind == DECISIONS:
        found = merged_decisions(file, scenario)
    else:
        wanted = scenario.workload.rate if rate is None else rate
        tasks = imported(FORMATS[kind](file), scenario, wanted, most, seed)
        found = Imported(tasks, ["sizes and deadlines are the scenario's"])
    judged = plausibility(found.tasks, scenario)
    write_trace(out, found.tasks, scenario.en.count)
    warnings = list(judged.warnings)
    if not judged.is_trivial and (warning := triviality(out, found.tasks, scenario)):
        warnings.append(warning)
    windows = whole_windows(found.tasks, scenario.episode.window_ms)
    if as_json:
        print_json(
            {
                "out": str(out), "tasks": judged.tasks, "seconds": judged.seconds,
                "windows": windows, "rate": judged.rate, "load": judged.load,
                "feasible": judged.feasible, "notes": found.notes, "warnings": warnings,
            }
        )  # fmt: skip
        return
    note(*found.notes, *judged.lines)
    for line in warnings:
        note(f"warning: {line}")
    note(
        f"wrote {judged.tasks} tasks to {out}: {windows} window(s) of"
        f" {scenario.episode.window_ms:g} ms",
    )


def _one_of(option: str, value: str, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise InputError(f"{option} = {value!r}: must be one of {', '.join(allowed)}")
    return value


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise InputError(
            f"--time-zone = {name!r}: must be a name such as UTC or Europe/Berlin"
        ) from None


def triviality(trace: Path, tasks: Tasks, scenario: Scenario) -> str | None:
    """A warning if about all tasks are in time whatever a method does, so that the trace does not
    tell methods apart; None if methods may differ.

    The beginning of the trace is played: at most 5000 tasks, at most a minute.
    """
    last_ms = float(tasks.time_ms[min(len(tasks), _MOST_TASKS) - 1])
    fields = {
        "engine": "embedded",
        "workload.trace": str(trace),
        "episode.window_ms": min(_MOST_MS, max(_LEAST_MS, last_ms)),
        "episode.warmup_ms": 0.0,
    }
    try:
        played = changed(scenario, fields)
        found = {name: simulate(played, name).metrics["success_rate"].mean for name in _SIMPLE}
    except InputError:
        return None  # what cannot be played on this site is refused where somebody asks for it
    name = max(found, key=lambda each: found[each])
    if found[name] >= _IN_TIME:
        return (
            f"even {name}, which knows nothing of the SNs, has {100 * found[name]:.1f} % of the"
            " tasks in time: success will be about 1 with any method, so that nothing can be"
            " compared"
        )
    return None
