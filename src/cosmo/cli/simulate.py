"""`cosmo simulate`: play one method on one scenario, without training."""

from pathlib import Path
from typing import Annotated

import typer

from cosmo.cli import options
from cosmo.cli.console import metrics_table, note, prepare_engine, print_json, progress, show
from cosmo.cli.documents import simulation_document
from cosmo.cli.loads import load_text, resampling_notices, unread_notices, windows_of_trace
from cosmo.control import method, simulate_runs
from cosmo.control.simulate import part_of
from cosmo.errors import InputError
from cosmo.measure import lost_task_notices, task_table
from cosmo.tables import write_table
from cosmo.world import hidden_of, site_of


def simulate(
    method_name: Annotated[
        str,
        typer.Option(
            "--method", "-m", help="A method's name (see `cosmo methods`) or file.py:Class."
        ),
    ],
    scenario_name: options.ScenarioOption = "paper",
    arrivals: options.ArrivalsOption = None,
    rates: options.RatesOption = None,
    engine: options.EngineOption = None,
    device: options.DeviceOption = None,
    settings: options.SetOption = None,
    seeds: options.SeedsOption = "0",
    episodes: Annotated[
        int | None,
        typer.Option(help="Number of episodes (default: 1, or all windows of a trace)."),
    ] = None,
    trace: options.TraceOption = None,
    events: options.EventsOption = None,
    tasks_out: Annotated[
        Path | None, typer.Option(help="Write one row per task to this CSV or Parquet file.")
    ] = None,
    view: Annotated[
        Path | None,
        typer.Option(help="Write a page with a map of the first episode, to be watched: .html."),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Play a method on a scenario and print its metrics.

    cosmo simulate --method self-tracking --rates 280 --episodes 5

    cosmo simulate -m my_policies.py:LeastWork:margin_ms=25 -s shared-sn --json

    cosmo simulate -m aoi-threshold -s campus --view campus.html
    """
    scenarios = options.chosen_scenarios(
        scenario_name, settings, arrivals, rates, engine, trace, events
    )
    own_seeds = options.seeds_from(seeds)
    runs = [(scenario, seed) for scenario in scenarios for seed in own_seeds]
    windows = windows_of_trace(scenarios[0])
    episodes = (windows or 1) if episodes is None else episodes
    options.check_episodes_option(episodes)
    chosen = method(method_name)
    for option, path, suffixes in (
        ("--tasks-out", tasks_out, (".csv", ".parquet")),
        ("--view", view, (".html",)),
    ):
        if path is not None:
            if len(runs) > 1:
                raise InputError(f"{option} = '{path}': must be with one rate and one seed")
            options.check_output(path, suffixes)
    if view is not None and scenarios[0].engine == "live":
        raise InputError(f"--view = '{view}': the engine live cannot be recorded; see cosmo view")
    prepare_engine(scenarios[0])
    results = []
    with progress(f"{scenarios[0].name}, {method_name}") as share_done:
        for done, scenario in enumerate(scenarios):
            share = part_of(share_done, done, len(scenarios))
            results += simulate_runs(scenario, method_name, own_seeds, episodes, share_done=share)
    if tasks_out is not None:
        write_table(tasks_out, task_table(results[0].outcomes, scenarios[0]))
    if view is not None:
        from cosmo.report.recorded import write_first_episode

        write_first_episode(scenarios[0], method_name, runs[0][1], view)
    if as_json:
        documents = [
            simulation_document(scenario, method_name, seed, result)
            for (scenario, seed), result in zip(runs, results, strict=True)
        ]
        print_json(documents[0] if len(runs) == 1 else {"runs": documents})
        return
    for (scenario, seed), result in zip(runs, results, strict=True):
        place = f"{scenario.name} ({load_text(scenario)})"
        title = f"{method_name} on {place}, seed {seed}, {episodes} episode(s)"
        show(metrics_table(title, result.metrics, episodes))
        lost = lost_task_notices(scenario, result.outcomes)
        of_trace = *unread_notices(scenario), *resampling_notices(scenario, seed, episodes)
        note(*of_trace, *lost)
    noticed = chosen.notice(site_of(scenarios[0]), hidden_of(scenarios[0]))
    met = {line for result in results for line in result.remarks}
    note(*filter(None, (noticed, *sorted(met))))
    if tasks_out is not None:
        note(f"wrote {tasks_out}")
    if view is not None:
        note(f"open {view}")
