"""`admission-control`: rejects at random in proportion to recent failures, after Envoy's filter.

Of n requests that ended within a sliding window, s were successful. A new one is rejected with
probability

    ((n − s/threshold) / (n + 1)) ^ (1/aggression),    at most `most`,

where `threshold` is the success rate that is held to be healthy. What is let through goes to
another rule.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, Dispatcher, DispatchObservation, Feedback, Site
from cosmo.policy.chance import DrawPerTask
from cosmo.policy.dispatchers.estimate import EstimateDispatcher

_BINS = 20  # the window slides in steps of a twentieth


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
        self._draws = DrawPerTask(site)
        self._threshold, self._aggression, self._most = threshold, aggression, most
        self._bin_ms = window_ms / _BINS
        cells = site.worlds, len(site.en)
        self._bin = np.full((*cells, _BINS), -1, np.int64)  # which step of time a bin holds
        self._ended = np.zeros((*cells, _BINS))
        self._successes = np.zeros((*cells, _BINS))

    def observe(self, feedback: Feedback) -> None:
        """Count accepted tasks whose fate has become known."""
        ended = feedback.rows(feedback.fate != GIVEN_UP)
        world, en = ended.world, ended.en
        step = (ended.time_ms // self._bin_ms).astype(np.int64)
        place = world, en, step % _BINS
        stale = self._bin[place] != step
        for counts in (self._ended, self._successes):
            counts[tuple(index[stale] for index in place)] = 0.0
        self._bin[place] = step
        np.add.at(self._ended, place, 1.0)
        np.add.at(self._successes, place, ended.in_time)

    def would_decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """Draws belong to tasks, so that asking twice gives the same answer."""
        step = (tasks.time_ms // self._bin_ms).astype(np.int64)
        place = tasks.world, tasks.en
        within = self._bin[place] > (step - _BINS)[:, None]
        ended = (self._ended[place] * within).sum(axis=1)
        successes = (self._successes[place] * within).sum(axis=1)
        excess = np.maximum(0.0, (ended - successes / self._threshold) / (ended + 1.0))
        chance = np.minimum(excess ** (1.0 / self._aggression), self._most)
        rejected = self._draws.of(tasks) < chance
        return np.where(rejected, tasks.reject, self._behind.would_decide(tasks))

    decide = would_decide
