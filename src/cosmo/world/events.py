"""The event list: a binary heap ordered by (time, kind, order of scheduling), as R5 says.

`CONTRACT.md` beside this file says what the rest of the kernel may assume.
"""

from cosmo.world.compiled import compiled

FINISH = 0  # subject: slot
TASK_AT_SN = 1  # subject: task
RESULT_AT_EN = 2  # subject: task
STATUS_AT_EN = 3  # subject: message
ACK_AT_SN = 4  # subject: message
EN_DECISION = 5  # subject: task
SN_DECISION = 6  # subject: SN
CHANNEL_REQUEST = 7  # subject: task whose UE comes back into range
NOTICE_AT_EN = 8  # subject: task that an SN has refused (R27)

# R5, for events at the same instant: finish, delivery, EN decision, SN decision, generation.
KIND = (0, 1, 1, 1, 1, 2, 3, 4, 1)
KIND_SHIFT = 48  # leaves room for more events than any episode schedules


@compiled
def _before(a, b):
    return a.time < b.time or (a.time == b.time and a.order < b.order)


@compiled
def push(state, w, time, what, subject):
    """Schedule an event; the caller has made sure that there is room."""
    world = state.worlds[w]
    heap = state.events[w]
    i = world.events
    world.events = i + 1
    order = (KIND[what] << KIND_SHIFT) | world.sequence
    world.sequence += 1
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.order < order):
            break
        heap[i] = above
        i = parent
    place = heap[i]
    place.time = time
    place.order = order
    place.what = what
    place.subject = subject


@compiled
def move_finish(state, w, slot, time):
    """A slot's finish moves to another time, and keeps its place among equals (R5, R37)."""
    heap = state.events[w]
    count = state.worlds[w].events
    i = 0
    while heap[i].what != FINISH or heap[i].subject != slot:
        i += 1
    order = heap[i].order
    while i > 0:
        parent = (i - 1) >> 1
        above = heap[parent]
        if above.time < time or (above.time == time and above.order < order):
            break
        heap[i] = above
        i = parent
    child = 2 * i + 1
    while child < count:
        if child + 1 < count and _before(heap[child + 1], heap[child]):
            child += 1
        below = heap[child]
        if time < below.time or (time == below.time and order < below.order):
            break
        heap[i] = below
        i = child
        child = 2 * i + 1
    place = heap[i]
    place.time = time
    place.order = order
    place.what = FINISH
    place.subject = slot


@compiled
def pop(state, w):
    """Take the first event off; returns (time, what, subject)."""
    world = state.worlds[w]
    heap = state.events[w]
    first = heap[0]
    time, what, subject = first.time, first.what, first.subject
    last = world.events - 1
    world.events = last
    if last > 0:
        moved = heap[last]
        i = 0
        child = 1
        while child < last:
            if child + 1 < last and _before(heap[child + 1], heap[child]):
                child += 1
            if not _before(heap[child], moved):
                break
            heap[i] = heap[child]
            i = child
            child = 2 * i + 1
        heap[i] = moved
    return time, what, subject
