"""What a task's delay would be on each route, from the true state (R15).

Used for labels, for the yardstick `full-information` and for training; never by a policy that
could be deployed. Nothing that comes later can delay a task at a first-come-first-served node, so
for a single EN without background load these estimates come true. An SN has room if it has so for
the task and for those on their way ahead of it, as if they were there already.
"""

import numpy as np

from cosmo.world.compiled import compiled
from cosmo.world.links import DOWN, UP, arrival_after_start, rate_at
from cosmo.world.nodes import has_room, rate_of, reservation, seen_cycles, seen_remaining
from cosmo.world.records import NO_TASK


@compiled
def _earliest(free):
    best = 0
    for k in range(1, free.size):
        if free[k] < free[best]:
            best = k
    return best


@compiled
def _slots_after_queue(constants, state, w, node, now, free):
    """When each slot of a node will have done its running and waiting tasks."""
    rate = rate_of(constants, state, w, node)
    for k in range(free.size):
        slot = state.slots[w, constants.first_slot[node] + k]
        free[k] = slot.finish if slot.task != NO_TASK else now
    here = state.nodes[w, node]
    task = here.head
    for _ in range(here.waiting):
        free[_earliest(free)] += state.tasks[task].cycles / rate
        task = state.tasks[task].next


@compiled
def seen_wait(constants, state, w, node, now):
    """How long a task would wait at its EN as the EN itself knows, by the cycles that it sees."""
    free = state.scratch[w, : constants.node_slots[node]]
    rate = rate_of(constants, state, w, node)
    for k in range(free.size):
        slot = constants.first_slot[node] + k
        free[k] = 0.0
        if state.slots[w, slot].task != NO_TASK:
            left = seen_remaining(constants, state, w, slot, now)
            free[k] = left / rate
    here = state.nodes[w, node]
    task = here.head
    for _ in range(here.waiting):
        free[_earliest(free)] += seen_cycles(state, w, task) / rate
        task = state.tasks[task].next
    return free[_earliest(free)]


@compiled
def local_route(constants, state, w, task, now):
    """If the task ran on its EN: its delay from generation, and whether the EN has room."""
    item = state.tasks[task]
    free = state.scratch[w, : constants.node_slots[item.node]]
    _slots_after_queue(constants, state, w, item.node, now, free)
    start = max(now, free[_earliest(free)])
    delay = start + item.cycles / rate_of(constants, state, w, item.node) - item.generated
    return delay, has_room(constants, state, w, np.int64(item.node), item.input_bytes, 0.0, 0)


@compiled
def offload_route(constants, state, w, task, link, now, behind_all):
    """If the task were offloaded: its delay from generation, and whether the SN has room for it
    and for the tasks that are on their way ahead of it.

    With `behind_all` it would let all pass that are on their way, also those that it would overtake
    and might make late (R40).

    Stops early with a lower bound of the delay when even an idle SN would be too late, so that a
    long backlog on the link costs nothing. An SN that is down is no route (R38).
    """
    fixed = constants.settings[0]
    item = state.tasks[task]
    sn = constants.link_sn[link]
    node = fixed.ens + sn
    if not state.nodes[w, node].up:
        return np.inf, False
    speed = rate_of(constants, state, w, node)
    backlog = state.links[w, link]
    rate = rate_at(constants, state, w, link, UP, now)
    arrival = arrival_after_start(
        constants, link, item.input_bytes, max(now, backlog.up_free), rate
    )
    service = item.cycles / speed
    down = rate_at(constants, state, w, link, DOWN, now)
    result = arrival_after_start(constants, link, fixed.result_bytes, 0.0, down)
    idle_delay = arrival + service + result - item.generated
    if idle_delay > item.deadline:
        return idle_delay, False
    free = state.scratch[w, : constants.node_slots[node]]
    _slots_after_queue(constants, state, w, node, now, free)
    reserved, places = 0.0, 0
    task = state.services[w, sn].flight_head
    while task != NO_TASK and (behind_all or state.tasks[task].clock <= arrival):
        ahead = state.tasks[task]
        k = _earliest(free)
        free[k] = max(ahead.clock, free[k]) + ahead.cycles / speed
        reserved += reservation(constants, ahead.input_bytes)
        places += 1
        task = ahead.next
    done = max(arrival, free[_earliest(free)]) + service
    delay = max(done, backlog.down_free) + result - item.generated
    return delay, has_room(constants, state, w, node, item.input_bytes, reserved, places)


@compiled
def foresee(constants, state, w, task, now, behind_all, estimate, feasible):
    """Fill the estimates and the feasibility of all routes; returns whether there is a feasible
    one. Routes to SNs that the EN does not reach never end.
    """
    deadline, en = state.tasks[task].deadline, state.tasks[task].node
    first, end = constants.first_link[en], constants.first_link[en + 1]
    some = False
    for route in range(1 + end - first):
        if route == 0:
            delay, fits = local_route(constants, state, w, task, now)
        else:
            link = first + route - 1
            delay, fits = offload_route(constants, state, w, task, link, now, behind_all)
        estimate[route] = delay
        feasible[route] = fits and delay <= deadline
        some = some or feasible[route]
    for route in range(1 + end - first, estimate.size):
        estimate[route] = np.inf
        feasible[route] = False
    return some
