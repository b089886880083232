"""Age of information with a threshold from theory.

An update costs λ_s·c_s·d. A decision on a state of age A loses in proportion to A, and there are
`rate` decisions a second, more of them bunched the more the arrivals vary: κ·rate·(1 + cv²)·A a
second. Updating whenever the age reaches τ costs λ_s·c_s·d/τ + κ·rate·(1 + cv²)·τ/2 a second, which
is least for

    τ = sqrt(2·λ_s·c_s·d / (κ·rate·(1 + cv²))).

κ = 5.1 per task and second puts the update cost on the paper's (12.39 to 30.97 units/s).
"""

import math

import numpy as np

from cosmo.node import RAW, Site, UpdateObservation, Updater
from cosmo.policy.updaters.periodic import Answer

ROUNDING_MS = 1e-6


def threshold_ms(site: Site, kappa: float) -> float:
    """τ in ms for the tasks that each EN expects."""
    cost = site.prices.per_number * RAW
    loss = kappa * site.tasks.rate * (1.0 + site.tasks.squared_variation)
    return 1000.0 * math.sqrt(2.0 * cost / loss)


class AoiThresholdUpdater(Updater):
    """Sends when the age of what an EN has acknowledged reaches the threshold."""

    def __init__(self, site: Site, kappa: float) -> None:
        self.threshold_ms = threshold_ms(site, kappa)

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Send if the oldest age is due; look again when it will be."""
        left = self.threshold_ms - nodes.age_ms.max(axis=1)
        due = left <= ROUNDING_MS
        return due, np.where(due, self.threshold_ms, left)
