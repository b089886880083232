"""What becomes of a task: its outcome for the record, and what its EN hears of it (R29), each once.

The two are apart: the outcome of a refused task is final before its notice arrives (R27), and an EN
that waits in vain stops waiting at the deadline (R38).
"""

from cosmo.node.observation import DONE, EXPIRED
from cosmo.world.compiled import compiled
from cosmo.world.records import EXPIRED_THERE, FP, HEARD, LOST_THERE, REFUSED_THERE, TP
from cosmo.world.turns import FEEDBACK_ROWS, SETTLED_ROWS


@compiled
def own_number(constants, state, w, task):
    """The number of a task among those of its EN (R41)."""
    if constants.settings[0].ens > 1:
        return state.own_number[task]
    return task - state.worlds[w].first_task


@compiled
def settle(state, turn, w, task, outcome, now):
    """A task's outcome becomes final: for labels, rewards and the record, not for the nodes."""
    item = state.tasks[task]
    item.outcome = outcome
    item.clock = now
    told = turn.settled[turn.counts[SETTLED_ROWS]]
    turn.counts[SETTLED_ROWS] += 1
    told.world = w
    told.task = task - state.worlds[w].first_task
    told.en = item.node
    told.action = item.action
    told.outcome = outcome
    told.time_ms = now


@compiled
def tell(constants, state, turn, w, task, fate, in_time, now):
    """An EN hears what became of a task of its own, unless it has stopped waiting for that."""
    item = state.tasks[task]
    if item.marks & HEARD:
        return
    item.marks |= HEARD
    told = turn.seen.feedback[turn.counts[FEEDBACK_ROWS]]
    turn.counts[FEEDBACK_ROWS] += 1
    told.world = w
    told.task = own_number(constants, state, w, task)
    told.en = item.node
    told.action = item.action
    told.fate = fate
    told.in_time = in_time
    told.time_ms = now


@compiled
def done(constants, state, turn, w, task, now):
    """The EN has the result: the outcome is final, and known to it."""
    item = state.tasks[task]
    in_time = now - item.generated <= item.deadline
    settle(state, turn, w, task, TP if in_time else FP, now)
    tell(constants, state, turn, w, task, DONE, in_time, now)


@compiled
def refuse(state, turn, w, task, now):
    """R10: a false positive at this moment."""
    state.tasks[task].marks |= REFUSED_THERE
    settle(state, turn, w, task, FP, now)


@compiled
def lose(state, turn, w, task, now):
    """R38: a false positive, now or, if that is later, at its deadline (`expire`); nobody says so.

    An EN has always heard of a task whose deadline has passed.
    """
    item = state.tasks[task]
    item.marks |= LOST_THERE
    if item.marks & HEARD:
        settle(state, turn, w, task, FP, now)


@compiled
def expire(constants, state, turn, w, task, now):
    """R38: the deadline of an offloaded task passes; its EN waits no longer."""
    item = state.tasks[task]
    if item.marks & HEARD:
        return
    tell(constants, state, turn, w, task, EXPIRED, False, now)
    item.marks |= EXPIRED_THERE
    if item.marks & LOST_THERE:
        settle(state, turn, w, task, FP, now)
