"""The utility of a task whose outcome is final (R16), and what updates cost."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.measure.outcomes import delays_ms
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP, UNJUDGED

Floats = NDArray[np.float64]


class Weights(NamedTuple):
    """What a scenario says about utilities, ready to be used for many tasks."""

    gained: Floats  # by outcome, before the cost
    cost_weight: float
    delay_per_ms: float
    transfer_per_byte: float  # of an offloaded input
    most_sns: int


def weights_of(scenario: Scenario) -> Weights:
    """R16's numbers of a scenario."""
    given = scenario.utility
    gained = np.zeros(UNJUDGED + 1)
    gained[UNJUDGED] = np.nan
    gained[[TP, FP, TN, FN]] = (
        given.true_positive * given.value,
        -given.false_positive * given.value,
        given.true_negative * given.value,
        -given.false_negative * given.value,
    )
    return Weights(
        gained,
        given.cost_weight,
        given.delay_per_ms,
        given.transfer_per_byte,
        scenario.links.most_sns,
    )


def utility(
    weights: Weights,
    action: NDArray[np.integer],
    outcome: NDArray[np.integer],
    delay_ms: Floats,
    input_bytes: Floats,
) -> Floats:
    """U_k from what was done, what came of it, after how long; 0 where there was no decision."""
    offloaded = (action >= 1) & (action <= weights.most_sns)
    transfer = weights.transfer_per_byte * np.where(offloaded, input_bytes, 0.0)
    cost = weights.cost_weight * (weights.delay_per_ms * delay_ms + transfer)
    was_run = (outcome == TP) | (outcome == FP)
    final: Floats = weights.gained[outcome] - np.where(was_run, cost, 0.0)
    return final


def task_utility(scenario: Scenario, outcome: Outcome) -> Floats:
    """U_k of every task of a finished episode."""
    delay = delays_ms(outcome)
    size = outcome.tasks.input_bytes
    return utility(weights_of(scenario), outcome.action, outcome.outcome, delay, size)


def update_cost(scenario: Scenario, outcome: Outcome, dimensions: int) -> float:
    """Cost units of all status messages of the episode: c_s a dimension and message."""
    return outcome.updates * dimensions * scenario.utility.update_cost_per_dimension
