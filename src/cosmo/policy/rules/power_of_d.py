"""`power-of-d` and `piggyback`: the best of a few SNs drawn at random, by their last status and
one's own traffic; updates for those ENs alone that use an SN, as messages or on results (R31).

Where many ENs go by the same stale status, all of them rush to the SN that looked best. An EN that
compares only d SNs drawn at random for each task, among the few that it uses, does not; and it
knows what it has sent since the status was made.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import IDLE, NO_NODE, RAW, STORAGE, WORK, Dispatcher, Method, Site, Updater
from cosmo.policy.draws import no_draws
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.rules.periodic import answer
from cosmo.policy.rules.run import EnRule, RuleDispatcher, RuleUpdater, SnRule
from cosmo.policy.rules.site import (
    Known,
    best_so_far,
    comes_first,
    draw_of,
    known_of,
    needed_bytes,
    raw_status,
    remote_delay_ms,
    upload_ms,
)
from cosmo.policy.subsets import en_subset, sn_subset

Floats = NDArray[np.float64]

ONE_NUMBER = 1  # a status of one number: the wait for a slot
ENTRIES = 64  # own tasks that are remembered for each SN, the latest of them


class State(NamedTuple):
    """Memory and parameters of the ENs' rule."""

    known: Known
    d: int
    numbers: int  # that a status carries
    longest_ms: float  # deadline
    subset: NDArray[np.bool_]  # [EN, k] the SNs that an EN uses
    draws: Floats  # [world, EN, task, k]
    next_entry: NDArray[np.int64]  # [world, EN, k]
    arrival: Floats  # [world, EN, k, entry] of own tasks at the SN
    cycles: Floats
    reserved: Floats


