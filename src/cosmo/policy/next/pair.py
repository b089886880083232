"""One EN with one SN: own books are the truth until something tells of others.

While every task comes back when the books say, the SN serves nobody else: then all that is to be
decided is which tasks to take at this load, and `adaptive-prices` does that. Once a task is late,
overdue or refused, others use the SN, or the link changes, and the trained networks decide.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.dispatchers.adaptive import HORIZON_MS, AdaptivePricesDispatcher
from cosmo.policy.next.en import NextDispatcher

Ints = NDArray[np.int64]


class PairDispatcher(Dispatcher):
    """Goes by prices alone, or by the networks, EN by EN."""

    def __init__(self, site: Site, networks: NextDispatcher) -> None:
        self._networks = networks
        self._prices = AdaptivePricesDispatcher(site, HORIZON_MS)

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals are evidence."""
        self._networks.observe(feedback)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """The choice, written into the books of both."""
        considered = self._networks.consider(tasks)
        shared = self._networks.books.shared[tasks.world, tasks.en].any(axis=1)
        actions = np.where(
            shared,
            considered.actions(self._networks.rules.margin),
            self._prices.would_decide(tasks),
        )
        self._networks.commit(tasks, considered, actions)
        self._prices.write(tasks, actions)
        return actions
