"""When tasks come: deterministic, Poisson, and a two-state modulated Poisson process (R2)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario

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
            burst = scenario.workload.burst
            dwell, weights = burst.dwell_ms, burst.weights
            mean = (dwell[0] * weights[0] + dwell[1] * weights[1]) / sum(dwell)
            rates = rate * weights[0] / mean, rate * weights[1] / mean
            return modulated(rates, dwell, window, random)


def deterministic(rate: float, window_ms: float) -> Floats:
    """Constant gaps of 1000/rate, the first task one gap after 0."""
    gap = 1000.0 / rate
    times = gap * np.arange(1, int(window_ms / gap) + 2)
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
