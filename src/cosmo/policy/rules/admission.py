"""`admission-control`: rejects at random in proportion to recent failures, after Envoy's filter.

Of n requests that ended within a sliding window, s were successful. A new one is rejected with
probability

    ((n − s/threshold) / (n + 1)) ^ (1/aggression),    at most `most`,

where `threshold` is the success rate that is held to be healthy. What is let through goes to
`estimate`. An EN counts its own tasks, when it learns of their fate.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, Dispatcher, Site
from cosmo.policy.parameters import Positive, Share
from cosmo.policy.rules import estimate
from cosmo.policy.rules.aoi_threshold import AoiThreshold
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import Known, draw_of, known_of, reject, tie_draws

Floats = NDArray[np.float64]

BINS = 20  # the window slides in steps of a twentieth

by_estimate = estimate.choose


class State(NamedTuple):
    """Parameters, a draw for each task, and what ENs have counted."""

    known: Known
    threshold: float
    aggression: float
    most: float
    bin_ms: float
    draws: Floats  # [world, EN, task, k] for ties, and the last for the rejection
    step: NDArray[np.int64]  # [world, EN, bin] which step of time a bin holds
    ended: Floats
    successes: Floats


def rejected_share(ended: Any, successes: Any, threshold: Any, aggression: Any, most: Any) -> Any:
    """The chance to be rejected."""
    excess = max(0.0, (ended - successes / threshold) / (ended + 1.0))
    return min(excess ** (1.0 / aggression), most)


def hear(fact: Any, state: Any) -> None:
    """Count accepted tasks whose fate has become known."""
    if fact.fate == GIVEN_UP:
        return
    step = int(fact.time_ms // state.bin_ms)
    world, en, place = fact.world, fact.en, step % BINS
    if state.step[world, en, place] != step:
        state.step[world, en, place] = step
        state.ended[world, en, place] = 0.0
        state.successes[world, en, place] = 0.0
    state.ended[world, en, place] += 1.0
    if fact.in_time:
        state.successes[world, en, place] += 1.0


def choose(seen: Any, state: Any, row: Any) -> Any:
    """Draws belong to tasks, so that asking twice gives the same answer."""
    task = seen.dispatch[row]
    first = int(task.time_ms // state.bin_ms) - BINS + 1
    ended, successes = 0.0, 0.0
    for place in range(BINS):
        if state.step[task.world, task.en, place] >= first:
            ended += state.ended[task.world, task.en, place]
            successes += state.successes[task.world, task.en, place]
    share = rejected_share(ended, successes, state.threshold, state.aggression, state.most)
    if draw_of(state, task, state.draws.shape[3] - 1) < share:
        return reject(seen)
    return by_estimate(seen, state, row)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """The same: it is what tasks end in that is remembered."""
    return choose(seen, state, row)


def dispatcher(
    site: Site, threshold: float, aggression: float, window_ms: float, most: float
) -> Dispatcher:
    """The rule at the ENs of a site."""
    cells = site.worlds, len(site.en), BINS
    state = State(
        known=known_of(site),
        threshold=float(threshold),
        aggression=float(aggression),
        most=float(most),
        bin_ms=window_ms / BINS,
        draws=tie_draws(site, 1),
        step=np.full(cells, -1, np.int64),
        ended=np.zeros(cells),
        successes=np.zeros(cells),
    )
    return RuleDispatcher(site, EnRule(decide, choose, hear), state)


class AdmissionControl(AoiThreshold):
    """Rejects at random in proportion to recent failures, in front of `aoi-threshold/estimate`."""

    reference = "Envoy's admission control; Beyer et al., Site reliability engineering"

    def __init__(
        self,
        threshold: Share = 0.95,
        aggression: Positive = 1.0,
        window_ms: Positive = 1000.0,
        most: Share = 0.8,
        kappa: Positive = 5.1,
    ) -> None:
        super().__init__(kappa)
        self.threshold, self.aggression = threshold, aggression
        self.window_ms, self.most = window_ms, most

    def dispatcher(self, site: Site) -> Dispatcher:
        """The filter and the rule behind it."""
        return dispatcher(site, self.threshold, self.aggression, self.window_ms, self.most)
