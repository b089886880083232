"""Means and 95 % intervals over independent replications."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit


class Interval(NamedTuple):
    """A mean and the half-width of its two-sided 95 % Student-t interval (NaN if unknown)."""

    mean: float
    ci95: float


def interval(values: Sequence[float]) -> Interval:
    """Over the values that are numbers; the half-width needs at least two of them."""
    known = np.array([value for value in values if not math.isnan(value)])
    if len(known) == 0:
        return Interval(math.nan, math.nan)
    if len(known) == 1:
        return Interval(float(known[0]), math.nan)
    deviation = float(known.std(ddof=1)) / math.sqrt(len(known))
    return Interval(float(known.mean()), float(stdtrit(len(known) - 1, 0.975)) * deviation)


def summary(replications: Sequence[Mapping[str, float]]) -> dict[str, Interval]:
    """The interval of every metric over replications that all have the same metrics."""
    return {
        name: interval([replication[name] for replication in replications])
        for name in replications[0]
    }
