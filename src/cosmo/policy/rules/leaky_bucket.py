"""`leaky-bucket`: no updates; an inflated leaky bucket of own tasks for each SN.

After J. Turner, "New Directions in Communications (or Which Way to the Information Age?)" (1986),
who limits a sender by a bucket that its traffic fills and that leaks at a constant rate. A task
pours its work at an SN, in ms of the SN's full rate, times `inflation` into the bucket of that SN:
others use the SN as well. The bucket leaks by 1 ms in each ms. Its level is taken for the wait at
the SN.

A task runs at the EN if that is in time. Otherwise it goes to the SN with the lowest bucket of `d`
SNs that are drawn at random, if it would be in time there, else it is rejected. A bucket limits
what is sent and is not a count of tasks in flight, so it leaks by the clock. A task that failed at
an SN, or was not answered, fills the bucket to at least `failure_ms`.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, NOTHING, Dispatcher, Method, Site
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.rules.outstanding import CAUTION, in_time
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import (
    Known,
    comes_first,
    draw_of,
    known_of,
    or_local,
    reached,
    reject,
    surely_local,
    tie_draws,
)

Floats = NDArray[np.float64]


class State(NamedTuple):
    """Parameters, and the buckets of the SNs that each EN reaches."""

    known: Known
    d: int
    inflation: float
    failure_ms: float
    caution: float
    draws: Floats  # [world, EN, task, k]
    level_ms: Floats  # [world, EN, k], …
    at_ms: Floats  # … and of when


def level(state: Any, world: Any, en: Any, column: Any, now_ms: Any) -> Any:
    """What a bucket holds now, in ms."""
    since_ms = now_ms - state.at_ms[world, en, column]
    return max(state.level_ms[world, en, column] - since_ms, 0.0)


def drawn(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """Whether an SN is one of the d that were drawn for a task."""
    sns = reached(seen, row)
    if state.d >= sns:
        return True
    task, earlier = seen.dispatch[row], 0
    for other in range(sns):
        earlier += 1 if draw_of(state, task, other) < draw_of(state, task, column) else 0
    return earlier < state.d


def choose(seen: Any, state: Any, row: Any) -> Any:
    """At the EN if that is surely in time, else at the SN with the lowest bucket of those drawn."""
    task = seen.dispatch[row]
    if surely_local(seen, state.known, row, state.caution):
        return 0
    best, least = reject(seen), np.inf
    for column in range(reached(seen, row)):
        if not drawn(seen, state, row, column):
            continue
        held_ms = level(state, task.world, task.en, column, task.time_ms)
        if not in_time(seen, state.known, row, column, held_ms):
            continue
        if comes_first(seen, state, row, column, held_ms, best, least):
            best, least = column + 1, held_ms
    return or_local(seen, state.known, row, best)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """The same; the task is poured into its bucket."""
    action = choose(seen, state, row)
    if action >= 1 and action <= reached(seen, row):
        task, column = seen.dispatch[row], action - 1
        held_ms = level(state, task.world, task.en, column, task.time_ms)
        own_ms = task.cycles / state.known.sn_full_rate[seen.sn[row, column]]
        state.level_ms[task.world, task.en, column] = held_ms + state.inflation * own_ms
        state.at_ms[task.world, task.en, column] = task.time_ms
    return action


def hear(fact: Any, state: Any) -> None:
    """A task that failed at an SN fills the bucket."""
    if fact.action < 1 or fact.action > state.at_ms.shape[2]:
        return
    if fact.in_time or fact.fate == GIVEN_UP:
        return
    world, en, column = fact.world, fact.en, fact.action - 1
    held_ms = level(state, world, en, column, fact.time_ms)
    state.level_ms[world, en, column] = max(held_ms, state.failure_ms)
    state.at_ms[world, en, column] = fact.time_ms


class LeakyBucket(Method):
    """No updates; local first, else the SN with the lowest leaky bucket of own tasks."""

    reference = "Turner, the leaky bucket, 1986"
    carries = NOTHING

    def __init__(
        self,
        d: PositiveInt = 6,
        inflation: Positive = 2.0,
        failure_ms: Positive = 50.0,
        caution: Positive = CAUTION,
    ) -> None:
        self.d, self.inflation = d, inflation
        self.failure_ms, self.caution = failure_ms, caution

    def dispatcher(self, site: Site) -> Dispatcher:
        """Buckets of own tasks."""
        cells = (site.worlds, *site.links.reach.shape)
        state = State(
            known=known_of(site),
            d=int(self.d),
            inflation=float(self.inflation),
            failure_ms=float(self.failure_ms),
            caution=float(self.caution),
            draws=tie_draws(site),
            level_ms=np.zeros(cells),
            at_ms=np.zeros(cells),
        )
        return RuleDispatcher(site, EnRule(decide, choose, hear), state)
