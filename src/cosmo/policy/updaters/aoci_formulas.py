"""The formulas of `aoci-online`, of numbers or of arrays alike, for compiled code as well."""

from typing import Any

import numpy as np


def mean(total: Any, count: Any) -> Any:
    """Of so many; 0 of none."""
    return total / np.maximum(count, 1.0)


def next_beta(
    beta: Any, cycles: Any, delay: Any, length: Any, updates: Any, cost: Any, largest: Any
) -> Any:
    """β after one more cycle, where a delivery takes `delay` on average."""
    step = 1.0 / ((cycles + 2.0) * delay)
    error = 0.5 * (length * length) + cost * updates - beta * length
    return np.minimum(np.maximum(beta + step * error, 0.0), largest)


def threshold(beta: Any, delay: Any, share: Any) -> Any:
    """H, where this share of deliveries is new; until one is, it counts as 1."""
    known = share + (share <= 0.0)
    return np.maximum(0.0, beta - delay * (1.0 - known) / known)
