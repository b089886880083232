"""The event list: a binary heap ordered by (time, kind, order of scheduling), as R5 says.

`CONTRACT.md` beside this file says what the rest of the kernel may assume.
"""

from cosmo.world.compiled import compiled
from cosmo.world.records import JOURNAL_ROOM

FINISH = 0  # subject: slot
TASK_AT_SN = 1  # subject: task
RESULT_AT_EN = 2  # subject: task
STATUS_AT_EN = 3  # subject: message
ACK_AT_SN = 4  # subject: message
EN_DECISION = 5  # subject: task
SN_DECISION = 6  # subject: SN
CHANNEL_REQUEST = 7  # subject: task whose UE comes back into range
NOTICE_AT_EN = 8  # subject: task that an SN has refused (R27)
DEADLINE = 9  # subject: offloaded task whose deadline passes (R38)

# R5, for events at the same instant: finish, delivery, deadline, EN decision, SN decision,
# generation.
KIND = (0, 1, 1, 1, 1, 3, 4, 5, 1, 2)
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
def note(state, w, what, subject, value, now):
    """Write down what happens, in worlds that keep a journal."""
    if state.journal.shape[1] == 0:
        return
    world = state.worlds[w]
    row = state.journal[w, world.noted]
    world.noted += 1
    row.time = now
    row.value = value
    row.what = what
    row.subject = subject


@compiled
def journal_is_full(state, w):
    """Whether an answer and an event might not find room in the journal."""
    kept = state.journal.shape[1]
    return kept > 0 and state.worlds[w].noted > kept - JOURNAL_ROOM


@compiled
def _find(state, w, what, subject):
    """The place of an event in the list; the size of the list if it is not there."""
    heap, count = state.events[w], state.worlds[w].events
    i = 0
    while i < count and (heap[i].what != what or heap[i].subject != subject):
        i += 1
    return i


@compiled
def _settle_into(heap, count, i, time, order, what, subject):
    """An event takes a place whose own one is gone, and moves up or down from there."""
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
    place.what = what
    place.subject = subject


@compiled
def move_finish(state, w, slot, time):
    """A slot's finish moves to another time, and keeps its place among equals (R5, R37)."""
    i = _find(state, w, FINISH, slot)
    heap = state.events[w]
    _settle_into(heap, state.worlds[w].events, i, time, heap[i].order, FINISH, slot)


@compiled
def remove(state, w, what, subject):
    """Take an event off the list, if it is there: it will never happen (R38)."""
    i = _find(state, w, what, subject)
    world = state.worlds[w]
    if i == world.events:
        return
    world.events -= 1
    last = world.events
    if i < last:
        heap = state.events[w]
        moved = heap[last]
        time, order = moved.time, moved.order
        _settle_into(heap, last, i, time, order, moved.what, moved.subject)


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
