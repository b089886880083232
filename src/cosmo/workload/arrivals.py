"""When tasks come: deterministic, Poisson, and a two-state modulated Poisson process (R2)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario
from cosmo.scenario.model import Workload

Floats = NDArray[np.float64]


def arrival_times(scenario: Scenario, random: np.random.Generator) -> Floats:
    """The generation times of one cell, in ms, all before the window's end."""
    window, rate = scenario.episode.window_ms, scenario.workload.rate
    match scenario.workload.arrivals:
        case "deterministic":
            return deterministic(rate, window)
        case "poisson":
            return poisson(rate, 0.0, window, random)
        case "bursty":
            rates, dwell = state_rates(scenario.workload), scenario.workload.burst.dwell_ms
            return modulated(rates, dwell, window, random)
        case "steps":
            bounds = np.array([0.0, *scenario.workload.steps.at, 1.0]) * window
            pieces = zip(step_rates(scenario.workload), bounds[:-1], bounds[1:], strict=True)
            return np.concatenate(
                [poisson(rate, start, end, random) for rate, start, end in pieces if rate > 0]
            )
        case "trace":
            raise ValueError("the tasks of a trace are read, not generated")


def deterministic(rate: float, window_ms: float) -> Floats:
    """Constant gaps of 1000/rate, the first task one gap after 0."""
    count = int(window_ms * rate / 1000.0) + 2
    times = 1000.0 * np.arange(1, count) / rate  # in this order the window's end is met exactly
    return np.asarray(times[times < window_ms], np.float64)


def poisson(rate: float, start_ms: float, end_ms: float, random: np.random.Generator) -> Floats:
    """Exponential gaps from `start_ms` on."""
    expected = rate * (end_ms - start_ms) / 1000.0
    times = np.empty(0)
    last = start_ms
    while last < end_ms:
        gaps = random.exponential(1000.0 / rate, int(expected + 4.0 * expected**0.5) + 16)
        more = last + np.cumsum(gaps)
        times, last = np.concatenate([times, more]), float(more[-1])
    return times[times < end_ms]


def modulated(
    rates: tuple[float, float],
    dwell_ms: tuple[float, float],
    window_ms: float,
    random: np.random.Generator,
) -> Floats:
    """Poisson arrivals whose rate switches between two values, after exponential dwell times.

    The first state is drawn from the long-run distribution, so that there is no transient.
    """
    state = int(random.random() * sum(dwell_ms) >= dwell_ms[0])
    pieces, start = [np.empty(0)], 0.0
    while start < window_ms:
        end = min(start + random.exponential(dwell_ms[state]), window_ms)
        if rates[state] > 0:
            pieces.append(poisson(rates[state], start, end, random))
        state, start = 1 - state, end
    return np.concatenate(pieces)


def state_rates(workload: Workload) -> tuple[float, float]:
    """Tasks a second in the two states of bursty arrivals."""
    dwell, weights = workload.burst.dwell_ms, workload.burst.weights
    mean = (dwell[0] * weights[0] + dwell[1] * weights[1]) / sum(dwell)
    return workload.rate * weights[0] / mean, workload.rate * weights[1] / mean


def step_rates(workload: Workload) -> tuple[float, ...]:
    """Tasks a second in each step; their mean over the window is the workload's rate."""
    weights, at = workload.steps.weights, workload.steps.at
    lengths = np.diff([0.0, *at, 1.0])
    mean = float(np.dot(weights, lengths))
    return tuple(workload.rate * weight / mean for weight in weights)


def squared_variation(workload: Workload) -> float:
    """cv² of the gaps between tasks: 0 deterministic, 1 Poisson (also within each step), that of
    the modulated process if bursty.
    """
    match workload.arrivals:
        case "deterministic":
            return 0.0
        case "poisson" | "steps" | "trace":  # of a trace nodes are told no more than its rate
            return 1.0
        case "bursty":
            a, b = (rate / 1000.0 for rate in state_rates(workload))
            leave_a, leave_b = (1.0 / dwell for dwell in workload.burst.dwell_ms)
            return 1.0 + 2.0 * leave_a * leave_b * (a - b) ** 2 / (
                (leave_a + leave_b) ** 2 * (a * b + a * leave_b + b * leave_a)
            )
