"""Rules at the SN, compiled: `policy.updaters`; most send the raw state to everyone."""

import numpy as np

from cosmo.control.fast import crowd
from cosmo.control.fast.changes import by_changed_age
from cosmo.control.fast.friends import fill, tell, wait_ms
from cosmo.control.fast.records import (
    BY_AGE,
    BY_CHANGE,
    BY_CLOCK,
    BY_CONTENT,
    BY_NEWS,
    PROBES,
    TO_FRIENDS,
    TO_FRIENDS_MOVED,
)
from cosmo.node import LATENCY, NOBODY, RAW, REQUESTS
from cosmo.policy.dispatchers.prequal import PROBED_LATENCY, PROBED_REQUESTS
from cosmo.policy.updaters.aoi_threshold import ROUNDING_MS
from cosmo.world.compiled import compiled
from cosmo.world.status import since


@compiled
def _oldest(turn, row):
    """Source of the oldest status that an EN has acknowledged; the start if one has none."""
    oldest = np.inf
    for column in range(turn.told.shape[1]):
        if turn.told[row, column] == NOBODY:
            break
        oldest = min(oldest, since(turn.acknowledged_source[row, column]))
    return oldest


@compiled
def _unconfirmed(memory, turn, row):
    """`Pending.unconfirmed`: whether something was sent that not all ENs have acknowledged."""
    node = turn.update[row]
    sent_ms = memory.sent_ms[node.world, node.sn]
    for column in range(turn.told.shape[1]):
        if turn.told[row, column] == NOBODY:
            break
        source = turn.acknowledged_source[row, column]
        if (source if source == source else -np.inf) < sent_ms:
            return True
    return False


@compiled
def _gap_to_held(known, turn, row):
    """The largest normalised gap between the state and what ENs have acknowledged."""
    node = turn.update[row]
    worst = 0.0
    for column in range(turn.told.shape[1]):
        if turn.told[row, column] == NOBODY:
            break
        source = turn.acknowledged_source[row, column]
        for k in range(RAW):
            idle = known.sn_idle[node.sn, k]
            held = turn.acknowledged[row, column, k] if source == source else idle
            worst = max(worst, abs(node.sn_state[k] - held) / known.sn_scale[node.sn, k])
    return worst


@compiled
def _gap_to_sent(known, memory, turn, row):
    """The same to what was last sent."""
    node = turn.update[row]
    worst = 0.0
    for k in range(RAW):
        sent = memory.sent[node.world, node.sn, k]
        worst = max(worst, abs(node.sn_state[k] - sent) / known.sn_scale[node.sn, k])
    return worst


@compiled
def _by_content(rules, known, memory, turn, row):
    """`AovGapUpdater`: an update on its way counts as held, of a lost one nobody knows."""
    node = turn.update[row]
    unsure = _unconfirmed(memory, turn, row)
    overdue = node.time_ms - memory.sent_ms[node.world, node.sn] >= rules.timeout_ms
    if not unsure or overdue:
        memory.pending[node.world, node.sn] = False
    gap = 0.0
    if unsure:
        gap = _gap_to_sent(known, memory, turn, row)
    if not memory.pending[node.world, node.sn]:
        gap = max(gap, _gap_to_held(known, turn, row))
    if not gap > rules.threshold:
        return False
    memory.pending[node.world, node.sn] = True
    memory.sent_ms[node.world, node.sn] = node.time_ms
    for k in range(RAW):
        memory.sent[node.world, node.sn, k] = node.sn_state[k]
    return True


@compiled
def update(rules, known, memory, turn, row):
    """Answer an SN: whether it sends, and when it decides again."""
    if rules.sn in (TO_FRIENDS, TO_FRIENDS_MOVED):
        now_ms = wait_ms(known, memory.friends, turn.update[row])
        tell(rules, memory.friends, turn, row, now_ms, rules.sn == TO_FRIENDS_MOVED)
        return
    if rules.sn == BY_NEWS:
        crowd.tell(known, memory.crowd, turn, row)
        return
    send, wait = False, np.inf
    if rules.sn in (BY_CLOCK, PROBES):
        send, wait = True, rules.interval_ms
    elif rules.sn == BY_AGE:
        left = rules.interval_ms - (turn.update[row].time_ms - _oldest(turn, row))
        send = left <= ROUNDING_MS
        wait = rules.interval_ms if send else left
    elif rules.sn == BY_CONTENT:
        send, wait = _by_content(rules, known, memory, turn, row), rules.interval_ms
    elif rules.sn == BY_CHANGE:
        unsure = _unconfirmed(memory, turn, row)
        send, wait = by_changed_age(rules, memory, turn, row, unsure)
    for column in range(turn.send.shape[1]):
        turn.send[row, column] = send
    turn.interval[row] = wait
    if rules.sn == PROBES:
        turn.numbers[row, PROBED_REQUESTS] = turn.update[row].sn_state[REQUESTS]
        turn.numbers[row, PROBED_LATENCY] = turn.update[row].sn_state[LATENCY]
        return
    for k in range(turn.numbers.shape[1]):
        turn.numbers[row, k] = turn.update[row].sn_state[k]


@compiled
def ride(rules, known, memory, turn, row):
    """`RidingUpdater.ride`: whether a status rides on a result, and what it says."""
    leaving, friends = turn.result[row], memory.friends
    last_ms = friends.ridden_at[leaving.world, leaving.sn]
    due = leaving.time_ms - last_ms[leaving.en] >= rules.interval_ms
    turn.ride[row] = due
    if due:
        last_ms[leaving.en] = leaving.time_ms
        wait = wait_ms(known, friends, leaving)
        fill(friends, leaving, wait, turn.ride_numbers[row])
