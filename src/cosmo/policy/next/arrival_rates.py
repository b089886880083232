"""Rates and variation of an EN's arrivals, smoothed."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DispatchObservation, Site
from cosmo.policy.next.settings import Spans

Floats = NDArray[np.float64]

SIZE = 5  # three rates, the variation, how recently the episode began
_MOST = 4.0  # what rates are cut off at, in shares of the capacity
_LEAST_GAP_MS = 1e-3


class ArrivalRates:
    """Arrival statistics of every EN in a batch of worlds: rates over three horizons as shares of
    the capacity, the squared variation of the gaps, and how recently the episode began.
    """

    def __init__(self, site: Site, spans: Spans) -> None:
        unit = site.tasks.deadline_ms[1]
        # Over three horizons the rate; over the last span the variation of the gaps, three sums.
        self._spans_ms = np.array([*spans.horizons, *(spans.variation,) * 3]) * unit
        full_rate = site.en.full_rate.sum() + site.sn.full_rate.sum()
        capacity = full_rate / len(site.en) / site.tasks.mean_cycles  # tasks a ms and EN
        weight = 1.0 / (self._spans_ms[:3] * capacity)  # of a task, as a share of that
        self._more = np.array([*weight, 1.0, 0.0, 0.0])
        cells = site.worlds, len(site.en)
        self._last = np.zeros(cells)
        # Discounted: shares of the capacity over the horizons, then count, sum and sum of squares
        # of the gaps.
        self._sums = np.zeros((*cells, 6))

    def see(self, tasks: DispatchObservation) -> Floats:
        """Count these tasks; returns the statistics of their ENs, [row, SIZE]."""
        place, born = (tasks.world, tasks.en), tasks.generated_ms
        gap = np.maximum(born - self._last[place], _LEAST_GAP_MS)
        self._last[place] = born
        sums = self._sums[place]
        sums *= np.exp(gap[:, None] / -self._spans_ms)
        sums += self._more
        sums[:, 4] += gap
        sums[:, 5] += gap * gap
        self._sums[place] = sums
        # An EN that has just started has seen only a part of each span.
        unseen = np.exp((born[:, None] + 1.0) / -self._spans_ms[:4])
        found = np.empty((len(tasks), SIZE))
        found[:, :3] = sums[:, :3] / (1.0 - unseen[:, :3])
        found[:, 3] = 0.5 * (sums[:, 5] * sums[:, 3] / (sums[:, 4] * sums[:, 4]) - 1.0)
        found[:, 4] = unseen[:, 3]
        return np.minimum(np.maximum(found, 0.0), _MOST)
