"""The event loop: apply the answers, run each world on to its next decision, write what it sees."""

from pathlib import Path

import numpy as np

from cosmo import node
from cosmo.node.observation import GIVEN_UP, REFUSED
from cosmo.workload.table import FAILS, SPEED
from cosmo.world.access import request_channel
from cosmo.world.answers import fault
from cosmo.world.compiled import compiled, entry_point, fingerprint_of
from cosmo.world.events import (
    ACK_AT_SN,
    CHANNEL_REQUEST,
    DEADLINE,
    EN_DECISION,
    FINISH,
    NOTICE_AT_EN,
    RESULT_AT_EN,
    SN_DECISION,
    STATUS_AT_EN,
    TASK_AT_SN,
    journal_is_full,
    pop,
    push,
)
from cosmo.world.fates import done, expire, lose, refuse, settle, tell
from cosmo.world.foresight import foresee
from cosmo.world.links import (
    DOWN,
    UP,
    arrival_after_start,
    deliver_later,
    join_flight,
    leave_flight,
    rate_at,
    transmit,
)
from cosmo.world.nodes import admit, change_speed, complete
from cosmo.world.outages import come_back, go_down, tasks_at
from cosmo.world.outside import give_up, must_wait, receive
from cosmo.world.records import (
    ANY_FEASIBLE,
    EN_TURN,
    FN,
    NEEDS_ROOM,
    NETWORK,
    NO_TASK,
    OVER,
    RIDDEN,
    RIDE_TURN,
    RUNNING,
    SN_TURN,
    TN,
    TOOK_FEASIBLE,
)
from cosmo.world.service import IN_TIME, LATE, TURNED_AWAY, judge
from cosmo.world.sight import show_result, show_status, show_task
from cosmo.world.status import receive_ack, receive_status, ride_status, send_status
from cosmo.world.turns import (
    EN_ROWS,
    ERROR,
    FEEDBACK_ROWS,
    HOLDING,
    RIDE_ROWS,
    SETTLED_ROWS,
    SN_ROWS,
    STALLED,
    UNFINISHED,
)


@compiled
def _link_of(constants, state, task):
    """The link of an offloaded task: action k is the k-th SN that its EN reaches."""
    item = state.tasks[task]
    return constants.first_link[item.node] + item.action - 1


@compiled
def _answer_en(constants, state, w, task, message_bytes, what, now):
    """An SN sends the result of a task, or a notice that it was refused (R27), to its EN."""
    link = _link_of(constants, state, task)
    arrival = transmit(constants, state, w, link, DOWN, message_bytes, now)
    deliver_later(constants, state, w, link, DOWN, message_bytes, arrival, what, task)


@compiled
def _act(constants, state, turn, w, task, action, now):
    """Carry out an EN decision: local, offload to the SN of a link, or reject."""
    item = state.tasks[task]
    item.action = action
    item.decided = now
    if action <= constants.settings[0].most_sns and state.foreseen[w, action]:
        item.marks |= TOOK_FEASIBLE
    if action == 0:
        if not admit(constants, state, w, np.int64(item.node), task, now):
            refuse(state, turn, w, task, now)
            tell(constants, state, turn, w, task, REFUSED, False, now)
    elif action <= constants.settings[0].most_sns:
        link = _link_of(constants, state, task)
        size = item.input_bytes
        arrival = transmit(constants, state, w, link, UP, size, now)
        join_flight(state, w, constants.link_sn[link], task, arrival)
        deliver_later(constants, state, w, link, UP, size, arrival, TASK_AT_SN, task)
        if constants.settings[0].expires:
            push(state, w, max(item.generated + item.deadline, now), DEADLINE, task)
    else:
        settle(state, turn, w, task, FN if item.marks & ANY_FEASIBLE else TN, now)
        tell(constants, state, turn, w, task, GIVEN_UP, False, now)


