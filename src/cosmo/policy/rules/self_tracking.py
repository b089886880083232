"""`self-tracking`: the EN estimates the SNs' backlogs from its own traffic, and needs no update.

With a single EN and no other load, the SN holds nothing but the EN's own tasks; their sizes and
demands, the link and the SN's speed are known, so when each of them starts and finishes can be
worked out: first come, first served onto the slots that an SN has.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, NOTHING, Dispatcher, Method, Site
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import (
    Known,
    best_so_far,
    comes_first,
    first_slots,
    known_of,
    needed_bytes,
    remote_delay_ms,
    tie_draws,
    upload_ms,
)

Floats = NDArray[np.float64]


class Backlog(NamedTuple):
    """What ENs have sent to the SNs that they reach."""

    slot_free: Floats  # [world, EN, k, slot] when each slot will be done with what was sent to it
    finish: Floats  # [world, EN, k, entry] of tasks that may still be there
    reserved: Floats  # their bytes of storage
    paused_until: Floats  # [world, EN, k] until when nothing is sent there


class State(NamedTuple):
    """The backlog estimate, what the rule knows of the site, and random draws for ties."""

    known: Known
    backlog: Backlog
    draws: Floats  # [world, EN, task, k], for ties


def no_backlog(site: Site) -> Backlog:
    """Nothing has been sent yet."""
    reach = site.links.reach
    cells = site.worlds, *reach.shape
    entries = int(site.most_tasks(site.sn).max())
    return Backlog(
        slot_free=first_slots(site.sn.slots[reach], (site.worlds,)),
        finish=np.full((*cells, entries), -np.inf),
        reserved=np.zeros((*cells, entries)),
        paused_until=np.full(cells, -np.inf),
    )


def has_room(seen: Any, known: Any, backlog: Any, row: Any, column: Any) -> Any:
    """Whether an SN may be sent to, and should have storage and a place in its queue."""
    task, sn = seen.dispatch[row], seen.sn[row, column]
    if backlog.paused_until[task.world, task.en, column] > task.time_ms:
        return False
    reserved, held = 0.0, 0
    for entry in range(backlog.finish.shape[3]):
        if backlog.finish[task.world, task.en, column, entry] > task.time_ms:
            reserved += backlog.reserved[task.world, task.en, column, entry]
            held += 1
    free = known.sn_storage_bytes[sn] - reserved
    return free >= needed_bytes(known, task) and held < known.sn_queue[sn]


def earliest_slot(backlog: Any, task: Any, column: Any) -> Any:
    """The slot of an SN that should be free first."""
    found = 0
    for slot in range(1, backlog.slot_free.shape[3]):
        free = backlog.slot_free[task.world, task.en, column, slot]
        if free < backlog.slot_free[task.world, task.en, column, found]:
            found = slot
    return found


def faster_route(seen: Any, state: Any, row: Any) -> Any:
    """The fastest route with room and within the deadline, by the estimated backlogs; of several
    SNs that are equally fast, one at random.
    """
    known, backlog, task = state.known, state.backlog, seen.dispatch[row]
    best, least = best_so_far(seen, known, row)
    for column in range(seen.sn.shape[1]):
        if seen.sn[row, column] == NO_NODE:
            break
        upload = upload_ms(seen, known, row, column)
        slot = earliest_slot(backlog, task, column)
        free = backlog.slot_free[task.world, task.en, column, slot]
        wait = max(free - (task.time_ms + upload), 0.0)
        delay = remote_delay_ms(seen, known, row, column, upload, wait)
        if delay > task.deadline_ms:
            continue
        if not comes_first(seen, state, row, column, delay, best, least):
            continue
        if has_room(seen, known, backlog, row, column):
            best, least = column + 1, delay
    return best


def record(seen: Any, known: Any, backlog: Any, row: Any, action: Any) -> Any:
    """What was decided, whoever did; returns when the task should be done at its SN, in ms, or NaN
    if it is not sent to any.
    """
    if action == 0 or action > seen.sn.shape[1]:
        return np.nan
    task, column = seen.dispatch[row], action - 1
    world, en = task.world, task.en
    arrival = task.time_ms + upload_ms(seen, known, row, column)
    slot = earliest_slot(backlog, task, column)
    start = max(arrival, backlog.slot_free[world, en, column, slot])
    done = start + task.cycles / known.sn_speed[seen.sn[row, column]]
    backlog.slot_free[world, en, column, slot] = done
    # There was room for it, so not all entries are taken: the first to finish has done so.
    first = 0
    for entry in range(1, backlog.finish.shape[3]):
        if backlog.finish[world, en, column, entry] < backlog.finish[world, en, column, first]:
            first = entry
    backlog.finish[world, en, column, first] = done
    backlog.reserved[world, en, column, first] = needed_bytes(known, task)
    return done


def choose(seen: Any, state: Any, row: Any) -> Any:
    """Return the faster route that meets the deadline by the backlog estimate, else a rejection."""
    return faster_route(seen, state, row)


def note(seen: Any, state: Any, row: Any, action: Any) -> Any:
    """What was decided, whoever did; returns what `record` returns."""
    return record(seen, state.known, state.backlog, row, action)


def decide(seen: Any, state: Any, row: Any) -> Any:
    """Return what `choose` returns, and record the decision in the backlog estimate."""
    action = choose(seen, state, row)
    note(seen, state, row, action)
    return action


def dispatcher(site: Site) -> RuleDispatcher:
    """The rule at the ENs of a site."""
    state = State(known_of(site), no_backlog(site), tie_draws(site))
    return RuleDispatcher(site, EnRule(decide, choose, note=note), state)


class SelfTracking(Method):
    """No updates; the EN estimates the SN's backlog from what it has offloaded itself."""

    reference = "a rule of the CoSMO package"
    carries = NOTHING

    def dispatcher(self, site: Site) -> Dispatcher:
        """A backlog estimate for each world."""
        return dispatcher(site)
