"""`jiq`: join the idle queue. An SN with idle slots offers them to one EN, which uses them up.

After Y. Lu, Q. Xie, G. Kliot, A. Geller, J. Larus and A. Greenberg, "Join-Idle-Queue: A Novel Load
Balancing Algorithm for Dynamically Scalable Web Services" (2011). A server that becomes idle joins
the idle queue of one dispatcher. A dispatcher sends a task to a server of its idle queue, which
leaves the queue, or to a random server if the queue is empty.

Differences to the paper: an SN has several slots. Whenever more are idle than it has offered, it
offers its idle slots, divided by the ENs that reach it and at least one, to the next EN (the paper:
a random dispatcher). A task runs at the EN if that is in time; it is rejected if it would be late
even on idle SNs.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, NO_NODE, Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.outstanding import (
    CAUTION,
    Outstanding,
    hear,
    in_time,
    may_try,
    none_outstanding,
    note_sent,
)
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

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OFFER = 1  # a status is one number: how many slots are offered
CHECK_MS = 1.0


class State(NamedTuple):
    """Memory and parameters of the ENs' rule."""

    known: Known
    own: Outstanding
    caution: float
    draws: Floats  # [world, EN, task, k]
    offer_ms: Floats  # [world, EN, k] which offer was used last, by its time
    used: Floats  # [world, EN, k] and how many slots of it


def unused(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """How many slots an SN has offered that this EN has not used."""
    task, source = seen.dispatch[row], seen.status_ms[row, column]
    if source != source:  # NaN
        return 0.0
    used = 0.0
    if state.offer_ms[task.world, task.en, column] == source:
        used = state.used[task.world, task.en, column]
    return max(seen.status[row, column, 0] - used, 0.0)


def choose(seen: Any, state: Any, row: Any) -> Any:
    """At the EN if that is surely in time, else at a random SN with an offered slot, else any."""
    if surely_local(seen, state.known, row, state.caution):
        return 0
    best, least = reject(seen), np.inf
    for column in range(reached(seen, row)):
        if not may_try(seen, state.own, row, column):
            continue
        if not in_time(seen, state.known, row, column, 0.0):
            continue
        rank = 0.0 if unused(seen, state, row, column) > 0.0 else 1.0
        if comes_first(seen, state, row, column, rank, best, least):
            best, least = column + 1, rank
    return or_local(seen, state.known, row, best)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """The same; an offered slot is used up."""
    action = choose(seen, state, row)
    note_sent(seen, state.own, row, action)
    if action >= 1 and action <= reached(seen, row):
        task, column = seen.dispatch[row], action - 1
        source = seen.status_ms[row, column]
        if unused(seen, state, row, column) > 0.0:
            if state.offer_ms[task.world, task.en, column] != source:
                state.used[task.world, task.en, column] = 0.0
            state.offer_ms[task.world, task.en, column] = source
            state.used[task.world, task.en, column] += 1.0
    return action


class Offers(NamedTuple):
    """Memory and parameters of the SNs' rule."""

    ens: Ints  # [SN] that reach it
    turn: Ints  # [world, SN] offers so far: ENs take turns
    offered: Floats  # [world, SN] idle slots that have been offered


def share(sn: Any, own: Any, state: Any) -> Any:
    """How many idle slots an SN offers to one EN."""
    idle = own[IDLE]
    return max(idle // state.ens[sn], min(idle, 1.0))


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status says how many slots it offers."""
    numbers[0] = share(sn, own, state)


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Look every ms, and offer what has become idle since the last offers, to each EN once."""
    node = seen.update[row]
    world, sn = node.world, node.sn
    idle, ens = node.sn_state[IDLE], state.ens[sn]
    for column in range(seen.en.shape[1]):
        answers.send[row, column] = False
    offered = state.offered[world, sn]
    for _turn in range(ens):
        if offered >= idle:
            break
        answers.send[row, state.turn[world, sn] % ens] = True
        state.turn[world, sn] += 1
        offered += share(sn, node.sn_state, state)
    state.offered[world, sn] = min(offered, idle)
    answers.interval_ms[row] = CHECK_MS


def forget(node: Any, state: Any) -> None:
    """Nothing has been offered."""
    state.turn[node.world, node.sn] = node.sn
    state.offered[node.world, node.sn] = 0.0


class JoinIdleQueue(Method):
    """SNs offer idle slots to one EN at a time; tasks take an offered slot, else any SN."""

    reference = "Lu et al., Join-Idle-Queue, 2011"
    carries = OFFER

    def __init__(self, caution: Positive = CAUTION) -> None:
        self.caution = caution

    def dispatcher(self, site: Site) -> Dispatcher:
        """A random SN with an offered slot."""
        cells = (site.worlds, *site.links.reach.shape)
        state = State(
            known=known_of(site),
            own=none_outstanding(site),
            caution=float(self.caution),
            draws=tie_draws(site),
            offer_ms=np.full(cells, np.nan),
            used=np.zeros(cells),
        )
        return RuleDispatcher(site, EnRule(decide, choose, hear), state)

    def updater(self, site: Site) -> Updater:
        """When slots become idle."""
        ens = (site.links.reached_by[0] != NO_NODE).sum(axis=1)
        channels = site.worlds, len(site.sn)
        first = np.tile(np.arange(len(site.sn)), (site.worlds, 1))  # SNs begin with different ENs
        state = Offers(ens.astype(np.int64), first, np.zeros(channels))
        return RuleUpdater(SnRule(send, encode, forget=forget), state, OFFER)
