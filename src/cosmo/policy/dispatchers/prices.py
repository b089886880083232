"""The formulas of prices on capacity, of numbers or of arrays alike, for compiled code as well."""

from typing import Any

import numpy as np


def most_cycles(most: Any, price: Any, outstanding_ms: Any) -> Any:
    """The largest demand that is taken, in cycles, with one price for all loads."""
    return most - price * outstanding_ms


def most_cycles_at(largest: Any, from_ms: Any, price: Any, outstanding_ms: Any) -> Any:
    """The same with the two parameters of a load; `price` is in largest demands a ms."""
    return largest * (1.0 - price * (outstanding_ms - from_ms))


def counted(count: Any, gap_ms: Any, horizon_ms: Any) -> Any:
    """Arrivals, discounted by their age, with one more, so long after the last."""
    return count * np.exp(gap_ms / -horizon_ms) + 1.0


def load(share: Any, count: Any, generated_ms: Any, horizon_ms: Any) -> Any:
    """Share of the capacity that so many arrivals ask for, by the time the last was generated."""
    # An EN that has just started has seen only a part of the horizon.
    seen_ms = horizon_ms * -np.expm1((generated_ms + 1.0) / -horizon_ms)
    return share * count / seen_ms
