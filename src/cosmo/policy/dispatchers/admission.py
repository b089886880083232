"""`admission-control`: rejects at random in proportion to recent failures, after Envoy's filter.

Of n requests that ended within a sliding window, s were successful. A new one is rejected with
probability

    ((n − s/threshold) / (n + 1)) ^ (1/aggression),    at most `most`,

where `threshold` is the success rate that is held to be healthy. What is let through goes to
another rule.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.chance import DrawPerTask
from cosmo.policy.dispatchers.estimate import EstimateDispatcher

BINS = 20  # the window slides in steps of a twentieth


def rejected_share(
    ended: Any, successes: Any, threshold: float, aggression: float, most: float
) -> Any:
    """The chance to be rejected, of numbers or of arrays; compiled code uses the same function."""
    excess = np.maximum(0.0, (ended - successes / threshold) / (ended + 1.0))
    return np.minimum(excess ** (1.0 / aggression), most)


class AdmissionDispatcher(Dispatcher):
    """In front of `estimate`; an EN counts its own tasks, when it learns of their fate."""

    def __init__(
        self,
        site: Site,
        threshold: float,
        aggression: float,
        window_ms: float,
        most: float,
    ) -> None:
        self._behind = EstimateDispatcher(site)
        self.draws = DrawPerTask(site)
        self.threshold, self.aggression, self.most = threshold, aggression, most
        self.bin_ms = window_ms / BINS
        cells = site.worlds, len(site.en)
        self.step = np.full((*cells, BINS), -1, np.int64)  # which step of time a bin holds
        self.ended = np.zeros((*cells, BINS))
        self.successes = np.zeros((*cells, BINS))

    def observe(self, feedback: Feedback) -> None:
        """Count accepted tasks whose fate has become known."""
        ended = feedback.rows(feedback.fate != GIVEN_UP)
        world, en = ended.world, ended.en
        step = (ended.time_ms // self.bin_ms).astype(np.int64)
        place = world, en, step % BINS
        stale = self.step[place] != step
        for counts in (self.ended, self.successes):
            counts[tuple(index[stale] for index in place)] = 0.0
        self.step[place] = step
        np.add.at(self.ended, place, 1.0)
        np.add.at(self.successes, place, ended.in_time)

    def would_decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """Draws belong to tasks, so that asking twice gives the same answer."""
        step = (tasks.time_ms // self.bin_ms).astype(np.int64)
        place = tasks.world, tasks.en
        within = self.step[place] > (step - BINS)[:, None]
        ended = (self.ended[place] * within).sum(axis=1)
        successes = (self.successes[place] * within).sum(axis=1)
        share = rejected_share(ended, successes, self.threshold, self.aggression, self.most)
        rejected = self.draws.of(tasks) < share
        return np.where(rejected, tasks.reject, self._behind.would_decide(tasks))

    decide = would_decide