@compiled
def _send_result(constants, state, turn, w, task, ride, row, now):
    """The result sets out, perhaps with a status (R31); the SN judges whether it will have been in
    time (R29).
    """
    fixed = constants.settings[0]
    item = state.tasks[task]
    link = _link_of(constants, state, task)
    size = fixed.result_bytes
    if ride:
        size += fixed.ride_bytes
        item.next = ride_status(constants, state, turn, w, link, row, now)
        item.marks |= RIDDEN
    rate = rate_at(constants, state, w, link, DOWN, now)
    delay = arrival_after_start(constants, link, size, now, rate) - item.generated
    fate = IN_TIME if delay <= item.deadline else LATE
    judge(state, w, constants.link_sn[link], task, fate, delay, now)
    _answer_en(constants, state, w, task, size, RESULT_AT_EN, now)


@compiled
def _handle(constants, state, turn, w, what, subject, now):
    """All events but the two kinds of decision. Returns the task whose result is about to leave, if
    the SN has to be asked whether a status rides on it, else NO_TASK.
    """
    fixed = constants.settings[0]
    if what == FINISH:
        node = constants.slot_node[subject]
        task = complete(constants, state, w, subject, now)
        if task >= state.worlds[w].end_task:
            state.tasks[task].clock = now  # background work is done when it is done
        elif node < fixed.ens:
            done(constants, state, turn, w, task, now)
        elif fixed.rides:
            return task
        else:
            _send_result(constants, state, turn, w, task, False, 0, now)
    elif what == TASK_AT_SN:
        sn = constants.link_sn[_link_of(constants, state, subject)]
        leave_flight(state, w, sn, subject)
        if not state.nodes[w, fixed.ens + sn].up:
            lose(state, turn, w, subject, now)
        elif not admit(constants, state, w, fixed.ens + sn, subject, now):
            refuse(state, turn, w, subject, now)
            judge(state, w, sn, subject, TURNED_AWAY, 0.0, now)
            _answer_en(constants, state, w, subject, fixed.notice_bytes, NOTICE_AT_EN, now)
    elif what == RESULT_AT_EN:
        done(constants, state, turn, w, subject, now)
        if state.tasks[subject].marks & RIDDEN:
            receive_status(constants, state, w, np.int64(state.tasks[subject].next), now)
    elif what == NOTICE_AT_EN:
        state.noticed_ms[subject] = now
        tell(constants, state, turn, w, subject, REFUSED, False, now)
    elif what == STATUS_AT_EN:
        receive_status(constants, state, w, subject, now)
    elif what == ACK_AT_SN:
        receive_ack(constants, state, w, subject)
    elif what == DEADLINE:
        expire(constants, state, turn, w, subject, now)
    elif what == CHANNEL_REQUEST:
        request_channel(constants, state, w, subject, now)
    return NO_TASK


@compiled
def _answer(constants, state, turn, w):
    """Carry out what was decided for this world."""
    fixed = constants.settings[0]
    world = state.worlds[w]
    if world.waits_for == EN_TURN:
        action = turn.answers.action[world.row]
        _act(constants, state, turn, w, np.int64(world.subject), action, world.now)
    elif world.waits_for == SN_TURN:
        interval = turn.answers.interval_ms[world.row]
        world.update_decisions += 1
        send_status(constants, state, turn, w, np.int64(world.subject), world.row, world.now)
        if world.now + interval <= fixed.window:  # R21: also on the very end
            push(state, w, world.now + interval, SN_DECISION, world.subject)
    elif world.waits_for == RIDE_TURN:
        task, ride = np.int64(world.subject), turn.answers.ride[world.row]
        _send_result(constants, state, turn, w, task, ride, world.row, world.now)
    world.waits_for = RUNNING


@compiled
def _first_time(state, w):
    """When the next event of the list is."""
    return state.events[w, 0].time if state.worlds[w].events > 0 else np.inf