def drawn(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """Whether a task may go to an SN: one of the d that were drawn of those that its EN uses."""
    task = seen.dispatch[row]
    if not state.subset[task.en, column]:
        return False
    earlier, own = 0, draw_of(state, task, column)
    for other in range(state.draws.shape[3]):
        if state.subset[task.en, other] and draw_of(state, task, other) < own:
            earlier += 1
    return earlier < state.d


def expected(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """The wait at an SN in ms and whether there is room, by its last status, what has been done
    since, and what this EN has sent since.
    """
    known, task = state.known, seen.dispatch[row]
    world, en, arrival = task.world, task.en, state.arrival
    source = seen.status_ms[row, column]
    heard = source == source
    since = source if heard else 0.0
    later, cycles, reserved = 0, 0.0, 0.0
    for entry in range(ENTRIES):
        if arrival[world, en, column, entry] > since:
            later += 1
            cycles += state.cycles[world, en, column, entry]
            reserved += state.reserved[world, en, column, entry]
    rate, age = known.sn_full_rate[seen.sn[row, column]], task.time_ms - since
    own_ms = cycles / rate
    if state.numbers == ONE_NUMBER:
        wait = seen.status[row, column, 0]
        return max(wait + own_ms - age, 0.0), not (heard and wait >= state.longest_ms)
    idle = raw_status(seen, known, row, column, IDLE) > later
    work_ms = raw_status(seen, known, row, column, WORK) / rate + own_ms - age
    free = raw_status(seen, known, row, column, STORAGE) - reserved
    return 0.0 if idle else max(work_ms, 0.0), free >= needed_bytes(known, task)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """The fastest of local and d drawn SNs that should be in time, else reject; remembered."""
    known, task = state.known, seen.dispatch[row]
    best, least = best_so_far(seen, known, row)
    for column in range(seen.sn.shape[1]):
        if seen.sn[row, column] == NO_NODE:
            break
        if not drawn(seen, state, row, column):
            continue
        wait, room = expected(seen, state, row, column)
        upload = upload_ms(seen, known, row, column)
        delay = remote_delay_ms(seen, known, row, column, upload, wait)
        fits = room and delay <= task.deadline_ms
        if fits and comes_first(seen, state, row, column, delay, best, least):
            best, least = column + 1, delay
    if 0 < best <= seen.sn.shape[1]:
        remember(seen, state, row, best - 1)
    return best


def remember(seen: Any, state: Any, row: Any, column: Any) -> None:
    """A task is sent to an SN."""
    task = seen.dispatch[row]
    world, en = task.world, task.en
    entry = state.next_entry[world, en, column] % ENTRIES
    arrival = task.time_ms + upload_ms(seen, state.known, row, column)
    state.arrival[world, en, column, entry] = arrival
    state.cycles[world, en, column, entry] = task.cycles
    state.reserved[world, en, column, entry] = needed_bytes(state.known, task)
    state.next_entry[world, en, column] += 1


class UpdateState(NamedTuple):
    """Memory and parameters of the SNs' rule."""

    numbers: int
    longest_ms: float  # deadline
    largest_bytes: float  # that a task may reserve
    sn_full_rate: Floats  # [SN]
    subset: NDArray[np.bool_]  # [SN, k] the ENs that use an SN
    interval_ms: float  # between updates, checks, or statuses that ride
    threshold_ms: float
    sent_wait_ms: Floats  # [world, SN, k] the wait in the last status, in ms
    sent_at: Floats
    ridden_at: Floats  # [world, SN, EN] when a status last rode on a result


def wait_ms(sn: Any, own: Any, state: Any) -> Any:
    """The wait that a new task would have, in ms; the longest deadline where none fits in."""
    if own[STORAGE] < state.largest_bytes:
        return state.longest_ms
    if own[IDLE] > 0:
        return 0.0
    return own[WORK] / state.sn_full_rate[sn]


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status is one number, the wait for a slot, or the raw state."""
    if state.numbers == ONE_NUMBER:
        numbers[0] = wait_ms(sn, own, state)
    else:
        for field in range(RAW):
            numbers[field] = own[field]


def send_regularly(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """To all ENs that use the SN, every `interval_ms`."""
    node = seen.update[row]
    for column in range(seen.en.shape[1]):
        answers.send[row, column] = state.subset[node.sn, column]
    answers.interval_ms[row] = state.interval_ms


def send_when_moved(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Look every `interval_ms`, and tell an EN when the wait has moved by `threshold_ms` from what
    the EN must expect: that of the last status, less the time since.
    """
    node = seen.update[row]
    world, sn, now = node.world, node.sn, node.time_ms
    wait = wait_ms(sn, node.sn_state, state)
    for column in range(seen.en.shape[1]):
        send = False
        if state.subset[sn, column]:
            expect = state.sent_wait_ms[world, sn, column]
            # An SN that had no room is not expected to have some by now, unless it says so.
            if expect < state.longest_ms:
                expect = max(expect - (now - state.sent_at[world, sn, column]), 0.0)
            send = abs(wait - expect) > state.threshold_ms
        if send:
            state.sent_wait_ms[world, sn, column] = wait
            state.sent_at[world, sn, column] = now
        answers.send[row, column] = send
    answers.interval_ms[row] = state.interval_ms


def forget(node: Any, state: Any) -> None:
    """No EN has received a status."""
    for column in range(state.sent_wait_ms.shape[2]):
        state.sent_wait_ms[node.world, node.sn, column] = 0.0
        state.sent_at[node.world, node.sn, column] = node.up_since_ms


def send_nothing(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Statuses ride on results alone."""
    answer(answers, row, False, np.inf)


def ride(result: Any, state: Any) -> Any:
    """Whether the last status that rode to this EN is `interval_ms` old. Results go to whom the
    tasks came from, so that only ENs that use the SN receive it.
    """
    last = state.ridden_at[result.world, result.sn, result.en]
    if last >= result.up_since_ms and result.time_ms - last < state.interval_ms:
        return False
    state.ridden_at[result.world, result.sn, result.en] = result.time_ms
    return True


def dispatcher(site: Site, d: int, keep: int, numbers: int) -> Dispatcher:
    """The rule at the ENs of a site."""
    cells = (site.worlds, *site.links.reach.shape)
    entries = (*cells, ENTRIES)
    state = State(
        known=known_of(site),
        d=int(d),
        numbers=int(numbers),
        longest_ms=float(site.tasks.deadline_ms[1]),
        subset=sn_subset(site, keep),
        draws=no_draws(site, cells[2]),
        next_entry=np.zeros(cells, np.int64),
        arrival=np.full(entries, -np.inf),
        cycles=np.zeros(entries),
        reserved=np.zeros(entries),
    )
    return RuleDispatcher(site, EnRule(decide), state)


def updater(
    site: Site, rule: SnRule, keep: int, numbers: int, interval_ms: float, threshold_ms: float = 0.0
) -> Updater:
    """A rule at the SNs of a site."""
    subset = en_subset(site, keep)
    channels = site.worlds, *subset.shape
    state = UpdateState(
        numbers=int(numbers),
        longest_ms=float(site.tasks.deadline_ms[1]),
        largest_bytes=float(site.largest_reservation),
        sn_full_rate=site.sn.full_rate,
        subset=subset,
        interval_ms=float(interval_ms),
        threshold_ms=float(threshold_ms),
        sent_wait_ms=np.zeros(channels),
        sent_at=np.zeros(channels),
        ridden_at=np.full((site.worlds, len(site.sn), len(site.en)), -np.inf),
    )
    return RuleUpdater(rule, state, numbers)


REGULAR = SnRule(send_regularly, encode)
MOVED = SnRule(send_when_moved, encode, forget=forget)
RIDING = SnRule(send_nothing, encode, ride)


class _OfSubset(Method):
    """The best of `d` SNs drawn at random of the `keep` that an EN uses."""

    def __init__(self, d: PositiveInt, keep: PositiveInt, numbers: PositiveInt) -> None:
        if numbers not in (ONE_NUMBER, RAW):
            raise InputError(f"numbers = {numbers}: must be {ONE_NUMBER} or {RAW}")
        self.d, self.keep, self.carries = d, keep, numbers

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return dispatcher(site, self.d, self.keep, self.carries)


class PowerOfD(_OfSubset):
    """The best of `d` random SNs from a subset; only these send their status to the EN."""

    reference = "Mitzenmacher, The power of two choices in randomized load balancing, 2001"
    plain = (
        "The edge node compares a few service nodes, drawn at random for each task, and takes the"
        " one with the shortest wait; only a subset of them sends it a status."
    )

    def __init__(
        self,
        d: PositiveInt = 2,
        keep: PositiveInt = 3,
        numbers: PositiveInt = ONE_NUMBER,
        threshold_ms: Positive = 15.0,
        interval_ms: Positive | None = None,
        check_ms: Positive = 1.0,
    ) -> None:
        super().__init__(d, keep, numbers)
        self.threshold_ms, self.interval_ms, self.check_ms = threshold_ms, interval_ms, check_ms

    def updater(self, site: Site) -> Updater:
        """When the wait has moved by `threshold_ms`; or every `interval_ms`, if that is given."""
        if self.interval_ms is not None:
            return updater(site, REGULAR, self.keep, self.carries, self.interval_ms)
        return updater(site, MOVED, self.keep, self.carries, self.check_ms, self.threshold_ms)


class Piggyback(_OfSubset):
    """As `power-of-d`, with statuses that are attached to results."""

    reference = "load reports on responses, as in ORCA (Envoy, gRPC)"

    def __init__(
        self,
        d: PositiveInt = 2,
        keep: PositiveInt = 3,
        numbers: PositiveInt = ONE_NUMBER,
        gap_ms: Positive = 1.0,
    ) -> None:
        super().__init__(d, keep, numbers)
        self.gap_ms = gap_ms

    def updater(self, site: Site) -> Updater:
        """On results, `gap_ms` apart at least."""
        return updater(site, RIDING, self.keep, self.carries, self.gap_ms)
