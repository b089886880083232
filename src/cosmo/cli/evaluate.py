"""`cosmo evaluate`: trained runs on workloads that training never saw."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import metrics_table, prepare_engine, print_json, progress, show
from cosmo.cli.documents import metrics_document, simulation_document
from cosmo.cli.loads import load_told, windows_of_trace
from cosmo.cli.options import (
    ArrivalsOption,
    EngineOption,
    EpisodesOption,
    JsonOption,
    RateOption,
    SetOption,
    TraceOption,
    check_run,
    chosen_settings,
)
from cosmo.control import Simulation
from cosmo.control import evaluate as play_runs
from cosmo.control.evaluate import trained_on
from cosmo.control.simulate import widened_at
from cosmo.measure import Interval, summary
from cosmo.policy.controller import Controller, load_controller
from cosmo.scenario import Scenario, changed, load


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
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play trained controllers greedily and print their metrics, per run and overall.

    cosmo evaluate trained --episodes 5 --rate 280
    """
    check_run(0, episodes)
    controller = load_controller(folder)
    fields = chosen_settings(settings, arrivals, rate, engine, trace)
    scenarios = _scenarios(controller, scenario_name, fields)
    windows_of_trace(scenarios[0])  # a trace that cannot be read is refused before the work
    prepare_engine(scenarios[0])
    with progress(f"{controller.method}, {len(scenarios)} run(s)") as share_done:
        results = play_runs(controller, episodes, scenarios, share_done=share_done)
    loads = _by_load(scenarios, controller.seeds, results)
    if as_json:
        runs = [
            simulation_document(scenario, controller.method, seed, result)
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
            "overall": overall,
            "runs": runs,
        }
        print_json(document)
        return
    for name, (count, metrics) in loads.items():
        title = (
            f"{controller.method} on {scenarios[0].name} ({name}): means and intervals over"
            f" {count} run(s) of {episodes} episode(s)"
        )
        show(metrics_table(title, metrics, count))


def _by_load(
    scenarios: tuple[Scenario, ...], seeds: Sequence[int], results: list[Simulation]
) -> dict[str, tuple[int, dict[str, Interval]]]:
    """Runs and metrics of every load; intervals are over runs, as in the paper."""
    groups: dict[str, list[tuple[Scenario, int, Simulation]]] = {}
    for run in zip(scenarios, seeds, results, strict=True):
        groups.setdefault(load_told(run[0]), []).append(run)
    found = {}
    for name, runs in groups.items():
        means = [{metric: value.mean for metric, value in run.metrics.items()} for *_, run in runs]
        played = [(seed, number) for _, seed, run in runs for number in range(len(run.episodes))]
        found[name] = (len(runs), summary(means, widened_at(runs[0][0], played)))
    return found


def _scenarios(
    controller: Controller, source: str | None, settings: list[str]
) -> tuple[Scenario, ...]:
    if source is not None:
        return (load(source, settings),) * len(controller.seeds)
    return tuple(changed(scenario, settings) for scenario in trained_on(controller))
