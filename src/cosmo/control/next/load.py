"""How much an EN is asked to do: the rate and the variation of its arrivals, smoothed."""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario
from cosmo.world import DispatchObservation

Floats = NDArray[np.float64]

HORIZONS_MS = np.array([150.0, 600.0, 2500.0])
SIZE = len(HORIZONS_MS) + 2
_VARIATION_MS = 1000.0
_MOST = 4.0


class Load:
    """Of every EN in a batch of worlds: rates over three horizons as shares of what the nodes can
    serve, the squared variation of the gaps, and how young the episode is.
    """

    def __init__(self, scenario: Scenario, worlds: int) -> None:
        cells = worlds, scenario.en.count
        self._capacity = (
            scenario.capacity_cycles_per_ms
            / scenario.en.count
            / (0.5 * sum(scenario.workload.cycles))
        )
        self._rate = np.zeros((*cells, len(HORIZONS_MS)))
        self._last = np.zeros(cells)
        self._gaps = np.zeros((*cells, 3))  # discounted count, sum and sum of squares

    def see(self, tasks: DispatchObservation) -> Floats:
        """Count these tasks; [row, SIZE]."""
        place, born = (tasks.world, tasks.en), tasks.generated_ms
        gap = np.maximum(born - self._last[place], 1e-3)
        self._last[place] = born
        fade = np.exp(-gap[:, None] / HORIZONS_MS)
        self._rate[place] = self._rate[place] * fade + 1.0 / HORIZONS_MS
        powers = np.stack([np.ones_like(gap), gap, gap * gap], axis=1)
        fade = np.exp(-gap / _VARIATION_MS)[:, None]
        gaps = self._gaps[place] = self._gaps[place] * fade + powers
        seen = 1.0 - np.exp(-(born[:, None] + 1.0) / HORIZONS_MS)
        rate = np.minimum(self._rate[place] / seen / self._capacity, _MOST)
        variation = gaps[:, 2] * gaps[:, 0] / gaps[:, 1] ** 2 - 1.0
        variation = np.clip(variation, 0.0, _MOST) / 2.0
        youth = np.exp(-born / 1000.0)
        return np.concatenate([rate, variation[:, None], youth[:, None]], axis=1)
