"""The utility of a task once its outcome is final (R16), and what updates cost."""

import numpy as np
from numpy.typing import NDArray

from cosmo.measure.outcomes import delays_ms
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED

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
    offloaded = (action >= 1) & (action <= scenario.links.most_sns)
    transfer = weights.transfer_per_byte * np.where(offloaded, input_bytes, 0.0)
    cost = weights.cost_weight * (weights.delay_per_ms * delay_ms + transfer)
    gained = np.zeros(UNDECIDED + 1)  # by outcome, before the cost
    gained[[TP, FP, TN, FN]] = (
        weights.true_positive * weights.value,
        -weights.false_positive * weights.value,
        weights.true_negative * weights.value,
        -weights.false_negative * weights.value,
    )
    was_run = (outcome == TP) | (outcome == FP)
    final: Floats = gained[outcome] - np.where(was_run, cost, 0.0)
    return final


def task_utility(scenario: Scenario, outcome: Outcome) -> Floats:
    """U_k of every task of a finished episode."""
    delay = delays_ms(outcome)
    return utility(scenario, outcome.action, outcome.outcome, delay, outcome.tasks.input_bytes)


def update_cost(scenario: Scenario, outcome: Outcome, dimensions: int) -> float:
    """Cost units of all status messages of the episode: c_s a dimension and message."""
    return outcome.updates * dimensions * scenario.utility.update_cost_per_dimension
