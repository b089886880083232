"""When tasks come: deterministic, Poisson, and a two-state modulated Poisson process (R2); with
weights and waves (R36).
"""

import math

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario
from cosmo.scenario.loads import Workload

Floats = NDArray[np.float64]


def arrival_times(
    scenario: Scenario,
    en: int,
    rate: float,
    random: np.random.Generator,
    thinning: np.random.Generator,
) -> Floats:
    """The generation times of one EN's cell, in ms, all before the window's end; `rate` is the
    EN's of `en_rates`.

    With a wave (R36), candidates are drawn from `random` at the highest rate, and each is kept with
    a probability, from `thinning`.
    """
    wave = scenario.workload.wave
    if wave is None:
        return _of_rate(scenario, rate, random)
    most = 1.0 + wave.amplitude
    times = _of_rate(scenario, rate * most, random)
    phase = times / wave.period_ms + en / scenario.en.count
    kept = (1.0 + wave.amplitude * np.sin(2.0 * np.pi * phase)) / most
    return times[thinning.random(len(times)) < kept]


def en_rates(scenario: Scenario) -> tuple[float, ...]:
    """[EN] mean tasks a second, before any wave (R36)."""
    rate, weights = scenario.workload.rate, scenario.workload.weights
    if not weights:
        return (rate,) * scenario.en.count
    mean = sum(weights) / len(weights)
    return tuple(rate * weight / mean for weight in weights)


def total_rate(scenario: Scenario) -> float:
    """Mean tasks a second that are generated in all cells together, over the window."""
    wave, ens = scenario.workload.wave, scenario.en.count
    if wave is None:
        return scenario.workload.rate * ens
    turns = scenario.episode.window_ms / wave.period_ms
    total = 0.0
    for en, rate in enumerate(en_rates(scenario)):
        first, last = 2.0 * math.pi * en / ens, 2.0 * math.pi * (turns + en / ens)
        mean_sine = (math.cos(first) - math.cos(last)) / (last - first)
        total += rate * (1.0 + wave.amplitude * mean_sine)
    return total


def _of_rate(scenario: Scenario, rate: float, random: np.random.Generator) -> Floats:
    window, workload = scenario.episode.window_ms, scenario.workload
    if rate == 0.0:
        return np.empty(0)
    match workload.arrivals:
        case "deterministic":
            return deterministic(rate, window)
        case "poisson":
            return poisson(rate, 0.0, window, random)
        case "bursty":
            return modulated(state_rates(workload, rate), workload.burst.dwell_ms, window, random)
        case "steps":
            bounds = np.array([0.0, *workload.steps.at, 1.0]) * window
            pieces = zip(step_rates(workload, rate), bounds[:-1], bounds[1:], strict=True)
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
    phases: np.random.Generator | None = None,
) -> Floats:
    """Poisson arrivals whose rate switches between two values, after exponential dwell times.

    The first state is drawn from the long-run distribution, so that there is no transient. States
    and dwell times are drawn from `phases` if it is given, arrivals from `random`.
    """
    phases = random if phases is None else phases
    state = int(phases.random() * sum(dwell_ms) >= dwell_ms[0])
    pieces, start = [np.empty(0)], 0.0
    while start < window_ms:
        end = min(start + phases.exponential(dwell_ms[state]), window_ms)
        if rates[state] > 0:
            pieces.append(poisson(rates[state], start, end, random))
        state, start = 1 - state, end
    return np.concatenate(pieces)


def state_rates(workload: Workload, rate: float) -> tuple[float, float]:
    """Tasks a second in the two states of bursty arrivals of this mean rate."""
    dwell, weights = workload.burst.dwell_ms, workload.burst.weights
    mean = (dwell[0] * weights[0] + dwell[1] * weights[1]) / sum(dwell)
    return rate * weights[0] / mean, rate * weights[1] / mean


def step_rates(workload: Workload, rate: float) -> tuple[float, ...]:
    """Tasks a second in each step; their mean over the window is `rate`."""
    weights, at = workload.steps.weights, workload.steps.at
    lengths = np.diff([0.0, *at, 1.0])
    mean = float(np.dot(weights, lengths))
    return tuple(rate * weight / mean for weight in weights)


def squared_variation(workload: Workload) -> float:
    """cv² of the gaps between tasks: 0 deterministic, 1 Poisson (also within each step), that of
    the modulated process if bursty.
    """
    match workload.arrivals:
        case "deterministic":
            return 0.0
        case "poisson" | "steps" | "trace":  # of a trace nodes know its rate alone
            return 1.0
        case "bursty":
            a, b = (rate / 1000.0 for rate in state_rates(workload, workload.rate))
            leave_a, leave_b = (1.0 / dwell for dwell in workload.burst.dwell_ms)
            return 1.0 + 2.0 * leave_a * leave_b * (a - b) ** 2 / (
                (leave_a + leave_b) ** 2 * (a * b + a * leave_b + b * leave_a)
            )
