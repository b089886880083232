"""Means and 95 % intervals over independent replications."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import nctdtr, ndtr, stdtr, stdtrit

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


def told(mean: float | None, ci95: float | None, count: int, digits: int) -> str:
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


class Sample(NamedTuple):
    """What a table says of one method: mean and standard deviation over so many runs."""

    mean: float
    std: float
    runs: int


class Comparison(NamedTuple):
    """Welch's test of two samples: t, its degrees of freedom, and the two-sided p."""

    t: float
    freedom: float
    p: float


def welch(one: Sample, other: Sample) -> Comparison:
    """Whether two means differ, without assuming equal variances.

    NaN where neither sample varies; each needs at least two runs.
    """
    error, freedom = _welch_error(one, other)
    if not error > 0.0:
        return Comparison(math.nan, math.nan, math.nan)
    t = (one.mean - other.mean) / error
    return Comparison(t, freedom, 2.0 * float(stdtr(freedom, -abs(t))))


def welch_power(difference: float, one: Sample, other: Sample) -> float:
    """The chance that Welch's test at 5 % finds a difference of means of this size.

    Samples of the same runs and standard deviations as `one` and `other`; their means do not
    matter. By the non-central t distribution; NaN where neither sample varies.
    """
    error, freedom = _welch_error(one, other)
    if not error > 0.0:
        return math.nan
    limit, shift = float(stdtrit(freedom, 0.975)), abs(difference) / error
    missed = float(nctdtr(freedom, shift, limit) - nctdtr(freedom, shift, -limit))
    # Far out SciPy has no number; there the normal distribution is as good.
    return 1.0 - (float(ndtr(limit - shift)) if math.isnan(missed) else missed)


def _welch_error(one: Sample, other: Sample) -> tuple[float, float]:
    """Standard error of the difference, and Welch–Satterthwaite's degrees of freedom."""
    shares = [each.std**2 / each.runs for each in (one, other)]
    whole = sum(shares)
    if not whole > 0.0:
        return 0.0, math.nan
    parts = (share**2 / (each.runs - 1) for share, each in zip(shares, (one, other), strict=True))
    return math.sqrt(whole), whole**2 / sum(parts)