@compiled
def _change_is_next(state, w, time, own_time, other_time):
    """Whether a node's change comes before all else: at one instant it follows finishes (R5)."""
    if time > min(own_time, other_time):
        return False
    if state.worlds[w].events == 0:
        return True
    first = state.events[w, 0]
    return time < first.time or (time == first.time and first.what != FINISH)


@compiled
def _change(constants, state, turn, w, change):
    """A node changes its speed (R37), fails or comes back (R38)."""
    node = np.int64(change.node)
    if change.what == SPEED:
        change_speed(constants, state, w, node, change.factor, change.time)
    elif change.what == FAILS:
        go_down(constants, state, turn, w, node, change.time)
    else:
        come_back(constants, state, w, node, change.time)


@compiled
def _until_it_waits(constants, state, turn, w):
    """Events in order, until the world needs a decision, more room, the network, or is over."""
    fixed = constants.settings[0]
    told = fixed.most_ens
    world = state.worlds[w]
    # An event or an answer adds at most one event for each EN that an SN tells and two more,
    # settles at most one task and tells of at most one (but for an SN that fails); a task that is
    # generated before it adds one event; answers of other worlds may be still to come in this turn.
    room = state.events.shape[1] - 2 * (told + 4)
    told_room = turn.settled.size - turn.seen.dispatch.size - 2
    while True:
        if (
            world.events > room
            or world.free_messages < told
            or turn.counts[SETTLED_ROWS] > told_room
            or turn.counts[FEEDBACK_ROWS] > told_room
            or journal_is_full(state, w)
        ):
            world.waits_for = NEEDS_ROOM
            return
        own, other = world.next_task, world.next_background
        own_time = state.tasks[own].generated if own < world.end_task else np.inf
        other_time = state.tasks[other].generated if other < world.end_background else np.inf
        change_time = np.inf
        if fixed.changes and world.next_change < world.end_change:
            change_time = state.changes[w, world.next_change].time
        if fixed.outside:
            following = min(_first_time(state, w), own_time, other_time, change_time)
            if following == np.inf:
                give_up(state, w)
            if must_wait(constants, state, w, following):
                world.waits_for = NETWORK
                return
        if change_time < np.inf and _change_is_next(state, w, change_time, own_time, other_time):
            change = state.changes[w, world.next_change]
            if change.what == FAILS:  # may settle all tasks that are there
                many = tasks_at(constants, state, w, np.int64(change.node))
                if turn.counts[SETTLED_ROWS] + many > told_room:
                    world.waits_for = NEEDS_ROOM
                    return
            world.next_change += 1
            world.now = change_time
            _change(constants, state, turn, w, change)
            continue
        generates = own_time <= other_time and own_time < _first_time(state, w)
        if generates:
            world.next_task += 1
            world.now = own_time
            request_channel(constants, state, w, own, own_time)
            if fixed.outside:
                continue
            # On to the event after it at once: worlds side by side on a GPU are then more often at
            # the same place.
            own += 1
            own_time = state.tasks[own].generated if own < world.end_task else np.inf
        first = _first_time(state, w)
        comes_next = world.events > 0 and first <= min(own_time, other_time)
        if comes_next and (not generates or first < change_time):
            now, what, subject = pop(state, w)
            world.now = now
            if what == EN_DECISION:
                world.waits_for, world.subject = EN_TURN, subject
                return
            if what == SN_DECISION:
                world.waits_for, world.subject = SN_TURN, subject
                return
            task = _handle(constants, state, turn, w, what, np.int64(subject), now)
            if task != NO_TASK:
                world.waits_for, world.subject = RIDE_TURN, task
                return
        elif generates:
            continue
        elif other < world.end_background:
            world.next_background += 1
            world.now = other_time
            node = np.int64(state.tasks[other].node)
            if state.nodes[w, node].up:
                admit(constants, state, w, node, other, other_time)
        else:
            world.waits_for = OVER
            return


