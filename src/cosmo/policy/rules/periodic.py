"""`periodic` and `never`: updates by the clock, and none at all."""

from typing import Any, NamedTuple

import numpy as np

from cosmo.node import RAW, Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules import estimate, strict
from cosmo.policy.rules.run import RuleUpdater, SnRule


class Clock(NamedTuple):
    """How long an SN waits between updates."""

    interval_ms: float


def answer(answers: Any, row: Any, send: Any, interval_ms: Any) -> None:
    """Send to all ENs that reach the SN or to none, and decide again then."""
    for column in range(answers.send.shape[1]):
        answers.send[row, column] = send
    answers.interval_ms[row] = interval_ms


def send_always(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """At time 0 and every `interval_ms` after."""
    answer(answers, row, True, state.interval_ms)


def send_never(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Do not send, and do not ask again."""
    answer(answers, row, False, np.inf)


class OnRawStatus(Method):
    """The EN goes by the cached raw state; the paper's baselines with the rule `strict`."""

    carries = RAW
    strict = True  # else by `estimate`

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the EN rule `strict` or `estimate`, by the parameter `strict`."""
        return strict.dispatcher(site) if self.strict else estimate.dispatcher(site)


class Periodic(OnRawStatus):
    """Sends the raw state every `interval_ms`; the EN takes the faster feasible route by it."""

    reference = "a textbook rule"
    strict = False

    def __init__(self, interval_ms: Positive = 100.0) -> None:
        self.interval_ms = interval_ms

    def updater(self, site: Site) -> Updater:
        """Return the updater that sends every `interval_ms`."""
        return RuleUpdater(SnRule(send_always), Clock(float(self.interval_ms)))


class Never(OnRawStatus):
    """Sends no updates; the EN assumes that the SN is idle."""

    reference = "a textbook rule"
    strict = False

    def updater(self, site: Site) -> Updater:
        """Return the updater that never sends."""
        return RuleUpdater(SnRule(send_never), Clock(np.inf))


def by_estimate(name: str, kind: type[OnRawStatus]) -> type[OnRawStatus]:
    """The same updates as the method of this name, with the stronger EN rule `estimate`."""
    summary = kind.summary().removesuffix(".") + "; the EN takes the faster feasible route."
    # The paper does not say which rule its EN used: the plain names come close to its numbers.
    reference = f"{name} with a stronger rule at the edge node"
    body = {"reference": reference, "strict": False}
    body |= {"__doc__": summary, "__module__": kind.__module__}
    return type(f"{kind.__name__}Estimate", (kind,), body)
