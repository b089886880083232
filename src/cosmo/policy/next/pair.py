"""One EN with one SN: own books are the truth until something tells of others.

While tasks come back when the books say, but for what clocks and timers of real nodes are off, the
SN serves nobody else: then all that is to be decided is which tasks to take at this load, and
`adaptive-prices` does that. Once a task is clearly late, overdue or refused, others use the SN, or
the link changes, and the trained networks decide, until nothing has told of others for long.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.dispatchers.adaptive import HORIZON_MS, AdaptivePricesDispatcher
from cosmo.policy.next.company import Company
from cosmo.policy.next.en import NextDispatcher

Ints = NDArray[np.int64]


class PairDispatcher(Dispatcher):
    """Goes by prices alone, or by the networks, EN by EN."""

    def __init__(self, site: Site, networks: NextDispatcher) -> None:
        self._networks = networks
        self._prices = AdaptivePricesDispatcher(site, HORIZON_MS)
        self._company = Company(site)

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals are evidence."""
        self._company.observe(feedback)
        self._networks.observe(feedback)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """The choice, written into the books of both."""
        networks = self._networks
        seen = networks.books.see(tasks)
        shared = self._company.there(tasks)
        actions = self._prices.would_decide(tasks)
        if shared.any():  # networks take most of the time, so they are asked only where they decide
            weighed = networks.weighed(tasks, seen).actions(networks.rules.margin)
            actions = np.where(shared, weighed, actions)
        networks.commit(tasks, seen, actions)
        self._company.sent(tasks, self._prices.write(tasks, actions))
        return actions
