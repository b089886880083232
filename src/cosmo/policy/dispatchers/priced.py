"""`priced-books`: books of one's own, and a price on capacity that the outstanding work sets.

Taking every feasible task is short-sighted: a large one takes the room of several small ones. With
B the work outstanding at the EN and, by its books, at the SNs, in ms of their total rate, a task of
c cycles is refused if c > most_cycles − price·B: the fuller the nodes, the smaller it must be (a
bid price on capacity).
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import WORK, DispatchObservation, Site
from cosmo.policy.dispatchers import prices
from cosmo.policy.dispatchers.books import SelfTrackingDispatcher

Floats = NDArray[np.float64]
Actions = NDArray[np.int64]


class PricedBooksDispatcher(SelfTrackingDispatcher):
    """The choice of `self-tracking`, unless the task is too dear."""

    def __init__(self, site: Site, most_cycles: float, price: float) -> None:
        super().__init__(site)
        self.most, self.price = most_cycles, price
        links = site.links  # [EN] of the EN and of all SNs that it reaches
        reached = np.where(links.exist, site.sn.full_rate[links.reach], 0.0).sum(axis=1)
        self.total_rate = site.en.full_rate + reached

    def would_decide(self, tasks: DispatchObservation) -> Actions:
        """The choice, without writing it into the books."""
        chosen = super().would_decide(tasks)
        return np.where(tasks.cycles > self.most_cycles(tasks), tasks.reject, chosen)

    def most_cycles(self, tasks: DispatchObservation) -> Floats:
        """[row] the largest demand that is taken now, in cycles."""
        found: Floats = prices.most_cycles(self.most, self.price, self.outstanding_ms(tasks))
        return found

    def outstanding_ms(self, tasks: DispatchObservation) -> Floats:
        """B: the EN's work and what its books say of every SN, in ms of their total rate."""
        site, place = self._site, (tasks.world, tasks.en)
        busy = np.maximum(self.slot_free[place] - tasks.time_ms[:, None, None], 0.0)
        busy = np.where(np.isfinite(busy), busy, 0.0).sum(axis=2)
        remote = (busy * site.sn.cycles_per_ms[tasks.sn]).sum(axis=1)  # nothing where none is
        outstanding: Floats = (tasks.en_state[:, WORK] + remote) / self.total_rate[tasks.en]
        return outstanding
