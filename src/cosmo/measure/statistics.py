"""Means and 95 % intervals over independent replications."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

_T_OF_TWO = float(stdtrit(1, 0.975))  # 12.7: of two values the half-width is so many half-ranges


class Interval(NamedTuple):
    """A mean and the half-width of its two-sided 95 % Student-t interval (NaN if unknown)."""

    mean: float
    ci95: float


def interval(values: Sequence[float], widened: float = 1.0) -> Interval:
    """Over the values that are numbers; the half-width needs at least two of them.

    `widened` multiplies it, where the values are less than independent (`cosmo.workload.widening`).
    """
    known = np.array([value for value in values if not math.isnan(value)])
    if len(known) == 0:
        return Interval(math.nan, math.nan)
    if len(known) == 1:
        return Interval(float(known[0]), math.nan)
    deviation = float(known.std(ddof=1)) / math.sqrt(len(known))
    return Interval(
        float(known.mean()), widened * float(stdtrit(len(known) - 1, 0.975)) * deviation
    )


def summary(
    replications: Sequence[Mapping[str, float]], widened: float = 1.0
) -> dict[str, Interval]:
    """The interval of every metric over replications that all have the same metrics."""
    return {
        name: interval([replication[name] for replication in replications], widened)
        for name in replications[0]
    }


def interval_text(mean: float | None, ci95: float | None, count: int, digits: int) -> str:
    """A mean for people, with what `count` replications say about it.

    `0.712 ± 0.021` with the 95 % half-width of three and more; `0.712 … 0.745`, their range, of
    two, of which Student's t makes an interval that says nothing; the number alone of one; a dash
    where there is none (None or NaN).
    """
    if mean is None or math.isnan(mean):
        return "–"
    if count < 2 or ci95 is None or math.isnan(ci95):
        return f"{mean:.{digits}f}"
    if count == 2:
        half = ci95 / _T_OF_TWO
        return f"{mean - half:.{digits}f} … {mean + half:.{digits}f}"
    return f"{mean:.{digits}f} ± {ci95:.{digits}f}"
