"""`cosmo evaluate`: trained runs on workloads that training never saw."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cosmo.cli.console import compile_engine, metrics_table, progress
from cosmo.cli.documents import metrics_document, simulation_document
from cosmo.cli.options import (
    ArrivalsOption,
    EpisodesOption,
    JsonOption,
    RateOption,
    SetOption,
    check_run,
)
from cosmo.control import Controller, load_controller
from cosmo.control import evaluate as play_runs
from cosmo.measure import summary
from cosmo.scenario import Scenario, changed, load
from cosmo.workload import read_trace


def evaluate(
    folder: Annotated[Path, typer.Argument(help="What `cosmo train` wrote.")],
    episodes: EpisodesOption = 5,
    scenario_name: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="Another scenario than it was trained on."),
    ] = None,
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    settings: SetOption = None,
    trace: Annotated[
        Path | None, typer.Option(help="Take the tasks from this CSV or Parquet file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play trained controllers greedily and print their metrics, per run and overall."""
    check_run(0, episodes)
    controller = load_controller(folder)
    shorthand = [
        f"workload.{name}={value}"
        for name, value in (("arrivals", arrivals), ("rate", rate))
        if value is not None
    ]
    scenarios = _scenarios(controller, scenario_name, [*(settings or []), *shorthand])
    tasks = None if trace is None else read_trace(trace, scenarios[0])
    compile_engine()
    with progress(f"{controller.method}, {len(scenarios)} run(s)") as share_done:
        results = play_runs(controller, episodes, scenarios, tasks, share_done)
    # The paper's intervals are over runs: a run's episodes are averaged first.
    means = [{name: value.mean for name, value in run.metrics.items()} for run in results]
    overall = summary(means)
    if as_json:
        runs = [
            simulation_document(scenario, controller.method, seed, result, trace)
            for scenario, seed, result in zip(scenarios, controller.seeds, results, strict=True)
        ]
        document = {
            "checkpoint": str(folder),
            "method": controller.method,
            "episodes": episodes,
            "overall": {"runs": len(runs), "metrics": metrics_document(overall)},
            "runs": runs,
        }
        typer.echo(json.dumps(document, indent=2))
        return
    first = scenarios[0]
    load_ = (
        f"trace {trace}" if trace else f"{first.workload.arrivals}, {first.workload.rate:g} tasks/s"
    )
    title = (
        f"{controller.method} on {first.name} ({load_}): means and intervals over"
        f" {len(results)} run(s) of {episodes} episode(s)"
    )
    Console().print(metrics_table(title, overall))


def _scenarios(
    controller: Controller, source: str | None, settings: list[str]
) -> tuple[Scenario, ...]:
    if source is not None:
        return (load(source, settings),) * len(controller.seeds)
    return tuple(changed(scenario, settings) for scenario in controller.scenarios)
