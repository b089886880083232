"""Rules that need no status: the paper's fixed ones, which never reject, and `random`, the floor of
every comparison.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, Method, Site
from cosmo.policy.draws import no_draws
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import draw_of, reached, reject


class Nothing(NamedTuple):
    """The state of a rule that knows and remembers nothing."""

    nothing: int = 0


class Draws(NamedTuple):
    """A draw for each task, so that asking twice gives the same answer."""

    draws: NDArray[np.float64]  # [world, EN, task, 1]


def local(seen: Any, state: Any, row: Any) -> Any:
    """Every task stays at its EN."""
    return 0


def in_turn(seen: Any, state: Any, row: Any) -> Any:
    """Every task is offloaded; where there are several SNs, by turns."""
    return 1 + seen.dispatch[row].task % reached(seen, row)


def local_first(seen: Any, state: Any, row: Any) -> Any:
    """At the EN while that accepts, else offloaded."""
    return 0 if seen.dispatch[row].local_room else in_turn(seen, state, row)


def at_random(seen: Any, state: Any, row: Any) -> Any:
    """Return an action drawn at random, all with equal probability."""
    task, sns = seen.dispatch[row], reached(seen, row)
    drawn = int(draw_of(state, task, 0) * (sns + 2))
    return reject(seen) if drawn > sns else drawn


class AllLocal(Method):
    """Runs every task on its EN."""

    reference = "a baseline of the paper"

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the rule that runs every task at its EN; it keeps no state."""
        return RuleDispatcher(site, EnRule(local, local), Nothing())


class AllOffload(Method):
    """Offloads every task, to several SNs in turn."""

    reference = "a baseline of the paper"

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the rule that offloads every task; it keeps no state."""
        return RuleDispatcher(site, EnRule(in_turn, in_turn), Nothing())


class LocalUntilFull(Method):
    """Runs a task on its EN while the EN has room, else offloads it."""

    reference = "a baseline of the paper"

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the rule that offloads only when the EN has no room; it keeps no state."""
        return RuleDispatcher(site, EnRule(local_first, local_first), Nothing())


class Random(Method):
    """Decides at random, all actions with equal probability."""

    reference = "a textbook rule"

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return RuleDispatcher(site, EnRule(at_random), Draws(no_draws(site, 1)))
