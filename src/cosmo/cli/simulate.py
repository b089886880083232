"""`cosmo simulate`: one method on one scenario, no training."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli.console import metrics_table, notes, prepare_engine, print_json, progress, show
from cosmo.cli.documents import simulation_document
from cosmo.cli.loads import load_told, resampling_told, windows_of_trace
from cosmo.cli.options import (
    ArrivalsOption,
    EngineOption,
    JsonOption,
    RateOption,
    ScenarioOption,
    SeedOption,
    SetOption,
    TraceOption,
    check_output,
    check_run,
    chosen_scenario,
)
from cosmo.control import method
from cosmo.control import simulate as play_episodes
from cosmo.measure import lost_tasks_told, task_table
from cosmo.tables import write_table
from cosmo.world import site_of


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
    episodes: Annotated[
        int | None,
        typer.Option(help="How many episodes to play: 1, or all windows of a trace by default."),
    ] = None,
    trace: TraceOption = None,
    tasks_out: Annotated[
        Path | None, typer.Option(help="Write one row per task to this CSV or Parquet file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a method on a scenario and print its metrics.

    cosmo simulate --method self-tracking --rate 280 --episodes 5

    cosmo simulate -m my_policies.py:LeastWork:margin_ms=25 -s shared-sn --json
    """
    scenario = chosen_scenario(scenario_name, settings, arrivals, rate, engine, trace)
    windows = windows_of_trace(scenario)
    episodes = (windows or 1) if episodes is None else episodes
    check_run(seed, episodes)
    chosen = method(method_name)
    if tasks_out is not None:
        check_output(tasks_out, (".csv", ".parquet"))
    prepare_engine(scenario)
    with progress(f"{scenario.name}, {method_name}") as share_done:
        result = play_episodes(scenario, chosen, seed, episodes, share_done=share_done)
    if tasks_out is not None:
        table = task_table(result.outcomes, scenario)
        write_table(tasks_out, table)
    if as_json:
        print_json(simulation_document(scenario, method_name, seed, result))
        return
    place = f"{scenario.name} ({load_told(scenario)})"
    title = f"{method_name} on {place}, seed {seed}, {episodes} episode(s)"
    show(metrics_table(title, result.metrics, episodes))
    lost = lost_tasks_told(scenario, result.outcomes)
    noticed = chosen.notice(site_of(scenario))
    for line in (*resampling_told(scenario, seed, episodes), *lost, *filter(None, [noticed])):
        notes.print(line, soft_wrap=True)
    if tasks_out is not None:
        notes.print(f"wrote {tasks_out}", soft_wrap=True)
