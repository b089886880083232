"""The utility of a task once its outcome is final (R16), and what updates cost."""

import numpy as np
from numpy.typing import NDArray

from cosmo.measure.outcomes import delays_ms
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP

Floats = NDArray[np.float64]


def utility(
    scenario: Scenario,
    action: NDArray[np.integer],
    outcome: NDArray[np.integer],
    delay_ms: Floats,
    input_bytes: Floats,
) -> Floats:
    """U_k from what was done, what came of it, after how long; 0 where there was no decision."""
    weights = scenario.utility
    offloaded = (action >= 1) & (action <= scenario.sn.count)
    transfer = weights.transfer_per_byte * np.where(offloaded, input_bytes, 0.0)
    cost = weights.cost_weight * (weights.delay_per_ms * delay_ms + transfer)
    return np.select(
        [outcome == TP, outcome == FP, outcome == TN, outcome == FN],
        [
            weights.true_positive * weights.value - cost,
            -weights.false_positive * weights.value - cost,
            np.full(len(outcome), weights.true_negative * weights.value),
            np.full(len(outcome), -weights.false_negative * weights.value),
        ],
        0.0,
    )


def task_utility(scenario: Scenario, outcome: Outcome) -> Floats:
    """U_k of every task of a finished episode."""
    delay = delays_ms(outcome)
    return utility(scenario, outcome.action, outcome.outcome, delay, outcome.tasks.input_bytes)


def update_cost(scenario: Scenario, outcome: Outcome, dimensions: int) -> float:
    """Cost units of all status messages of the episode: c_s a dimension and message."""
    return outcome.updates * dimensions * scenario.utility.update_cost_per_dimension
