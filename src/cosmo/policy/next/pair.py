"""One EN with one SN: a rule decides until there is evidence of other users.

While tasks come back when the EN's own backlog estimate says, up to errors of clocks and timers,
the SN serves no other EN, and all that is left to decide is which tasks to take at this load.
For success, `adaptive-prices` rejects large tasks at a high load, so that more small ones are in
time. By net utility such a rejection costs more than it gains: `self-tracking` takes every task
that the estimate expects in time.
Once a task is clearly late, overdue or refused, others use the SN or the link changes. Then the
trained networks decide, until 20 maximum deadlines pass without evidence of other users.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.next.contention import Contention
from cosmo.policy.next.en import NextDispatcher
from cosmo.policy.rules import adaptive, self_tracking

Ints = NDArray[np.int64]


class PairDispatcher(Dispatcher):
    """Decides by a rule or by the networks, for each EN.

    Args:
        site: One EN with one SN in every world.
        networks: What decides while there is evidence of other users.
        prices: Whether large tasks are rejected at a high load otherwise.

    """

    def __init__(self, site: Site, networks: NextDispatcher, prices: bool = True) -> None:
        self._networks = networks
        self._rule = adaptive.dispatcher(site) if prices else self_tracking.dispatcher(site)
        self._contention = Contention(site)

    def observe(self, feedback: Feedback) -> None:
        """Take in results and refusals as evidence."""
        self._contention.observe(feedback)
        self._networks.observe(feedback)

    def decide(self, tasks: DispatchObservation) -> Ints:
        """Decide, and note the decisions in the estimates of both."""
        networks = self._networks
        seen = networks.estimate.see(tasks)
        shared = self._contention.seen(tasks)
        actions = self._rule.would_decide(tasks)
        assert actions is not None
        if shared.any():  # networks take most of the time, so they are asked only where they decide
            weighed = networks.weighed(tasks, seen).actions(networks.settings.margin)
            actions = np.where(shared, weighed, actions)
        networks.commit(tasks, seen, actions)
        self._contention.sent(tasks, self._rule.note(tasks, actions))
        return actions
