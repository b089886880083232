"""The event loop: apply the answers, run each world on to its next decision, write what it sees."""

import hashlib
import math
from pathlib import Path

import numpy as np

from cosmo.world.access import observe_throughput, request_channel, residual_time
from cosmo.world.compiled import compiled, entry_point
from cosmo.world.events import (
    ACK_AT_SN,
    CHANNEL_REQUEST,
    EN_DECISION,
    FINISH,
    RESULT_AT_EN,
    SN_DECISION,
    STATUS_AT_EN,
    TASK_AT_SN,
    pop,
    push,
)
from cosmo.world.foresight import foresee
from cosmo.world.links import (
    DOWN,
    UP,
    deliver_later,
    join_flight,
    leave_flight,
    transmit,
    write_rate_statistics,
)
from cosmo.world.nodes import admit, complete, has_room, write_state
from cosmo.world.outside import give_up, must_wait, receive
from cosmo.world.records import (
    EN_TURN,
    FN,
    FP,
    NEEDS_ROOM,
    NETWORK,
    NO_TASK,
    OVER,
    RUNNING,
    SN_TURN,
    STATE_FIELDS,
    TN,
    TP,
)
from cosmo.world.status import receive_ack, receive_status, send_status

# Places in Turn.counts.
EN_ROWS, SN_ROWS, SETTLED_ROWS, UNFINISHED, ERROR, STALLED, HOLDING = range(7)
BAD_ACTION, BAD_INTERVAL = 1, 2


@compiled
def _settle(state, turn, w, sns, task, outcome, now):
    """A task's outcome becomes final; its SN remembers it for a while (R19)."""
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
    if 1 <= item.action <= sns:
        service = state.services[w, item.action - 1]
        item.next = NO_TASK
        if service.recent_head == NO_TASK:
            service.recent_head = task
        else:
            state.tasks[service.recent_tail].next = task
        service.recent_tail = task
        service.recent_count += 1
        service.recent_success += 1 if outcome == TP else 0
        service.recent_delay += now - item.generated


@compiled
def _settle_by_deadline(state, turn, w, sns, task, now):
    item = state.tasks[task]
    outcome = TP if now - item.generated <= item.deadline else FP
    _settle(state, turn, w, sns, task, outcome, now)


@compiled
def _refuse(state, turn, w, sns, task, now):
    """R10: a false positive at this moment."""
    state.tasks[task].refused = True
    _settle(state, turn, w, sns, task, FP, now)


@compiled
def _act(constants, state, turn, w, task, action, now):
    """Carry out an EN decision: local, offload to SN 1..S, or reject."""
    sns = constants.settings[0].sns
    item = state.tasks[task]
    item.action = action
    item.decided = now
    if action == 0:
        if not admit(constants, state, w, np.int64(item.node), task, now):
            _refuse(state, turn, w, sns, task, now)
    elif action <= sns:
        link = np.int64(item.node) * sns + action - 1
        size = item.input_bytes
        arrival = transmit(constants, state, w, link, UP, size, now)
        join_flight(state, w, action - 1, task, arrival)
        deliver_later(constants, state, w, link, UP, size, arrival, TASK_AT_SN, task)
    else:
        _settle(state, turn, w, sns, task, FN if item.feasible != 0 else TN, now)


@compiled
def _handle(constants, state, turn, w, what, subject, now):
    """All events but the two kinds of decision."""
    fixed = constants.settings[0]
    if what == FINISH:
        node = constants.slot_node[subject]
        task = complete(constants, state, w, subject, now)
        item = state.tasks[task]
        if task >= state.worlds[w].end_task:
            item.clock = now  # background work is done when it is done
        elif node < fixed.ens:
            _settle_by_deadline(state, turn, w, fixed.sns, task, now)
        else:
            link = np.int64(item.node) * fixed.sns + item.action - 1
            size = fixed.result_bytes
            arrival = transmit(constants, state, w, link, DOWN, size, now)
            deliver_later(constants, state, w, link, DOWN, size, arrival, RESULT_AT_EN, task)
    elif what == TASK_AT_SN:
        sn = np.int64(state.tasks[subject].action) - 1
        leave_flight(state, w, sn, subject)
        if not admit(constants, state, w, fixed.ens + sn, subject, now):
            _refuse(state, turn, w, fixed.sns, subject, now)
    elif what == RESULT_AT_EN:
        _settle_by_deadline(state, turn, w, fixed.sns, subject, now)
    elif what == STATUS_AT_EN:
        receive_status(constants, state, w, subject, now)
    elif what == ACK_AT_SN:
        receive_ack(state, w, subject)
    elif what == CHANNEL_REQUEST:
        request_channel(constants, state, w, subject, now)


