"""The training-only oracle (R15, R23): what the best decision would be, from the true state."""

import numpy as np
from numpy.typing import NDArray

from cosmo.world import Truth


def best_action(truth: Truth) -> NDArray[np.int64]:
    """The feasible route with the smallest delay (the first of equals), or rejection."""
    delay = np.where(truth.feasible, truth.delay_ms, np.inf)
    routes = truth.feasible.shape[1]
    return np.asarray(np.where(truth.feasible.any(axis=1), delay.argmin(axis=1), routes))
