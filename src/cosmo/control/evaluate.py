"""Trained controllers put to the test: greedy episodes on workloads that training never saw."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cosmo.control.arguments import (
    ScenarioLike,
    as_scenario,
    check_tasks,
    several,
    whole_number,
)
from cosmo.control.play import play
from cosmo.control.simulate import ShareDone, Simulation, part_of, widened_at
from cosmo.documents import Settings
from cosmo.engine import worlds_at_once
from cosmo.errors import InputError
from cosmo.measure import Regret, episode_metrics
from cosmo.policy.controller import DESCRIPTION, Controller, load_controller
from cosmo.scenario import Scenario, scenario_from
from cosmo.workload import Tasks, episode
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
    *,
    scenario: Sequence[Scenario] | ScenarioLike | None = None,
    rates: float | Iterable[float] | None = None,
    arrivals: str | None = None,
    episodes: int = 5,
    settings: Settings = (),
    tasks: Tasks | None = None,
    share_done: ShareDone | None = None,
) -> list[Simulation]:
    """Play every run of a trained controller on workloads that its training never saw.

    Args:
        controller: A controller, or the folder that `cosmo.train` wrote.
        scenario: One scenario for all runs, or one for each; by default what each was trained on.
        rates: Tasks/s in each cell, one or several, instead of the scenarios' own.
        arrivals: The arrival process, likewise.
        episodes: Episodes of each run, which are those of `simulate` with the run's seed.
        settings: Further fields of the scenarios, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        tasks: Tasks of a trace; episodes are then windows of it (`cosmo.workload.windows`).
        share_done: Called with the share of the work that is done, 0 to 1.

    Returns:
        A simulation for each rate and run, the runs in the order of `controller.seeds`.

    Raises:
        InputError: In one line, for scenarios that the controller does not fit.

    """
    episodes = whole_number("episodes", episodes)
    check_tasks(tasks)
    if not isinstance(controller, Controller):
        controller = load_controller(controller)
    found = _where(controller, scenario)
    points = [
        [as_scenario(each, settings, rate, arrivals) for each in found]
        for rate in ([None] if rates is None else several(rates))
    ]
    results: list[Simulation] = []
    for done, where in enumerate(points):
        share = part_of(share_done, done, len(points))
        results += _played(controller, where, episodes, tasks, share)
    return results


def _played(
    controller: Controller,
    where: Sequence[Scenario],
    episodes: int,
    tasks: Tasks | None,
    share_done: ShareDone | None,
) -> list[Simulation]:
    """Every run at its scenario, side by side."""
    if any(place.without_load() != where[0].without_load() for place in where):
        raise InputError("runs can be evaluated together only where nothing but the load differs")
    for place in where:
        check_episodes(
            place,
            len(where) * episodes,
            None if tasks is None else tasks_a_window(place, tasks),
        )
    worlds, rows = [], []
    for run, (seed, place) in enumerate(zip(controller.seeds, where, strict=True)):
        for number in range(episodes):
            rows.append(run)
            worlds.append(episode(place, seed, number, tasks))
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
    for run, (seed, place) in enumerate(zip(controller.seeds, where, strict=True)):
        own = outcomes[run * episodes : (run + 1) * episodes]
        carries = controller.agents.dimensions
        metrics = [episode_metrics(place, outcome, carries) for outcome in own]
        played = [(seed, number) for number in range(episodes)]
        results.append(Simulation(own, metrics, widened_at(place, played, tasks)))
    return results


def _where(
    controller: Controller, scenarios: Sequence[Scenario] | ScenarioLike | None
) -> Sequence[Scenario | str | Path]:
    """A scenario for each run."""
    if scenarios is None:
        return trained_on(controller)
    if isinstance(scenarios, Scenario | str | Path):
        return [as_scenario(scenarios)] * len(controller.seeds)
    if len(scenarios) != (runs := len(controller.seeds)):
        raise InputError(f"scenario: is a list of {len(scenarios)}, the controller has {runs} runs")
    return scenarios
