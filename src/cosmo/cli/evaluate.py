"""`cosmo evaluate`: trained runs on workloads that training never saw."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import metrics_table, prepare_engine, print_json, progress, show
from cosmo.cli.documents import metrics_document, simulation_document
from cosmo.cli.options import (
    ArrivalsOption,
    EngineOption,
    EpisodesOption,
    JsonOption,
    RateOption,
    SetOption,
    check_run,
    chosen_settings,
)
from cosmo.control import Simulation
from cosmo.control import evaluate as play_runs
from cosmo.control.evaluate import trained_on
from cosmo.measure import Interval, summary
from cosmo.policy.controller import Controller, load_controller
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
    engine: EngineOption = None,
    settings: SetOption = None,
    trace: Annotated[
        Path | None, typer.Option(help="Take the tasks from this CSV or Parquet file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play trained controllers greedily and print their metrics, per run and overall."""
    check_run(0, episodes)
    controller = load_controller(folder)
    fields = chosen_settings(settings, arrivals, rate, engine)
    scenarios = _scenarios(controller, scenario_name, fields)
    tasks = None if trace is None else read_trace(trace, scenarios[0])
    prepare_engine(scenarios[0])
    with progress(f"{controller.method}, {len(scenarios)} run(s)") as share_done:
        results = play_runs(controller, episodes, scenarios, tasks, share_done)
    loads = _by_load(scenarios, results, trace)
    if as_json:
        runs = [
            simulation_document(scenario, controller.method, seed, result, trace)
            for scenario, seed, result in zip(scenarios, controller.seeds, results, strict=True)
        ]
        overall = [
            {"load": name, "runs": count, "metrics": metrics_document(metrics)}
            for name, (count, metrics) in loads.items()
        ]
        document = {
            "checkpoint": str(folder),
            "method": controller.method,
            "episodes": episodes,
            "overall": overall[0] if len(overall) == 1 else overall,
            "runs": runs,
        }
        print_json(document)
        return
    for name, (count, metrics) in loads.items():
        title = (
            f"{controller.method} on {scenarios[0].name} ({name}): means and intervals over"
            f" {count} run(s) of {episodes} episode(s)"
        )
        show(metrics_table(title, metrics))


def _by_load(
    scenarios: tuple[Scenario, ...], results: list[Simulation], trace: Path | None
) -> dict[str, tuple[int, dict[str, Interval]]]:
    """Runs and metrics of every load; intervals are over runs, as in the paper."""
    groups: dict[str, list[dict[str, float]]] = {}
    for scenario, result in zip(scenarios, results, strict=True):
        workload = scenario.workload
        name = f"trace {trace}" if trace else f"{workload.arrivals}, {workload.rate:g} tasks/s"
        means = {metric: value.mean for metric, value in result.metrics.items()}
        groups.setdefault(name, []).append(means)
    return {name: (len(means), summary(means)) for name, means in groups.items()}


def _scenarios(
    controller: Controller, source: str | None, settings: list[str]
) -> tuple[Scenario, ...]:
    if source is not None:
        return (load(source, settings),) * len(controller.seeds)
    return tuple(changed(scenario, settings) for scenario in trained_on(controller))
