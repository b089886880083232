"""R16 on paper: what is gained, less what time and offloaded bytes cost."""

import numpy as np
import pytest

from cosmo import load
from cosmo.measure.utility import Weights, utility, weights_of
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED


def test_what_a_task_is_worth():
    gained = np.zeros(UNDECIDED + 1)
    gained[[TP, FP, TN, FN]] = 100.0, -50.0, 20.0, -30.0
    weights = Weights(gained, cost_weight=2.0, delay_per_ms=0.5, transfer_per_byte=3.0, most_sns=2)
    rows = [
        # Action, outcome, delay in ms, input in bytes, worth.
        (0, TP, 10.0, 7.0, 100.0 - 2.0 * 5.0),  # nothing is transferred
        (1, TP, 10.0, 7.0, 100.0 - 2.0 * (5.0 + 21.0)),
        (2, FP, 4.0, 1.0, -50.0 - 2.0 * (2.0 + 3.0)),
        (0, FP, 4.0, 1.0, -50.0 - 2.0 * 2.0),
        (3, TN, 4.0, 1.0, 20.0),  # what is not run costs nothing
        (3, FN, 4.0, 1.0, -30.0),
        (-1, UNDECIDED, 4.0, 1.0, 0.0),
    ]
    action, outcome, delay_ms, size, worth = map(np.array, zip(*rows, strict=True))
    assert utility(weights, action, outcome, delay_ms, size).tolist() == worth.tolist()


def test_weights_are_those_of_the_scenario():
    fields = {
        "true_positive": 2.0, "false_positive": 3.0, "true_negative": 5.0, "false_negative": 7.0,
        "value": 11.0, "cost_weight": 0.25, "delay_per_ms": 0.5, "transfer_per_byte": 0.125,
    }  # fmt: skip
    settings = [f"utility.{name}={value}" for name, value in fields.items()]
    weights = weights_of(load("campus", settings))
    assert weights.gained[[TP, FP, TN, FN]].tolist() == [22.0, -33.0, 55.0, -77.0]
    assert weights.gained[UNDECIDED] == 0.0
    assert (weights.cost_weight, weights.delay_per_ms) == (0.25, 0.5)
    assert (weights.transfer_per_byte, weights.most_sns) == (0.125, 2)
    assert np.nansum(weights.gained) == pytest.approx(22.0 - 33.0 + 55.0 - 77.0)
