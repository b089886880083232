"""Welch's test of two methods, from what a table says of them, and its power."""

import math
from typing import NamedTuple

from scipy.special import nctdtr, ndtr, stdtrit
from scipy.stats import ttest_ind_from_stats


class Sample(NamedTuple):
    """What a table says of one method: mean and standard deviation over so many runs."""

    mean: float
    std: float
    runs: int


def welch_p(one: Sample, other: Sample) -> float:
    """The two-sided p of equal means, without assuming equal variances.

    NaN where neither sample varies; each needs at least two runs.
    """
    if not one.std + other.std > 0.0:
        return math.nan
    return float(ttest_ind_from_stats(*one, *other, equal_var=False).pvalue)


def welch_power(difference: float, one: Sample, other: Sample) -> float:
    """The chance that Welch's test at 5 % finds a difference of means of this size.

    Samples of the same runs and standard deviations as `one` and `other`; their means do not
    matter. By the non-central t distribution; NaN where neither sample varies.
    """
    shares = [each.std**2 / each.runs for each in (one, other)]
    if not (whole := sum(shares)) > 0.0:
        return math.nan
    parts = (share**2 / (each.runs - 1) for share, each in zip(shares, (one, other), strict=True))
    freedom = whole**2 / sum(parts)  # Welch and Satterthwaite's
    limit, shift = float(stdtrit(freedom, 0.975)), abs(difference) / math.sqrt(whole)
    missed = float(nctdtr(freedom, shift, limit) - nctdtr(freedom, shift, -limit))
    # Far out SciPy has no number; there the normal distribution is as good.
    return 1.0 - (float(ndtr(limit - shift)) if math.isnan(missed) else missed)