@compiled
def _account(constants, state, turn, w, now, row):
    """How old and how wrong the cached state is at this decision (largest normalised component)."""
    fixed = constants.settings[0]
    age, error = 0.0, 0.0
    for sn in range(fixed.sns):
        age += now - max(turn.cached_source[row, sn], 0.0)
        worst = 0.0
        for k in range(constants.state_scale.shape[1]):
            gap = abs(turn.true_state[row, sn, k] - turn.cached_state[row, sn, k])
            worst = max(worst, gap / constants.state_scale[fixed.ens + sn, k])
        error += worst
    world = state.worlds[w]
    world.decisions += 1
    world.decision_age += age / fixed.sns
    world.decision_error += error / fixed.sns


@compiled
def _show_task(constants, state, turn, w, task, now, row):
    """Write what an EN sees of a task that has just reached it."""
    fixed = constants.settings[0]
    item = state.tasks[task]
    en = np.int64(item.node)
    seen = turn.dispatch[row]
    seen.world = w
    seen.en = en
    seen.ue = item.ue
    seen.task = task - state.worlds[w].first_task
    seen.time_ms = now
    seen.generated_ms = item.generated
    seen.input_bytes = item.input_bytes
    seen.cycles = item.cycles
    seen.deadline_ms = item.deadline
    throughput, trend = observe_throughput(
        constants, state, w, en, np.int64(item.ue), item.input_bytes, now - item.generated
    )
    seen.throughput_mbps = throughput
    seen.throughput_trend_mbps = trend
    seen.residual_ms = residual_time(constants, item.ue, now)
    write_state(constants, state, w, en, now, seen.en_state)
    seen.local_room = has_room(constants, state, w, en, item.input_bytes, 0.0, 0)
    for sn in range(fixed.sns):
        link = en * fixed.sns + sn
        cache = state.caches[w, link]
        turn.cached_source[row, sn] = cache.source
        for k in range(STATE_FIELDS):
            turn.cached_state[row, sn, k] = cache.state[k]
        write_rate_statistics(constants, state, w, link, UP, now, turn.up_link[row, sn])
        turn.up_backlog[row, sn] = max(0.0, state.links[w, link].up_free - now)
        write_state(constants, state, w, fixed.ens + sn, now, turn.true_state[row, sn])
    item.feasible = foresee(constants, state, w, task, now, turn.estimate[row], turn.feasible[row])
    service = item.cycles / constants.node_rate[en]
    seen.local_wait_ms = max(0.0, turn.estimate[row, 0] - (now - item.generated) - service)
    if item.generated >= fixed.warmup:
        _account(constants, state, turn, w, now, row)


@compiled
def _show_status(constants, state, turn, w, sn, now, row):
    """Write what an SN sees when it must decide on an update."""
    fixed = constants.settings[0]
    seen = turn.update[row]
    seen.world = w
    seen.sn = sn
    seen.time_ms = now
    write_state(constants, state, w, fixed.ens + sn, now, seen.sn_state)
    service = state.services[w, sn]
    while service.recent_count > 0:
        oldest = state.tasks[service.recent_head]
        if oldest.clock >= now - fixed.history:
            break
        service.recent_count -= 1
        service.recent_success -= 1 if oldest.outcome == TP else 0
        service.recent_delay -= oldest.clock - oldest.generated
        service.recent_head = oldest.next
    if service.recent_count == 0:
        service.recent_head = NO_TASK
        service.recent_delay = 0.0
        seen.recent_delay_ms, seen.recent_success, seen.recent_failure = 0.0, 0.0, 0.0
    else:
        seen.recent_delay_ms = service.recent_delay / service.recent_count
        seen.recent_success = service.recent_success / service.recent_count
        seen.recent_failure = 1.0 - seen.recent_success
    for en in range(fixed.ens):
        link = en * fixed.sns + sn
        cache = state.caches[w, link]
        turn.acknowledged_source[row, en] = cache.acknowledged
        for k in range(STATE_FIELDS):
            turn.acknowledged_state[row, en, k] = cache.acknowledged_state[k]
        write_rate_statistics(constants, state, w, link, DOWN, now, turn.down_link[row, en])


