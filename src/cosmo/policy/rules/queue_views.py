"""`lsq` and `sparse-jsq`: the SN with the shortest queue, by statuses that come now and then.

Both keep a view of every SN's queue length (tasks waiting and running), which own tasks make longer
and which a status sets anew; a task goes to the SN whose queue is shortest for its slots.

- `lsq`: S. Vargaftik, I. Keslassy and A. Orda, "LSQ: Load Balancing in Large-Scale Heterogeneous
  Systems With Multiple Dispatchers" (2020). Each dispatcher has a view of its own, and servers
  refresh the view of one dispatcher at a time. Here an SN tells the next EN every `interval_ms`
  (the paper: a random one), and results of own tasks shorten the view: an EN knows of them.
- `sparse-jsq`: M. van der Boor, S. Borst and J. van Leeuwaarden, "Hyper-Scalable JSQ with Sparse
  Feedback" (2019). A view is an upper bound: between statuses nothing shortens it. Here every SN
  tells all ENs every `interval_ms`, SNs one after another (the paper's asynchronous variant).

The papers have neither a local run nor deadlines: here a task runs at the EN if that is in time,
and is rejected if it would be late behind the shortest queue of tasks of mean demand.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import GIVEN_UP, REFUSED, REQUESTS, Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.rules.outstanding import (
    CAUTION,
    Outstanding,
    in_time,
    may_try,
    none_outstanding,
    note_answer,
    note_sent,
    queue_wait_ms,
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
    upload_ms,
)
from cosmo.policy.subsets import en_subset, sn_subset

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LENGTH = 1  # a status is one number: tasks in the node
ENTRIES = 64  # own tasks that are remembered for each SN, the latest of them


class State(NamedTuple):
    """Memory and parameters of the ENs' rule."""

    known: Known
    own: Outstanding
    caution: float
    subset: NDArray[np.bool_]  # [EN, k] the SNs that an EN uses
    results_shorten: bool  # else the view is an upper bound until the next status
    draws: Floats  # [world, EN, task, k], for ties
    next_entry: Ints  # [world, EN, k]
    task: Ints  # [world, EN, k, entry] own tasks, …
    arrival_ms: Floats  # … when they are at the SN …
    left_ms: Floats  # … and when they left it, as far as the EN knows; infinity: not yet


