"""`jbt`: join below threshold. SNs say when their wait crosses a threshold; ENs use those below it.

After X. Zhou, F. Wu, J. Tan, Y. Sun and N. Shroff, "Designing Low-Complexity Heavy-Traffic
Delay-Optimal Load Balancing Schemes: Theory to Algorithms" (2017). A task goes to a random one of
the servers that are below the threshold.

Differences to the paper: the threshold is on the wait for a slot in ms and not on the queue length.
An SN reports both crossings, with hysteresis: it closes above `high_ms` and opens again at `low_ms`
(the paper's servers report that they are below, and a dispatcher forgets a server once it has used
it). A task runs at the EN if that is in time. It is rejected if no SN is open (the paper, without
deadlines, takes any server).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.rules.outstanding import (
    CAUTION,
    Outstanding,
    hear,
    in_time,
    may_try,
    none_outstanding,
    note_sent,
)
from cosmo.policy.rules.power_of_d import wait_ms
from cosmo.policy.rules.run import EnRule, RuleDispatcher, RuleUpdater, SnRule
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
from cosmo.policy.subsets import en_subset, sn_subset

Floats = NDArray[np.float64]

BIT = 1  # a status is one number: 1 open, 0 closed
CHECK_MS, TIMEOUT_MS = 1.0, 50.0


class State(NamedTuple):
    """At the ENs: own tasks, to notice SNs that have fallen silent."""

    known: Known
    own: Outstanding
    caution: float
    subset: NDArray[np.bool_]  # [EN, k] the SNs that an EN uses
    draws: Floats  # [world, EN, task, k]


def is_open(seen: Any, row: Any, column: Any) -> Any:
    """Whether an SN is open by its last status; so is one that has sent none yet (R14)."""
    source = seen.status_ms[row, column]
    return source != source or seen.status[row, column, 0] > 0.5


def choose(seen: Any, state: Any, row: Any) -> Any:
    """At the EN if that is surely in time, else at a random open SN."""
    if surely_local(seen, state.known, row, state.caution):
        return 0
    best, least = reject(seen), np.inf
    for column in range(reached(seen, row)):
        if not state.subset[seen.dispatch[row].en, column]:
            continue
        if not is_open(seen, row, column) or not may_try(seen, state.own, row, column):
            continue
        if not in_time(seen, state.known, row, column, 0.0):
            continue
        if comes_first(seen, state, row, column, 0.0, best, least):  # all alike: by their draws
            best, least = column + 1, 0.0
    return or_local(seen, state.known, row, best)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the task that is sent."""
    action = choose(seen, state, row)
    note_sent(seen, state.own, row, action)
    return action


class Bits(NamedTuple):
    """At the SNs: parameters, and what each EN was last sent."""

    low_ms: float
    high_ms: float
    longest_ms: float  # deadline
    largest_bytes: float  # that a task may reserve
    sn_full_rate: Floats  # [SN]
    subset: NDArray[np.bool_]  # [SN, k] the ENs that use an SN
    open: NDArray[np.bool_]  # [world, SN, k]
    sent_ms: Floats  # [world, SN, k]; -inf: nothing yet


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status is 1 if the SN is open, else 0; between the thresholds it is only made when a lost
    one is repeated, and then it says open.
    """
    numbers[0] = 1.0 if wait_ms(sn, own, state) <= state.high_ms else 0.0


def overdue(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """Whether a status was sent that the EN has not acknowledged in time: it was lost, or this SN
    has forgotten what was acknowledged, as it does in an outage (R38).
    """
    node = seen.update[row]
    sent_ms = state.sent_ms[node.world, node.sn, column]
    if sent_ms == -np.inf or seen.acknowledged_ms[row, column] >= sent_ms:
        return False
    return node.time_ms - sent_ms >= TIMEOUT_MS


def note_status(seen: Any, state: Any, row: Any, column: Any, is_open: Any) -> None:
    """A status leaves for an EN."""
    node = seen.update[row]
    state.open[node.world, node.sn, column] = is_open
    state.sent_ms[node.world, node.sn, column] = node.time_ms


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Look every ms, and tell an EN when the wait has crossed the threshold that matters."""
    node = seen.update[row]
    wait = wait_ms(node.sn, node.sn_state, state)
    for column in range(seen.en.shape[1]):
        tell = False
        if state.subset[node.sn, column]:
            was_open = state.open[node.world, node.sn, column]
            limit_ms = state.high_ms if was_open else state.low_ms
            now_open = wait <= limit_ms
            tell = now_open != was_open
            if not tell and overdue(seen, state, row, column):
                tell, now_open = True, wait <= state.high_ms
            if tell:
                note_status(seen, state, row, column, now_open)
        answers.send[row, column] = tell
    answers.interval_ms[row] = CHECK_MS


def forget(node: Any, state: Any) -> None:
    """An SN that comes back does not know what ENs take it for: it tells all of them that it is
    open (R38).
    """
    for column in range(state.open.shape[2]):
        state.open[node.world, node.sn, column] = False
        state.sent_ms[node.world, node.sn, column] = -np.inf


def bits(site: Site, low_ms: float, high_ms: float, keep: int) -> Bits:
    """What SNs begin with: every EN takes them to be open."""
    subset = en_subset(site, keep)
    channels = (site.worlds, *subset.shape)
    return Bits(
        low_ms=float(low_ms),
        high_ms=float(high_ms),
        longest_ms=float(site.tasks.deadline_ms[1]),
        largest_bytes=float(site.largest_reservation),
        sn_full_rate=site.sn.full_rate,
        subset=subset,
        open=np.ones(channels, np.bool_),
        sent_ms=np.full(channels, -np.inf),
    )


def dispatcher(site: Site, keep: int, caution: float) -> Dispatcher:
    """The rule at the ENs of a site."""
    own, subset = none_outstanding(site), sn_subset(site, keep)
    state = State(known_of(site), own, float(caution), subset, tie_draws(site))
    return RuleDispatcher(site, EnRule(decide, choose, hear), state)


def updater(site: Site, low_ms: float, high_ms: float, keep: int) -> Updater:
    """The rule at the SNs of a site."""
    return RuleUpdater(SnRule(send, encode, forget=forget), bits(site, low_ms, high_ms, keep), BIT)


class JoinBelowThreshold(Method):
    """SNs report when their wait crosses thresholds; a random SN of those below takes the task."""

    reference = (
        "Zhou et al., join below threshold: low-complexity heavy-traffic delay-optimal load"
        " balancing, 2017"
    )
    carries = BIT

    def __init__(
        self,
        high_ms: Positive = 30.0,
        low_ms: Positive = 20.0,
        keep: PositiveInt = 6,
        caution: Positive = CAUTION,
    ) -> None:
        if low_ms > high_ms:
            raise InputError(f"low_ms = {low_ms:g}: must be at most high_ms = {high_ms:g}")
        self.high_ms, self.low_ms = high_ms, low_ms
        self.keep, self.caution = keep, caution

    def dispatcher(self, site: Site) -> Dispatcher:
        """A random open SN."""
        return dispatcher(site, self.keep, self.caution)

    def updater(self, site: Site) -> Updater:
        """When the wait crosses a threshold."""
        return updater(site, self.low_ms, self.high_ms, self.keep)
