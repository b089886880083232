"""`back-off`: a backlog estimate, and a pause for an SN that has failed a task.

The estimate knows nothing of what others do at an SN. A task that comes back too late, or is
refused, is a sign of it: the EN sends nothing more to that SN until `pause_ms` have passed since it
heard of the failure, as clients of overloaded servers do.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, NOTHING, Dispatcher, Method, Site
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.self_tracking import Backlog, choose, decide, no_backlog
from cosmo.policy.rules.site import Known, known_of, tie_draws

Floats = NDArray[np.float64]


class State(NamedTuple):
    """The estimate, in which SNs pause."""

    known: Known
    backlog: Backlog
    draws: Floats  # [world, EN, task, k], for ties
    pause_ms: float


def hear(fact: Any, state: Any) -> None:
    """An offloaded task that was refused, late or not answered begins a pause of its SN, or makes
    it last.
    """
    failed = fact.fate != GIVEN_UP and not fact.in_time
    paused = state.backlog.paused_until
    if failed and fact.action >= 1 and fact.action <= paused.shape[2]:
        place = fact.world, fact.en, fact.action - 1
        paused[place] = max(paused[place], fact.time_ms + state.pause_ms)


class BackOff(Method):
    """As `self-tracking`, and avoids an SN for `pause_ms` after a refusal or a late result."""

    reference = "a rule of the CoSMO package"
    carries = NOTHING

    def __init__(self, pause_ms: Positive = 25.0) -> None:
        self.pause_ms = pause_ms

    def dispatcher(self, site: Site) -> Dispatcher:
        """A backlog estimate with pauses."""
        state = State(known_of(site), no_backlog(site), tie_draws(site), float(self.pause_ms))
        return RuleDispatcher(site, EnRule(decide, choose, hear), state)
