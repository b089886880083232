"""Workloads of all loads: what one policy for all of them is trained on."""

from typing import Any

import numpy as np

from cosmo.learn.next.config import LoadsConfig
from cosmo.scenario import Scenario, changed
from cosmo.workload import Episode, episode


def some_load(
    scenario: Scenario, config: LoadsConfig, random: np.random.Generator, seed: int, number: int
) -> Episode:
    """Episode `number` of a run, at a load drawn at random."""
    interest = scenario.workload.rates_of_interest
    low, high = config.below * min(interest), config.above * max(interest)
    kind = config.arrivals[random.integers(len(config.arrivals))]
    first, second = random.uniform(low, high, 2).tolist()
    fields: dict[str, Any] = {"workload.arrivals": kind, "workload.rate": first}
    if kind == "steps":  # from one rate to another in the middle
        fields["workload.rate"] = 0.5 * (first + second)
        fields |= {"workload.steps.weights": [first, second], "workload.steps.at": [0.5]}
    if config.others:
        others = config.others[random.integers(len(config.others))]
        fields |= {"background.rates": others.rates, "background.dwell_ms": others.dwell_ms}
    return episode(changed(scenario, fields), seed, number)
