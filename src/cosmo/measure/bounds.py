"""How many tasks could meet their deadline at best, from capacity alone."""

import math

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
    (x² - low²) / (2 (high - low)) cycles a task, with x = low + F (high - low).
    """
    low, high = scenario.workload.cycles
    budget = _cycles_per_task(scenario)
    if high == low:
        return min(1.0, budget / low)
    largest = math.sqrt(low * low + 2.0 * (high - low) * budget)
    return min(1.0, (largest - low) / (high - low))


def _cycles_per_task(scenario: Scenario) -> float:
    """What all nodes can serve, less the background load, for each task of the ENs."""
    rates, dwell = scenario.background.rates, scenario.background.dwell_ms
    background = (rates[0] * dwell[0] + rates[1] * dwell[1]) / sum(dwell) / 1000.0
    mean_cycles = 0.5 * sum(scenario.workload.cycles)
    free = scenario.capacity_cycles_per_ms - background * scenario.sn.count * mean_cycles
    tasks_per_ms = scenario.workload.rate * scenario.en.count / 1000.0
    return max(free, 0.0) / tasks_per_ms
