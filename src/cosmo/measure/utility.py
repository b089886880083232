"""The utility of a task once its outcome is final (R16), and what updates cost."""

import numpy as np
from numpy.typing import NDArray

from cosmo.measure.outcomes import delays_ms
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP

Floats = NDArray[np.float64]


def task_utility(scenario: Scenario, outcome: Outcome) -> Floats:
    """U_k of every task; 0 where there was no decision."""
    weights = scenario.utility
    offloaded = (outcome.action >= 1) & (outcome.action <= scenario.sn.count)
    transfer = weights.transfer_per_byte * np.where(offloaded, outcome.tasks.input_bytes, 0.0)
    cost = weights.cost_weight * (weights.delay_per_ms * delays_ms(outcome) + transfer)
    result = outcome.outcome
    return np.select(
        [result == TP, result == FP, result == TN, result == FN],
        [
            weights.true_positive * weights.value - cost,
            -weights.false_positive * weights.value - cost,
            np.full(len(result), weights.true_negative * weights.value),
            np.full(len(result), -weights.false_negative * weights.value),
        ],
        0.0,
    )


def update_cost(scenario: Scenario, outcome: Outcome, dimensions: int) -> float:
    """Cost units of all status messages of the episode: c_s a dimension and message."""
    return outcome.updates * dimensions * scenario.utility.update_cost_per_dimension
