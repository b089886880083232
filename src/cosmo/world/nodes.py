"""Nodes: slots, storage and a first-come-first-served queue (R9 to R12)."""

import numpy as np

from cosmo.node.observation import IDLE, LATENCY, REQUESTS, STORAGE, WAIT, WORK
from cosmo.world.compiled import compiled
from cosmo.world.events import FINISH, move_finish, note, push
from cosmo.world.records import BEGAN, LEFT, NO_TASK, REACHED


@compiled
def reservation(constants, input_bytes):
    """R9: bytes of storage that a task holds from acceptance until it finishes."""
    return max(input_bytes, constants.settings[0].reservation_floor)


@compiled
def has_room(constants, state, w, node, input_bytes, reserved_ahead, places_ahead):
    """R10: would the node accept this input now, after what is on its way ahead of it?"""
    here = state.nodes[w, node]
    running = constants.node_slots[node] - here.idle
    return (
        here.free_storage - reserved_ahead >= reservation(constants, input_bytes)
        and here.waiting + running + places_ahead < constants.node_queue[node]
    )


@compiled
def seen_cycles(state, w, task):
    """The cycles of a task that nodes see (R35)."""
    if state.worlds[w].unsure:
        return state.seen_cycles[task]
    return state.tasks[task].cycles


@compiled
def rate_of(constants, state, w, node):
    """Cycles per ms of one slot, at the present speed (R37)."""
    return constants.node_rate[node] * state.nodes[w, node].speed


@compiled
def change_speed(constants, state, w, node, factor, now):
    """R37: running tasks go on at the new speed with what is left of them."""
    here = state.nodes[w, node]
    if factor == here.speed:
        return
    for slot in range(constants.first_slot[node], constants.first_slot[node + 1]):
        running = state.slots[w, slot]
        if running.task != NO_TASK:
            running.finish = now + (running.finish - now) * here.speed / factor
            move_finish(state, w, slot, running.finish)
    here.speed = factor


@compiled
def seen_remaining(constants, state, w, slot, now):
    """What a node believes to be left of a slot's running task, in cycles: what it sees of it less
    what has been executed, and not below 0 (R12, R35).
    """
    here = state.slots[w, slot]
    left = (here.finish - now) * rate_of(constants, state, w, constants.slot_node[slot])
    if state.worlds[w].unsure:
        more = state.seen_cycles[here.task] - state.tasks[here.task].cycles
        return max(left + more, 0.0)
    return left


@compiled
def _start(constants, state, w, node, task, now):
    slot = constants.first_slot[node]
    while state.slots[w, slot].task != NO_TASK:
        slot += 1
    here = state.slots[w, slot]
    here.task = task
    here.finish = now + state.tasks[task].cycles / rate_of(constants, state, w, node)
    state.nodes[w, node].idle -= 1
    push(state, w, here.finish, FINISH, slot)
    note(state, w, BEGAN, task, 0.0, now)


@compiled
def admit(constants, state, w, node, task, now):
    """A task reaches a node: R10 and R11. Returns whether the node took it."""
    item = state.tasks[task]
    if not has_room(constants, state, w, node, item.input_bytes, 0.0, 0):
        return False
    here = state.nodes[w, node]
    here.free_storage -= reservation(constants, item.input_bytes)
    item.clock = now
    note(state, w, REACHED, task, 0.0, now)
    if here.idle > 0:
        _start(constants, state, w, node, task, now)
        return True
    item.next = NO_TASK
    if here.waiting == 0:
        here.head = task
    else:
        state.tasks[here.tail].next = task
    here.tail = task
    here.waiting += 1
    here.waiting_cycles += seen_cycles(state, w, task)
    return True


@compiled
def clear(constants, state, w, node):
    """A node has no task any more: all slots, storage and queue are free (R38)."""
    here = state.nodes[w, node]
    for slot in range(constants.first_slot[node], constants.first_slot[node + 1]):
        state.slots[w, slot].task = NO_TASK
        state.slots[w, slot].finish = np.inf
    here.idle = constants.node_slots[node]
    here.free_storage = constants.node_storage[node]
    here.waiting = 0
    here.waiting_cycles = 0.0
    here.latency = 0.0


@compiled
def complete(constants, state, w, slot, now):
    """A slot's task finishes: room is given back and the queue moves on. Returns the task."""
    node = constants.slot_node[slot]
    here = state.nodes[w, node]
    done = state.slots[w, slot].task
    state.slots[w, slot].task = NO_TASK
    state.slots[w, slot].finish = np.inf
    here.idle += 1
    note(state, w, LEFT, done, 0.0, now)
    latency = now - state.tasks[done].clock
    weight = constants.settings[0].latency_weight if here.latency > 0.0 else 1.0
    here.latency += weight * (latency - here.latency)
    here.free_storage += reservation(constants, state.tasks[done].input_bytes)
    if here.waiting > 0:
        first = here.head
        here.head = state.tasks[first].next
        here.waiting -= 1
        here.waiting_cycles -= seen_cycles(state, w, first)
        if here.waiting == 0:
            here.waiting_cycles = 0.0
        _start(constants, state, w, node, first, now)
    elif here.idle == constants.node_slots[node]:
        here.free_storage = constants.node_storage[node]  # an empty node forgets rounding errors
    return done


@compiled
def write_state(constants, state, w, node, now, out):
    """R12: idle slots, wait of the head of the queue, work outstanding, free storage; and more.

    Work is what takes as long at the nominal speed as what is left takes at the present one (R37).
    """
    here = state.nodes[w, node]
    out[IDLE] = here.idle
    out[WAIT] = now - state.tasks[here.head].clock if here.waiting > 0 else 0.0
    cycles = here.waiting_cycles
    for slot in range(constants.first_slot[node], constants.first_slot[node + 1]):
        if state.slots[w, slot].task != NO_TASK:
            cycles += seen_remaining(constants, state, w, slot, now)
    out[WORK] = cycles / here.speed
    out[STORAGE] = here.free_storage
    out[REQUESTS] = here.waiting + constants.node_slots[node] - here.idle
    out[LATENCY] = here.latency
