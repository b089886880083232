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
    tasks_per_ms = scenario.workload.rate * scenario.en.count / 1000.0
    return scenario.capacity_cycles_per_ms / tasks_per_ms
