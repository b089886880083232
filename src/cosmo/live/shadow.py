"""A second method that is asked too, and never obeyed: what it would have done is counted.

Its backlog estimate is of the tasks that it would have sent, not of those that were sent: the more
the two differ, the less its answers mean, so agreement is a lower bound. Its faults are counted.
"""

import math
from dataclasses import replace

import numpy as np

from cosmo.errors import InputError
from cosmo.live.dispatcher_runner import DispatcherRunner
from cosmo.live.metrics import Counters
from cosmo.node import DispatchObservation, Site
from cosmo.policy.registry import method


class Shadow:
    """Asks a second method about every decision and counts where it differs."""

    def __init__(self, runner: DispatcherRunner) -> None:
        self._runner = runner
        self._last_ms = -math.inf

    @classmethod
    def of(cls, spec: str, site: Site, index: int) -> "Shadow":
        """By the method's name; InputError if there is none."""
        return cls(DispatcherRunner(method(spec), site, index))

    @property
    def carries(self) -> int:
        """The numbers of a status that it goes by."""
        return self._runner.method.carries

    def _widened(self, seen: DispatchObservation) -> DispatchObservation:
        """With room for its statuses where the method in charge has none: nothing has come."""
        if seen.status.shape[2] >= self.carries:
            return seen
        return replace(seen, status=np.zeros((*seen.status.shape[:2], self.carries)))

    def ask(self, seen: DispatchObservation, action: int, counters: Counters) -> None:
        """After the decision, so that nobody waits for it."""
        now = float(seen.time_ms[0])
        begun, self._last_ms = now < self._last_ms, now
        try:
            if begun:  # time began anew: who decides has started over
                self._runner.start_over()
            own = self._runner.choose(self._widened(seen))
        except InputError:
            counters.add("shadow_faults_total")
            return
        counters.add("shadow_total", agrees=str(own == action).lower())
        if own != action:
            names = {0: "local", seen.reject: "reject"}
            counters.add(
                "shadow_differs_total",
                decided=names.get(action, "offload"),
                would=names.get(own, "offload"),
            )
