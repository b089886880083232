"""`in-flight`: the SN with the fewest own tasks in flight for each slot, without any status.

This is the least-outstanding-requests rule of proxies (for example the policy LEAST_REQUEST of
Envoy, over all endpoints), with slots as weights. It needs no demand: a result, a refusal or an
expired deadline ends a task, never the clock. Proxies have no local run and no rejection. Here a
task runs at the EN if that is in time even if its wait is `caution` times as long as expected, and
is rejected if it would be late at the EN and, behind the EN's own tasks, at every SN.

With `hot_ms`, SNs push one bit, as those of `jbt` do: an SN whose wait exceeds `hot_ms` is hot, and
gets tasks only while all SNs are hot.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NOTHING, Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules import join_below_threshold as threshold
from cosmo.policy.rules.join_below_threshold import is_open
from cosmo.policy.rules.outstanding import (
    CAUTION,
    Outstanding,
    hear,
    in_time,
    may_try,
    none_outstanding,
    note_sent,
    queue_wait_ms,
)
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import (
    Known,
    comes_first,
    known_of,
    or_local,
    reached,
    reject,
    surely_local,
    tie_draws,
)

Floats = NDArray[np.float64]


class State(NamedTuple):
    """Own tasks in flight."""

    known: Known
    own: Outstanding
    caution: float
    draws: Floats  # [world, EN, task, k], for ties
    bits: bool  # whether SNs say that they are hot


def fewest(seen: Any, state: Any, row: Any, hot: Any) -> Any:
    """The SN with the fewest own tasks in flight for each slot, this one included, of those that
    are hot or of the others; rejection if a task would be late at all of them.
    """
    known, own, task = state.known, state.own, seen.dispatch[row]
    best, least = reject(seen), np.inf
    for column in range(reached(seen, row)):
        sn = seen.sn[row, column]
        is_hot = state.bits and not is_open(seen, row, column)
        if is_hot != hot or not may_try(seen, own, row, column):
            continue
        count = own.unanswered[task.world, task.en, column]
        per_slot = (count + 1) / known.sn_slots[sn]
        if not comes_first(seen, state, row, column, per_slot, best, least):
            continue  # which costs less to find out than whether it would be in time
        if in_time(seen, known, row, column, queue_wait_ms(known, own, sn, count)):
            best, least = column + 1, per_slot
    return best


def choose(seen: Any, state: Any, row: Any) -> Any:
    """At the EN if that is surely in time, else at the SN with the fewest own tasks."""
    if surely_local(seen, state.known, row, state.caution):
        return 0
    best = fewest(seen, state, row, False)
    if state.bits and best == reject(seen):
        best = fewest(seen, state, row, True)
    return or_local(seen, state.known, row, best)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the task that is sent."""
    action = choose(seen, state, row)
    note_sent(seen, state.own, row, action)
    return action


class InFlight(Method):
    """No updates; the SN with the fewest own tasks in flight a slot, if the EN would be late."""

    reference = "least outstanding requests, as proxies do it"
    carries = NOTHING

    def __init__(self, caution: Positive = CAUTION, hot_ms: Positive | None = None) -> None:
        self.caution, self.hot_ms = caution, hot_ms
        self.carries = NOTHING if hot_ms is None else threshold.BIT

    def dispatcher(self, site: Site) -> Dispatcher:
        """Counts of own tasks."""
        bits = self.hot_ms is not None
        own, caution = none_outstanding(site), float(self.caution)
        state = State(known_of(site), own, caution, tie_draws(site), bits)
        return RuleDispatcher(site, EnRule(decide, choose, hear), state)

    def updater(self, site: Site) -> Updater:
        """Bits, where SNs send them."""
        assert self.hot_ms is not None
        return threshold.updater(site, 0.5 * self.hot_ms, self.hot_ms, len(site.sn))
