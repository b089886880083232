"""`cosmo simulate`: one method on one scenario, no training."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import metrics_table, notes, prepare_engine, print_json, progress, show
from cosmo.cli.documents import simulation_document
from cosmo.cli.options import (
    ArrivalsOption,
    EngineOption,
    EpisodesOption,
    JsonOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SetOption,
    check_output,
    check_run,
    chosen_scenario,
)
from cosmo.control import method
from cosmo.control import simulate as play_episodes
from cosmo.measure import task_table
from cosmo.scenario import Scenario
from cosmo.tables import write_table
from cosmo.workload import read_trace


def simulate(
    method_name: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="A method's name (see `cosmo methods`) or file.py:Class."
        ),
    ],
    scenario_name: ScenarioOption = "paper",
    arrivals: ArrivalsOption = None,
    rate: RateOption = None,
    engine: EngineOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    episodes: EpisodesOption = 1,
    trace: Annotated[
        Path | None, typer.Option(help="Take the tasks from this CSV or Parquet file.")
    ] = None,
    tasks_out: Annotated[
        Path | None, typer.Option(help="Write one row per task to this CSV or Parquet file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a method on a scenario and print its metrics."""
    scenario = chosen_scenario(scenario_name, settings, arrivals, rate, engine)
    check_run(seed, episodes)
    chosen = method(method_name)
    if tasks_out is not None:
        check_output(tasks_out, (".csv", ".parquet"))
    tasks = None if trace is None else read_trace(trace, scenario)
    prepare_engine(scenario)
    with progress(f"{scenario.name}, {method_name}") as share_done:
        result = play_episodes(scenario, chosen, seed, episodes, tasks, share_done)
    if tasks_out is not None:
        table = task_table(result.outcomes, scenario)
        write_table(tasks_out, table)
    if as_json:
        print_json(simulation_document(scenario, method_name, seed, result, trace))
        return
    load = f"trace {trace}" if trace else f"{scenario.workload.arrivals}, {_load(scenario)}"
    title = f"{method_name} on {scenario.name} ({load}), seed {seed}, {episodes} episode(s)"
    show(metrics_table(title, result.metrics))
    undecided = sum(int((outcome.action < 0).sum()) for outcome in result.outcomes)
    if undecided:
        total = sum(len(outcome.tasks) for outcome in result.outcomes)
        notes.print(f"{undecided} of {total} tasks did not reach their EN in time (R4, R7)")
    if tasks_out is not None:
        notes.print(f"wrote {tasks_out}", soft_wrap=True)


def _load(scenario: Scenario) -> str:
    return f"{scenario.workload.rate:g} tasks/s"
