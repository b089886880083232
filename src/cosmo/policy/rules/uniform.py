"""`random`: uniformly random decisions, the floor of every comparison."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, Method, Site
from cosmo.policy.draws import no_draws
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import draw_of, reached, reject


class State(NamedTuple):
    """A draw for each task, so that asking twice gives the same answer."""

    draws: NDArray[np.float64]  # [world, EN, task, 1]


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return an action drawn at random, all with equal probability."""
    task, sns = seen.dispatch[row], reached(seen, row)
    drawn = int(draw_of(state, task, 0) * (sns + 2))
    return reject(seen) if drawn > sns else drawn


class Random(Method):
    """Decides at random, all actions with equal probability."""

    reference = "a textbook rule"

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return RuleDispatcher(site, EnRule(decide), State(no_draws(site, 1)))