@compiled
def _ask(constants, state, turn, w):
    """Write what a node sees whose decision the world waits for."""
    world = state.worlds[w]
    subject, now = np.int64(world.subject), world.now
    if world.waits_for == EN_TURN:
        world.row = turn.counts[EN_ROWS]
        turn.counts[EN_ROWS] += 1
        show_task(constants, state, turn, w, subject, now, world.row)
    elif world.waits_for == SN_TURN:
        world.row = turn.counts[SN_ROWS]
        turn.counts[SN_ROWS] += 1
        show_status(constants, state, turn, w, subject, now, world.row)
    elif world.waits_for == RIDE_TURN:
        world.row = turn.counts[RIDE_ROWS]
        turn.counts[RIDE_ROWS] += 1
        show_result(constants, state, turn, w, subject, now, world.row)


@compiled
def _run(constants, state, turn, w):
    """Run a world on to its next decision, and write what the node sees that decides.

    Events and sights are apart for GPUs: worlds that a GPU plays side by side come to their
    decisions after different numbers of events, but then write what is seen together.
    """
    _until_it_waits(constants, state, turn, w)
    _ask(constants, state, turn, w)


def fingerprint():
    """Numba keys its cache by the entry point's own file; this adds all the files it is made of."""
    return fingerprint_of(Path(__file__).parent, Path(node.__file__).parent)


def _entry_points(fingerprint):
    @entry_point
    def advance(constants, state, turn):
        """Apply the last turn's answers and run every world on; fills in the next turn.

        Called again after a shortage of room or a wait for the network (counts[STALLED] > 0), it
        goes on with those worlds only.
        Worlds that wait for the kind of decision in counts[HOLDING] stay where they are, and their
        rows too; new rows of that kind follow them, and settled tasks those returned before.
        """
        _ = fingerprint  # part of the cache key
        resume, holding = turn.counts[STALLED] > 0, turn.counts[HOLDING]
        turn.counts[STALLED] = 0
        if not resume:
            turn.counts[ERROR] = fault(turn, holding)
            if turn.counts[ERROR] != 0:
                return
            if holding != EN_TURN:
                turn.counts[EN_ROWS] = 0
            if holding != SN_TURN:
                turn.counts[SN_ROWS] = 0
            turn.counts[RIDE_ROWS] = 0
            if holding == RUNNING:
                turn.counts[SETTLED_ROWS] = 0
                turn.counts[FEEDBACK_ROWS] = 0
            turn.counts[UNFINISHED] = 0
        for w in range(state.worlds.size):
            waits_for = state.worlds[w].waits_for
            stalled = waits_for in (NEEDS_ROOM, NETWORK)
            if waits_for == OVER or (resume and not stalled):
                continue
            if not resume and waits_for == holding and holding != RUNNING:
                turn.counts[UNFINISHED] += 1
                continue
            _answer(constants, state, turn, w)
            _run(constants, state, turn, w)
            if state.worlds[w].waits_for in (NEEDS_ROOM, NETWORK):
                turn.counts[STALLED] += 1
            elif state.worlds[w].waits_for != OVER:
                turn.counts[UNFINISHED] += 1

    @entry_point
    def hear(constants, state, w, told, clock):
        """The network outside has taken a world's messages and come to `clock`."""
        _ = fingerprint
        world = state.worlds[w]
        world.posts = 0
        world.network = clock
        receive(constants, state, w, told)

    @entry_point
    def foresee_behind_all(constants, state, delay, feasible):
        """R40: delays and feasibility of every route of the pending EN decisions, in their rows,
        behind all that is on its way.
        """
        _ = fingerprint
        for w in range(state.worlds.size):
            world = state.worlds[w]
            if world.waits_for == EN_TURN:
                row, task = world.row, np.int64(world.subject)
                foresee(constants, state, w, task, world.now, True, delay[row], feasible[row])

    return advance, hear, foresee_behind_all


advance, hear, foresee_behind_all = _entry_points(fingerprint())
