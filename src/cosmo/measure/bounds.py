"""How many tasks could meet their deadline at best, from capacity alone."""

import math
from statistics import NormalDist

import numpy as np

from cosmo.scenario import Scenario


def mean_bound(scenario: Scenario) -> float:
    """The paper's mu*/rate: capacity spread over tasks of mean demand.

    Not a true upper bound: a policy that prefers small tasks serves more of them.
    """
    low, high = scenario.workload.cycles
    return min(1.0, _cycles_per_task(scenario) / (0.5 * (low + high)))


def fluid_bound(scenario: Scenario) -> float:
    """Fill the capacity with the smallest demands first: the share of tasks that fits.

    For demands uniform on [low, high] the share F of the smallest ones needs
    (x² - low²) / (2 (high - low)) cycles a task, with x = low + F (high - low). With a spread (R35)
    it knows the true demands.
    """
    low, high = scenario.workload.cycles
    budget = _cycles_per_task(scenario)
    if scenario.workload.demand.spread > 0.0:
        return _spread_out(low, high, budget, scenario.workload.demand.spread)
    if high == low:
        return min(1.0, budget / low)
    largest = math.sqrt(low * low + 2.0 * (high - low) * budget)
    return min(1.0, (largest - low) / (high - low))


def _cycles_per_task(scenario: Scenario) -> float:
    """What all nodes can serve, less the background load, for each task of the ENs."""
    other, sns = scenario.background, scenario.sn.count
    background = 0.0
    for rates, dwell in zip(other.each("rates", sns), other.each("dwell_ms", sns), strict=True):
        background += (rates[0] * dwell[0] + rates[1] * dwell[1]) / sum(dwell) / 1000.0
    mean_cycles = 0.5 * sum(other.cycles or scenario.workload.cycles)
    free = scenario.capacity_cycles_per_ms - background * mean_cycles
    tasks_per_ms = scenario.workload.rate * scenario.en.count / 1000.0
    return max(free, 0.0) / tasks_per_ms


def _spread_out(low: float, high: float, budget: float, spread: float) -> float:
    """The share of the smallest demands that fits into the budget, if uniform ones are multiplied
    by a lognormal factor; of the factor a thousand equally likely values are looked at.
    """
    normal = np.array([NormalDist().inv_cdf((k + 0.5) / 1000.0) for k in range(1000)])
    factor = np.exp(spread * normal - 0.5 * spread**2)
    width = max(high - low, 1e-9 * high)
    least, most = 0.0, float(factor.max() * (low + width))
    for _ in range(100):  # what is the largest demand that is served?
        largest = 0.5 * (least + most)
        upto = np.clip(largest / factor, low, low + width)
        needed = float(np.mean(factor * (upto**2 - low**2) / (2.0 * width)))
        least, most = (largest, most) if needed <= budget else (least, largest)
    return float(np.mean((np.clip(least / factor, low, low + width) - low) / width))
