"""Age of information with a threshold from theory.

An update costs λ_s·c_s·d. A decision on a state of age A loses in proportion to A, and there are
`rate` decisions a second, more of them bunched the more the arrivals vary: κ·rate·(1 + cv²)·A a
second. Updating whenever the age reaches τ costs λ_s·c_s·d/τ + κ·rate·(1 + cv²)·τ/2 a second, which
is least for

    τ = sqrt(2·λ_s·c_s·d / (κ·rate·(1 + cv²))).

κ = 5.1 per task and second puts the update cost on the paper's (12.39 to 30.97 units/s).
"""

import math
from typing import Any, NamedTuple

import numpy as np

from cosmo.node import NO_NODE, RAW, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.periodic import OnRawStatus, answer
from cosmo.policy.rules.run import RuleUpdater, SnRule

ROUNDING_MS = 1e-6


class State(NamedTuple):
    """The threshold on the age of a status, in ms; nothing is remembered."""

    threshold_ms: float


def threshold_ms(site: Site, kappa: float) -> float:
    """τ in ms for the tasks that each EN expects."""
    cost = site.prices.per_number * RAW
    loss = kappa * site.tasks.rate * (1.0 + site.tasks.squared_variation)
    return 1000.0 * math.sqrt(2.0 * cost / loss)


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Send if the oldest age of what ENs have acknowledged is due; look again when it will be."""
    oldest = np.inf
    for column in range(seen.en.shape[1]):
        if seen.en[row, column] == NO_NODE:
            break
        source = seen.acknowledged_ms[row, column]
        oldest = min(oldest, source if source == source else seen.update[row].up_since_ms)
    left = state.threshold_ms - (seen.update[row].time_ms - oldest)
    due = left <= ROUNDING_MS
    answer(answers, row, due, state.threshold_ms if due else left)


class AoiThreshold(OnRawStatus):
    """Sends the raw state when its acknowledged age reaches the theoretical optimum."""

    reference = (
        "a baseline of the paper; Yates et al., Age of information: an introduction and survey,"
        " 2021"
    )
    plain = (
        "The service node sends its state when the last one that has arrived reaches the age that"
        " theory calls best."
    )

    def __init__(self, kappa: Positive = 5.1) -> None:
        self.kappa = kappa

    def updater(self, site: Site) -> Updater:
        """Return the updater that sends when the acknowledged status has reached an age."""
        return RuleUpdater(SnRule(send), State(threshold_ms(site, self.kappa)))
