"""Contention at the only SN of an EN: evidence that other ENs use it.

The EN compares the finish of its own tasks with the finish expected from its own traffic alone.
This expectation is never corrected, so that errors of real clocks and timers do not add up.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import REFUSED, DispatchObservation, Feedback, Site

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_CLEAR = 0.03  # of the longest deadline: a task later than this was delayed by others
_LONG = 20.0  # longest deadlines without evidence after which the SN counts as unshared


class Contention:
    """Evidence at the EN of every world; arrays are [world, entry] of own tasks in flight."""

    def __init__(self, site: Site) -> None:
        longest_ms = site.tasks.deadline_ms[1]
        self._clear_ms, self._long_ms = _CLEAR * longest_ms, _LONG * longest_ms
        self._back_ms = float(site.links.result_ms[0, 0])
        self._places = float(site.places(site.sn)[0])
        # As many as an SN holds, and as many in flight to it and back.
        entries = site.worlds, 2 * int(site.most_tasks(site.sn)[0])
        self._task, self._done = np.full(entries, -1, np.int64), np.full(entries, -np.inf)
        self._seen_ms = np.full(site.worlds, -np.inf)  # of the last evidence of others

    def sent(self, tasks: DispatchObservation, done_ms: Floats) -> None:
        """Record when tasks should be done at the SN; NaN for tasks that were not sent there."""
        for row in np.flatnonzero(~np.isnan(done_ms)).tolist():
            world = int(tasks.world[row])
            # A free entry, or that of a task that was never answered.
            entry = int(self._done[world].argmin())
            self._task[world, entry] = tasks.task[row]
            self._done[world, entry] = done_ms[row]

    def observe(self, feedback: Feedback) -> None:
        """Take in results and refusals of own tasks."""
        for row in np.flatnonzero(feedback.action == 1).tolist():
            world = int(feedback.world[row])
            found = np.flatnonzero(self._task[world] == feedback.task[row])
            if len(found) == 0:
                continue
            due, now = float(self._done[world, found[0]]), float(feedback.time_ms[row])
            self._task[world, found[0]], self._done[world, found[0]] = -1, -np.inf
            if feedback.fate[row] == REFUSED:
                # Own tasks that were due by then may hold all places, or all but one.
                own = (self._done[world] > now - 2.0 * self._back_ms - self._clear_ms).sum()
                evidence = own < self._places - 1.0
            else:
                evidence = now - self._back_ms - due > self._clear_ms
            if evidence:
                self._seen_ms[world] = now

    def seen(self, tasks: DispatchObservation) -> Bools:
        """[row] whether others may use the SN: evidence within the last 20 longest deadlines."""
        due = self._done[tasks.world]
        now = tasks.time_ms
        # A task that is overdue is evidence once, and is then forgotten.
        overdue = np.isfinite(due) & (due + self._back_ms + self._clear_ms < now[:, None])
        late = overdue.any(axis=1)
        if late.any():
            self._seen_ms[tasks.world[late]] = now[late]
            self._done[tasks.world] = np.where(overdue, -np.inf, due)
        return np.asarray(now - self._seen_ms[tasks.world] <= self._long_ms)
