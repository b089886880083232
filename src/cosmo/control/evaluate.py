"""Trained controllers put to the test: greedy episodes on workloads that training never saw."""

from collections.abc import Sequence
from pathlib import Path

from cosmo.control.named import ScenarioLike, Settings, as_scenario
from cosmo.control.play import play
from cosmo.control.simulate import ShareDone, Simulation, widened_at
from cosmo.engine import worlds_at_once
from cosmo.errors import InputError
from cosmo.measure import Regret, episode_metrics
from cosmo.policy.controller import DESCRIPTION, Controller, load_controller
from cosmo.scenario import Scenario, scenario_from
from cosmo.workload import Tasks, episode, from_tasks, window
from cosmo.workload.effort import check_episodes
from cosmo.workload.windows import tasks_a_window
from cosmo.world import Outcome


def trained_on(controller: Controller) -> tuple[Scenario, ...]:
    """The scenario of each run; InputError if the controller's description is damaged there."""
    found = []
    for place, run in enumerate(controller.description["runs"]):
        where = f"'{controller.folder / DESCRIPTION}': runs.{place}.scenario"
        told = run.get("scenario")
        if not isinstance(told, dict):
            raise InputError(f"{where}: must be a scenario")
        try:
            found.append(scenario_from(told))
        except InputError as error:
            raise InputError(f"{where}.{error}") from None
    return tuple(found)


def evaluate(
    controller: Controller | str | Path,
    episodes: int = 5,
    scenarios: Sequence[Scenario] | ScenarioLike | None = None,
    tasks: Tasks | None = None,
    share_done: ShareDone | None = None,
    *,
    rate: float | None = None,
    arrivals: str | None = None,
    settings: Settings = (),
) -> list[Simulation]:
    """Every run on `episodes` episodes of its own seed (the workloads of `simulate --seed`).

    `controller` may be the folder that `cosmo.train` wrote. `scenarios` are what each run is
    evaluated on, or one for all of them; what it was trained on by default. `rate`, `arrivals` and
    `settings` change fields of them. With `tasks` given, episodes are windows of these
    (`cosmo.workload.windows`). Runs play side by side; the results are in the order of
    `controller.seeds`.
    """
    if not isinstance(controller, Controller):
        controller = load_controller(controller)
    found = _where(controller, scenarios)
    where = tuple(as_scenario(each, settings, rate, arrivals) for each in found)
    for scenario in where:
        controller.check(scenario.links.most_sns, f"scenario = {scenario.name!r}")
    if any(scenario.without_load() != where[0].without_load() for scenario in where):
        raise InputError("runs can be evaluated together only where nothing but the load differs")
    for scenario in where:
        check_episodes(
            scenario,
            len(where) * episodes,
            None if tasks is None else tasks_a_window(scenario, tasks),
        )
    worlds, rows = [], []
    for run, (seed, scenario) in enumerate(zip(controller.seeds, where, strict=True)):
        for number in range(episodes):
            rows.append(run)
            worlds.append(
                episode(scenario, seed, number)
                if tasks is None
                else from_tasks(scenario, window(scenario, tasks, seed, number), seed, number)
            )
    total, before = sum(len(world.tasks) for world in worlds), 0

    def report(generated: int) -> None:
        if share_done is not None:
            share_done((before + generated) / max(total, 1))

    outcomes: list[Outcome] = []
    at_once = worlds_at_once(where[0])
    for first in range(0, len(worlds), at_once):
        some = slice(first, first + at_once)
        method = controller.agents.of(rows[some]).at_work()
        outcomes += play(
            where[0], method, worlds[some], progress=report, watchers=[Regret(where[0], method)]
        )
        before += sum(len(world.tasks) for world in worlds[some])
    results = []
    for run, (seed, scenario) in enumerate(zip(controller.seeds, where, strict=True)):
        own = outcomes[run * episodes : (run + 1) * episodes]
        carries = controller.agents.dimensions
        metrics = [episode_metrics(scenario, outcome, carries) for outcome in own]
        played = [(seed, number) for number in range(episodes)]
        results.append(Simulation(own, metrics, widened_at(scenario, played, tasks)))
    return results


def _where(
    controller: Controller, scenarios: Sequence[Scenario] | ScenarioLike | None
) -> Sequence[Scenario | str | Path]:
    """A scenario for each run."""
    if scenarios is None:
        return trained_on(controller)
    if isinstance(scenarios, Scenario | str | Path):
        return [as_scenario(scenarios)] * len(controller.seeds)
    return scenarios
