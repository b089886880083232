"""`back-off`: books of one's own, and a pause for an SN that has failed a task.

The books know nothing of what others do at an SN. A task that comes back too late, or is refused,
tells of it: the EN sends nothing more to that SN until `pause_ms` have passed since it heard of the
failure, as clients of overloaded servers do.
"""

import numpy as np

from cosmo.node import DONE, REFUSED, DispatchObservation, Feedback, Site
from cosmo.policy.dispatchers.books import Bools, SelfTrackingDispatcher


class BackOffDispatcher(SelfTrackingDispatcher):
    """The choice of `self-tracking` among the SNs that do not pause."""

    def __init__(self, site: Site, pause_ms: float) -> None:
        super().__init__(site)
        self.pause_ms = pause_ms
        # [world, EN, k] until when this EN sends nothing to the k-th SN that it reaches.
        self.paused_until = np.full((site.worlds, *site.links.reach.shape), -np.inf)

    def observe(self, feedback: Feedback) -> None:
        """Offloaded tasks that were refused or late begin a pause of their SN, or make it last."""
        failed = (feedback.fate == REFUSED) | ((feedback.fate == DONE) & ~feedback.in_time)
        offloaded = (feedback.action >= 1) & (feedback.action <= self.paused_until.shape[2])
        told = feedback.rows(failed & offloaded)
        place = told.world, told.en, told.action - 1
        np.maximum.at(self.paused_until, place, told.time_ms + self.pause_ms)

    def usable(self, tasks: DispatchObservation) -> Bools:
        """[row, k] whether the pause of the k-th SN is over."""
        paused = self.paused_until[tasks.world, tasks.en] > tasks.time_ms[:, None]
        usable: Bools = ~paused
        return usable
