"""Workloads of all loads: what one policy for all of them is trained on."""

from dataclasses import replace

import numpy as np

from cosmo.learn.next.config import LoadsConfig
from cosmo.scenario import Scenario
from cosmo.workload import Episode, Tasks, episode


def some_load(
    scenario: Scenario, config: LoadsConfig, random: np.random.Generator, seed: int, number: int
) -> Episode:
    """Episode `number` of a run, at a load drawn at random."""
    interest = scenario.workload.rates_of_interest
    low, high = config.below * min(interest), config.above * max(interest)
    kind = config.arrivals[random.integers(len(config.arrivals))]
    first, second = random.uniform(low, high, 2)
    if kind != "steps":
        return episode(_at(scenario, kind, first), seed, number)
    process = "poisson" if random.random() < 0.5 else "deterministic"
    half = 0.5 * scenario.episode.window_ms
    return stepped(scenario, process, (first, second), (half,), seed, number)


def stepped(
    scenario: Scenario,
    process: str,
    rates: tuple[float, ...],
    steps_ms: tuple[float, ...],
    seed: int,
    number: int,
) -> Episode:
    """An episode whose rate changes at the given times."""
    bounds = (0.0, *steps_ms, np.inf)
    pieces: list[list[np.ndarray]] = []
    whole = None
    for rate, start, end in zip(rates, bounds[:-1], bounds[1:], strict=True):
        whole = episode(_at(scenario, process, rate), seed, number)
        tasks = whole.tasks
        inside = (tasks.time_ms >= start) & (tasks.time_ms < end)
        columns = tasks.time_ms, tasks.en, tasks.ue, tasks.input_bytes, tasks.cycles
        pieces.append([column[inside] for column in (*columns, tasks.deadline_ms)])
    assert whole is not None
    joined = Tasks(*(np.concatenate(column) for column in zip(*pieces, strict=True)))
    rate = 1000.0 * len(joined) / scenario.episode.window_ms
    return replace(whole, tasks=joined, rate=rate)


def _at(scenario: Scenario, arrivals: str, rate: float) -> Scenario:
    workload = scenario.workload.model_copy(update={"arrivals": arrivals, "rate": float(rate)})
    return scenario.model_copy(update={"workload": workload})
