"""The paper's fixed rules: they never reject and need no status."""

from typing import Any, NamedTuple

from cosmo.node import Dispatcher, Method, Site
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import reached


class Nothing(NamedTuple):
    """The state of a rule that knows and remembers nothing."""

    nothing: int = 0


def local(seen: Any, state: Any, row: Any) -> Any:
    """Every task stays at its EN."""
    return 0


def in_turn(seen: Any, state: Any, row: Any) -> Any:
    """Every task is offloaded; where there are several SNs, by turns."""
    return 1 + seen.dispatch[row].task % reached(seen, row)


def local_first(seen: Any, state: Any, row: Any) -> Any:
    """At the EN while that accepts, else offloaded."""
    return 0 if seen.dispatch[row].local_room else in_turn(seen, state, row)


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
