"""Which episodes of a study the viewer shows: one workload, played by every method."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cosmo.control import method
from cosmo.errors import InputError
from cosmo.node import Method
from cosmo.policy.trained import trained_method
from cosmo.report.page import write_episodes
from cosmo.report.recording import record
from cosmo.scenario import Scenario
from cosmo.study import method_files
from cosmo.study.inputs import found_method, found_trace
from cosmo.study.store import Study
from cosmo.study.units import at_load
from cosmo.workload import Episode, episode

# Decisions of all recordings together: a page has to be made in seconds, and sent by mail.
_MOST_DECISIONS = 20_000
_FEWEST_MS = 1000.0  # but so much of the measured part of an episode is always played


def recordings(
    study: Study,
    trust: bool = False,
    own: Mapping[str, Method] | None = None,
    left_out: list[str] | None = None,
) -> list[dict[str, Any]]:
    """One episode of every method at the focus's highest load, the focus first.

    Poisson arrivals are preferred. Methods that run code from a file are played only if the study
    is trusted; a method without a checkpoint at this load is left out. `own` has methods that are
    objects and not in a file. What is left out is added to `left_out`, a line each with the reason.
    """
    found = []
    missing: list[str] = [] if left_out is None else left_out
    scenario, process, rate, names = _shown(study)
    here, seed = at_load(scenario, process, rate), study.plan.seeds[0]
    playable: dict[str, Method] = {}
    for name in names:
        try:
            given = (own or {}).get(name)
            playable[name] = given or _playable(study, name, scenario, process, rate, trust)
        except InputError as error:
            missing.append(f"{name}: {error}")
    try:
        here = found_trace(study.folder, here)
        whole = episode(here, seed, 0)
    except InputError as error:
        missing.append(f"all methods: {error}")
        return []
    decisions = _MOST_DECISIONS // max(1, len(playable))
    workload = _beginning(whole, decisions, here.episode.warmup_ms + _FEWEST_MS)
    several = study.metrics["scenario"].n_unique() > 1
    where = f"{scenario.name}, " if several else ""
    for name, chosen in playable.items():
        try:
            recording = record(here, chosen, workload, seed)
        except InputError as error:
            missing.append(f"{name}: {error}")
            continue
        title = f"{name}, {where}{process}, {rate:g} tasks/s, seed {seed}, episode 0"
        found.append({"title": title, "method": name, **recording})
        if workload is not whole:
            found[-1]["until_ms"] = workload.window_ms
    return found


def write_first_episode(scenario: Scenario, name: str, seed: int, path: Path) -> None:
    """Write a page with the first episode of a run, or the beginning of one that is long."""
    whole = episode(scenario, seed, 0)
    least_ms = scenario.episode.warmup_ms + _FEWEST_MS
    workload = _beginning(whole, _MOST_DECISIONS, least_ms)
    found: dict[str, Any] = {
        "title": f"{name}, {scenario.name}, seed {seed}, episode 0",
        "method": name,
    }
    found |= record(scenario, method(name), workload, seed)
    found |= {} if workload is whole else {"until_ms": workload.window_ms}
    write_episodes([found], f"CoSMO: {name} on {scenario.name}", path)


def _beginning(workload: Episode, tasks: int, least_ms: float) -> Episode:
    """The first so many tasks of an episode, but all of its first `least_ms`."""
    times = workload.tasks.time_ms
    if len(times) <= tasks or least_ms >= workload.window_ms:
        return workload
    until_ms = min(workload.window_ms, max(float(times[tasks]), least_ms))
    kept = times < until_ms
    return replace(workload, tasks=workload.tasks.taken(kept), window_ms=until_ms)


def _shown(study: Study) -> tuple[Scenario, str, float, list[str]]:
    """The point (scenario, arrivals, rate), and all methods there, the focus first."""
    points = list(study.plan.points())
    own = [point for point in points if point[3] == study.focus] or points
    home = own[0][0].name
    scenario, process, rate, _ = max(
        (point for point in own if point[0].name == home),
        key=lambda point: (point[1] == "poisson", point[2]),
    )
    names = [
        name
        for where, arrivals, load, name in points
        if (where.name, arrivals, load) == (scenario.name, process, rate)
    ]
    return scenario, process, rate, sorted(names, key=lambda name: name != study.focus)


def _playable(
    study: Study, name: str, scenario: Scenario, process: str, rate: float, trust: bool
) -> Method:
    """InputError, in one line, says why it cannot be played."""
    trainings = study.plan.trainings()
    if name in trainings:
        folder = study.checkpoint(name, rate, process, scenario.name)
        return trained_method(trainings[name].method, folder)
    if method_files.runs_code(name) and not trust:
        raise InputError("runs code from a file; add --trust if you trust it")
    return method(found_method(study.folder, name))