def length(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """Tasks in an SN by its last status, own ones that came later, and own ones that left later."""
    task, source = seen.dispatch[row], seen.status_ms[row, column]
    heard = source == source
    found = seen.status[row, column, 0] if heard else 0.0
    since_ms = source if heard else -np.inf
    for entry in range(ENTRIES):
        place = task.world, task.en, column, entry
        left_ms = state.left_ms[place]
        if state.arrival_ms[place] > since_ms:
            found += 1.0 if left_ms == np.inf else 0.0
        elif left_ms > since_ms and left_ms < np.inf:
            found -= 1.0
    return max(found, 0.0)


def choose(seen: Any, state: Any, row: Any) -> Any:
    """At the EN if that is surely in time, else at the SN with the shortest queue a slot, this task
    included.
    """
    known = state.known
    if surely_local(seen, known, row, state.caution):
        return 0
    best, least, ahead = reject(seen), np.inf, 0.0
    for column in range(reached(seen, row)):
        if not state.subset[seen.dispatch[row].en, column]:
            continue
        if not may_try(seen, state.own, row, column):
            continue
        queue = length(seen, state, row, column)
        per_slot = (queue + 1.0) / known.sn_slots[seen.sn[row, column]]
        if comes_first(seen, state, row, column, per_slot, best, least):
            best, least, ahead = column + 1, per_slot, queue
    if best != reject(seen):
        wait = queue_wait_ms(known, state.own, seen.sn[row, best - 1], ahead)
        if not in_time(seen, known, row, best - 1, wait):
            best = reject(seen)
    return or_local(seen, known, row, best)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the task that is sent."""
    action = choose(seen, state, row)
    note_sent(seen, state.own, row, action)
    if action >= 1 and action <= reached(seen, row):
        task, column = seen.dispatch[row], action - 1
        entry = state.next_entry[task.world, task.en, column] % ENTRIES
        place = task.world, task.en, column, entry
        state.task[place] = task.task
        state.arrival_ms[place] = task.time_ms + upload_ms(seen, state.known, row, column)
        state.left_ms[place] = np.inf
        state.next_entry[task.world, task.en, column] += 1
    return action


def hear(fact: Any, state: Any) -> None:
    """An own task has left its SN; a refused one was never in it."""
    note_answer(fact, state.own)
    if fact.action < 1 or fact.action > state.next_entry.shape[2] or fact.fate == GIVEN_UP:
        return
    column = fact.action - 1
    for entry in range(ENTRIES):
        place = fact.world, fact.en, column, entry
        if state.task[place] != fact.task:
            continue
        if fact.fate == REFUSED:
            state.arrival_ms[place] = -np.inf
        elif state.results_shorten:
            back_ms = state.known.result_ms[fact.en, column]
            state.left_ms[place] = fact.time_ms - back_ms
        state.task[place] = -1


class Turns(NamedTuple):
    """Memory and parameters of the SNs' rule."""

    interval_ms: float
    one_at_a_time: bool  # ENs take turns; else all receive it
    subset: NDArray[np.bool_]  # [SN, k] the ENs that use an SN
    users: Ints  # [SN] how many, at least 1
    turn: Ints  # [world, SN] whose turn it is


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status says how many tasks are in the node."""
    numbers[0] = own[REQUESTS]


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Every `interval_ms`, SNs one after another, to the next EN or to all."""
    node = seen.update[row]
    world, sn, sns = node.world, node.sn, state.turn.shape[1]
    answers.interval_ms[row] = state.interval_ms
    first = node.time_ms == 0.0
    if first:
        answers.interval_ms[row] = state.interval_ms * (sn + 1) / sns
    place = 0
    for column in range(seen.en.shape[1]):
        uses = state.subset[sn, column]
        theirs = not state.one_at_a_time or place == state.turn[world, sn] % state.users[sn]
        answers.send[row, column] = uses and theirs and not first
        place += 1 if uses else 0
    if not first:
        state.turn[world, sn] += 1


def forget(node: Any, state: Any) -> None:
    """Restart the SN's turn, as at the start of an episode."""
    state.turn[node.world, node.sn] = node.sn


class _QueueViews(Method):
    """The SN with the shortest queue by statuses and own tasks."""

    carries = LENGTH
    results_shorten = one_at_a_time = False

    def __init__(self, interval_ms: Positive, keep: PositiveInt, caution: Positive) -> None:
        self.interval_ms, self.keep, self.caution = interval_ms, keep, caution

    def dispatcher(self, site: Site) -> Dispatcher:
        """Views of the SNs' queues."""
        cells = (site.worlds, *site.links.reach.shape)
        entries = (*cells, ENTRIES)
        state = State(
            known=known_of(site),
            own=none_outstanding(site),
            caution=float(self.caution),
            subset=sn_subset(site, self.keep),
            results_shorten=self.results_shorten,
            draws=tie_draws(site),
            next_entry=np.zeros(cells, np.int64),
            task=np.full(entries, -1, np.int64),
            arrival_ms=np.full(entries, -np.inf),
            left_ms=np.full(entries, np.inf),
        )
        return RuleDispatcher(site, EnRule(decide, choose, hear), state)

    def updater(self, site: Site) -> Updater:
        """SNs that send their queue length at the interval, to their ENs in turn or to all."""
        subset = en_subset(site, self.keep)
        first = np.tile(np.arange(len(site.sn)), (site.worlds, 1))  # SNs begin with different ENs
        users = np.maximum(subset.sum(axis=1), 1)
        state = Turns(float(self.interval_ms), self.one_at_a_time, subset, users, first)
        return RuleUpdater(SnRule(send, encode, forget=forget), state, LENGTH)


class LocalShortestQueue(_QueueViews):
    """The shortest queue by each EN's own view; SNs refresh the view of one EN at a time."""

    reference = "Vargaftik et al., LSQ: load balancing with multiple dispatchers, 2020"
    results_shorten = one_at_a_time = True

    def __init__(
        self,
        interval_ms: Positive = 20.0,
        keep: PositiveInt = 12,
        caution: Positive = CAUTION,
    ) -> None:
        super().__init__(interval_ms, keep, caution)


class SparseJoinShortestQueue(_QueueViews):
    """The shortest queue by upper bounds that own tasks raise and rare statuses set anew."""

    reference = "van der Boor et al., Hyper-scalable JSQ with sparse feedback, 2019"

    def __init__(
        self,
        interval_ms: Positive = 10.0,
        keep: PositiveInt = 6,
        caution: Positive = CAUTION,
    ) -> None:
        super().__init__(interval_ms, keep, caution)
