"""A second method that is asked too, and never obeyed: what it would have done is counted.

Its books are of what it would have sent, not of what was: the further the two differ, the less its
answers mean, so agreement is a lower bound. A fault of it is counted, and nothing more.
"""

import math

from cosmo.errors import InputError
from cosmo.live.chooser import Chooser
from cosmo.live.metrics import Counters
from cosmo.node import DispatchObservation, Site
from cosmo.policy.registry import method


class Shadow:
    """Asks, compares, counts."""

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._last_ms = -math.inf

    @classmethod
    def of(cls, spec: str, site: Site, index: int) -> "Shadow":
        """By the method's name; InputError if there is none."""
        return cls(Chooser(method(spec), site, index))

    def ask(self, seen: DispatchObservation, action: int, counters: Counters) -> None:
        """After the decision, so that nobody waits for it."""
        now = float(seen.time_ms[0])
        begun, self._last_ms = now < self._last_ms, now
        try:
            if begun:  # time began anew: who decides has started over
                self._chooser.start_over()
            own = self._chooser.choose(seen)
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
