"""Welch's test of the docs and its power, against the paper's numbers and simulation."""

import math

import numpy as np
import pytest
from doc_pages import docs_module

_docs = docs_module("welch")
Sample, welch_p, welch_power = _docs.Sample, _docs.welch_p, _docs.welch_power


@pytest.mark.parametrize(
    ("one", "other", "p"),
    [
        (Sample(0.620, 0.024, 3), Sample(0.570, 0.044, 3), 0.18),
        (Sample(0.642, 0.039, 3), Sample(0.566, 0.021, 3), 0.057),
    ],
)
def test_the_papers_gate_ablation_at_320(one, other, p):
    assert welch_p(one, other) == pytest.approx(p, abs=0.005)


def test_power_is_how_often_the_test_finds_it():
    one, other, difference = Sample(0.0, 1.0, 6), Sample(0.0, 2.0, 6), 2.5
    random = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        a, b = random.normal(difference, 1.0, 6), random.normal(0.0, 2.0, 6)
        samples = (Sample(x.mean(), x.std(ddof=1), 6) for x in (a, b))
        found.append(welch_p(*samples) < 0.05)
    assert welch_power(difference, one, other) == pytest.approx(np.mean(found), abs=0.03)
    assert welch_power(0.0, one, other) == pytest.approx(0.05, abs=1e-6)
    # Also where SciPy's distribution has no number any more.
    assert welch_power(100.0, one, other) == pytest.approx(1.0)


def test_what_does_not_vary_cannot_be_tested():
    same = Sample(1.0, 0.0, 3)
    assert math.isnan(welch_p(same, same))
    assert math.isnan(welch_power(0.1, same, same))
