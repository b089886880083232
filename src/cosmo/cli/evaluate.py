"""`cosmo evaluate`: play trained runs on workloads that training has not used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli import options
from cosmo.cli.console import metrics_table, prepare_engine, print_json, progress, show
from cosmo.cli.documents import metrics_document, simulation_document
from cosmo.cli.loads import load_text, windows_of_trace
from cosmo.control import Simulation
from cosmo.control import evaluate as play_runs
from cosmo.control.evaluate import trained_on
from cosmo.control.simulate import part_of, widened_at
from cosmo.measure import Interval, summary
from cosmo.policy.controller import Controller, load_controller
from cosmo.scenario import Scenario, changed, load


def evaluate(
    folder: Annotated[Path, typer.Argument(help="The folder that `cosmo train` wrote.")],
    episodes: options.EpisodesOption = 5,
    scenario_name: Annotated[
        str | None,
        typer.Option("--scenario", "-s", help="A scenario other than that of the training."),
    ] = None,
    arrivals: options.ArrivalsOption = None,
    rates: options.RatesOption = None,
    engine: options.EngineOption = None,
    settings: options.SetOption = None,
    trace: options.TraceOption = None,
    events: options.EventsOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Play trained controllers greedily and print their metrics, per run and overall.

    cosmo evaluate trained --episodes 5 --rates 280
    """
    options.check_episodes_option(episodes)
    controller = load_controller(folder)
    points = [
        _scenarios(
            controller,
            scenario_name,
            options.chosen_settings(settings, arrivals, rate, engine, trace, events),
        )
        for rate in options.rates_of(rates)
    ]
    windows_of_trace(points[0][0])  # a trace that cannot be read is refused before the work
    prepare_engine(points[0][0])
    results: list[Simulation] = []
    with progress(f"{controller.method}, {len(controller.seeds)} run(s)") as share_done:
        for done, where in enumerate(points):
            results += play_runs(
                controller,
                scenario=where,
                episodes=episodes,
                share_done=part_of(share_done, done, len(points)),
            )
    scenarios = tuple(scenario for where in points for scenario in where)
    seeds = controller.seeds * len(points)
    loads = _by_load(scenarios, seeds, results)
    if as_json:
        runs = [
            simulation_document(scenario, controller.method, seed, result)
            for scenario, seed, result in zip(scenarios, seeds, results, strict=True)
        ]
        overall = [
            {"load": name, "runs": count, "metrics": metrics_document(metrics)}
            for name, (count, metrics) in loads.items()
        ]
        document = {
            "checkpoint": str(folder),
            "method": controller.method,
            "device": controller.device or None,
            "episodes": episodes,
            "overall": overall,
            "runs": runs,
        }
        print_json(document)
        return
    trained_where = f" (trained on {controller.device.upper()})" if controller.device else ""
    for name, (count, metrics) in loads.items():
        title = (
            f"{controller.method}{trained_where} on {scenarios[0].name} ({name}): means and"
            f" intervals over {count} run(s) of {episodes} episode(s)"
        )
        show(metrics_table(title, metrics, count))


def _by_load(
    scenarios: tuple[Scenario, ...], seeds: Sequence[int], results: list[Simulation]
) -> dict[str, tuple[int, dict[str, Interval]]]:
    """Runs and metrics of every load; intervals are over runs, as in the paper."""
    groups: dict[str, list[tuple[Scenario, int, Simulation]]] = {}
    for run in zip(scenarios, seeds, results, strict=True):
        groups.setdefault(load_text(run[0]), []).append(run)
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