@compiled
def fault(turn, sns, holding):
    """What is wrong with the answers, before any of them is carried out; 0 if nothing."""
    if holding != EN_TURN:
        for row in range(turn.counts[EN_ROWS]):
            if turn.action[row] < 0 or turn.action[row] > sns + 1:
                return BAD_ACTION
    if holding != SN_TURN:
        for row in range(turn.counts[SN_ROWS]):
            if not (turn.interval[row] > 0.0 and math.isfinite(turn.interval[row])):
                return BAD_INTERVAL
    return 0


@compiled
def _answer(constants, state, turn, w):
    """Carry out what was decided for this world."""
    fixed = constants.settings[0]
    world = state.worlds[w]
    if world.waits_for == EN_TURN:
        action = turn.action[world.row]
        _act(constants, state, turn, w, np.int64(world.subject), action, world.now)
    elif world.waits_for == SN_TURN:
        interval = turn.interval[world.row]
        world.update_decisions += 1
        if turn.send[world.row]:
            send_status(constants, state, w, np.int64(world.subject), world.now)
        if world.now + interval < fixed.window:
            push(state, w, world.now + interval, SN_DECISION, world.subject)
    world.waits_for = RUNNING


@compiled
def _run(constants, state, turn, w):
    """Events in order, until the world needs a decision, more room, the network, or is over."""
    fixed = constants.settings[0]
    ens = fixed.ens
    world = state.worlds[w]
    # An event or an answer adds at most ens + 1 events and settles at most one task; answers of
    # other worlds may be still to come in this turn.
    room = state.events.shape[1] - 2 * (ens + 4)
    settled_room = turn.settled.size - state.worlds.size - 2
    while True:
        if (
            world.events > room
            or world.free_messages < ens
            or turn.counts[SETTLED_ROWS] > settled_room
        ):
            world.waits_for = NEEDS_ROOM
            return
        own, other = world.next_task, world.next_background
        own_time = state.tasks[own].generated if own < world.end_task else np.inf
        other_time = state.tasks[other].generated if other < world.end_background else np.inf
        if fixed.outside:
            first = state.events[w, 0].time if world.events > 0 else np.inf
            following = min(first, own_time, other_time)
            if following == np.inf:
                give_up(state, w)
            if must_wait(constants, state, w, following):
                world.waits_for = NETWORK
                return
        if world.events > 0 and state.events[w, 0].time <= min(own_time, other_time):
            now, what, subject = pop(state, w)
            world.now = now
            if what == EN_DECISION:
                world.waits_for, world.subject = EN_TURN, subject
                world.row = turn.counts[EN_ROWS]
                turn.counts[EN_ROWS] += 1
                _show_task(constants, state, turn, w, np.int64(subject), now, world.row)
                return
            if what == SN_DECISION:
                world.waits_for, world.subject = SN_TURN, subject
                world.row = turn.counts[SN_ROWS]
                turn.counts[SN_ROWS] += 1
                _show_status(constants, state, turn, w, np.int64(subject), now, world.row)
                return
            _handle(constants, state, turn, w, what, np.int64(subject), now)
        elif own < world.end_task and own_time <= other_time:
            world.next_task += 1
            world.now = own_time
            request_channel(constants, state, w, own, own_time)
        elif other < world.end_background:
            world.next_background += 1
            world.now = other_time
            admit(constants, state, w, np.int64(state.tasks[other].node), other, other_time)
        else:
            world.waits_for = OVER
            return


def fingerprint():
    """Numba keys its cache by the entry point's own file; this adds all the files it is made of."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _entry_points(fingerprint):
    @entry_point
    def advance(constants, state, turn):
        """Apply the last turn's answers and run every world on; fills in the next turn.

        Called again after a shortage of room or a wait for the network (counts[STALLED] > 0), it
        goes on with those worlds only.
        Worlds that wait for the kind of decision in counts[HOLDING] stay where they are, and their
        rows too; new rows of that kind follow them, and settled tasks those that were told before.
        """
        _ = fingerprint  # part of the cache key
        resume, holding = turn.counts[STALLED] > 0, turn.counts[HOLDING]
        turn.counts[STALLED] = 0
        if not resume:
            turn.counts[ERROR] = fault(turn, constants.settings[0].sns, holding)
            if turn.counts[ERROR] != 0:
                return
            if holding != EN_TURN:
                turn.counts[EN_ROWS] = 0
            if holding != SN_TURN:
                turn.counts[SN_ROWS] = 0
            if holding == RUNNING:
                turn.counts[SETTLED_ROWS] = 0
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

    return advance, hear


advance, hear = _entry_points(fingerprint())
