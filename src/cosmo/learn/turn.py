"""One turn of many worlds, compiled: what the agents see, what they do, what is noted about it.

The same observations as `policy.features`, the same networks as `policy.networks`; a turn costs
microseconds instead of hundreds of them.

All ENs of a run act by the same weights, and so do all its SNs. An SN decides about each EN by
itself (`policy.learned`): decisions about one EN are a *stream*, of which a run has one a link.
"""

from pathlib import Path
from typing import Any

import numpy as np

from cosmo import node as node_room
from cosmo.learn import forward
from cosmo.learn.en_agent import ACCEPT_LABEL, ACTION, ROUTE_LABEL
from cosmo.node import NO_NODE, RAW
from cosmo.policy import features
from cosmo.policy.features import EN_LINK, EN_LOCAL
from cosmo.policy.learned import ROUNDING_MS
from cosmo.policy.rules import run as rules
from cosmo.world import kernel
from cosmo.world.compiled import compiled, compiled_rule, entry_point, fingerprint_of
from cosmo.world.status import since
from cosmo.world.turns import EN_ROWS, SN_ROWS

_has_returned = compiled_rule(rules.has_returned)


@compiled
def _explores(chance, run, row, which):
    """Whether a decision of this run is random, with probability ε (R24)."""
    share = min(chance.steps[run] / chance.over, 1.0)
    epsilon = chance.first + share * (chance.last - chance.first)
    chance.steps[run] += 1
    return chance.chance[row, which] < epsilon


@compiled
def _semantic(sizes, scales, networks, run, sn, state, out, scratch):
    """Into `out`, what a status of this state says."""
    x = scratch[0]
    for k in range(RAW):
        x[k] = state[k] / scales.sn_state[sn, k]
    if not sizes.semantic:
        for k in range(RAW):
            out[k] = x[k]
        return
    forward.encode(
        networks.encoder[run],
        x,
        RAW,
        sizes.encoder_first,
        sizes.encoder_second,
        out,
        sizes.dimensions,
        scratch[1],
        scratch[2],
    )


@compiled
def _see_local(scales, task, out):
    out[0] = task.throughput_mbps / scales.throughput_mbps
    out[1] = task.throughput_trend_mbps / scales.throughput_mbps
    out[2] = task.residual_ms / scales.residual_ms
    for k in range(RAW):
        out[3 + k] = task.en_state[k] / scales.en_state[task.en, k]
    out[7] = task.input_bytes / scales.task[0]
    out[8] = task.cycles / scales.task[1]
    out[9] = task.deadline_ms / scales.task[2]


@compiled
def _age(scales, now, source):
    return min((now - since(source)) / scales.age_ms, scales.most_age)


@compiled
def _see_remote(sizes, scales, networks, turn, n, sns, fresh, out, scratch):
    """The statuses that the EN holds of the `sns` SNs that it reaches, and the links; for the stale
    loss, the status of the SN in the column `fresh` as it would be now.
    """
    task = turn.seen.dispatch[n]
    width = sizes.dimensions + EN_LINK
    for sn in range(sns):
        start = sn * sizes.remotes
        if sn == fresh:
            state, number = turn.truth.sn_state[n, sn], turn.seen.sn[n, sn]
            _semantic(sizes, scales, networks, task.world, number, state, out[start:], scratch)
        else:
            for k in range(sizes.dimensions):
                out[start + k] = turn.seen.status[n, sn, k]
        for k in range(EN_LINK):
            out[start + sizes.dimensions + k] = (
                turn.seen.up_link_mbps[n, sn, k] / scales.up_mbps[task.en, sn]
            )
        if sizes.with_age:
            source = task.time_ms if sn == fresh else turn.seen.status_ms[n, sn]
            out[start + width] = _age(scales, task.time_ms, source)


@compiled
def _en_scores(sizes, parameters, local, remote, sns, routes, out, scratch):
    forward.en_scores(
        parameters,
        local,
        EN_LOCAL,
        remote,
        sizes.remotes,
        sns,
        routes - 1,
        sizes.branch,
        sizes.fusion,
        sizes.gate_first,
        out,
        scratch[0],
        scratch[1],
        scratch[2],
    )


@compiled
def _value(scores, action, routes, gate_first):
    """Q of an action."""
    if not gate_first:
        return scores[action]
    if action == routes:
        return scores[0]
    best = scores[2]
    for k in range(1, routes):
        best = max(best, scores[2 + k])
    return scores[1] + scores[2 + action] - best


@compiled
def _dispatch(sizes, scales, networks, turn, chance, notes, n):
    task, place = turn.seen.dispatch[n], turn.truth.place[n]
    run, scratch = task.world, notes.scratch
    routes = turn.truth.delay_ms.shape[1]
    sns = 0  # that the EN reaches
    while sns < routes - 1 and turn.seen.sn[n, sns] != NO_NODE:
        sns += 1
    row = notes.rows[run, place]
    remote, scores = row[EN_LOCAL:], scratch[5]
    _see_local(scales, task, row)
    _see_remote(sizes, scales, networks, turn, n, sns, NO_NODE, remote, scratch)
    _en_scores(sizes, networks.en[run], row, remote, sns, routes, scores, scratch)
    action = greedy = forward.en_greedy(scores, routes, sizes.gate_first)
    if _explores(chance, run, run, place):
        action = chance.choice[run, place] % (sns + 2)  # local, an SN that it reaches, reject
        if action == sns + 1:
            action = routes
    turn.answers.action[n] = action

    # R23: accept if any route is feasible; then the feasible one with the smaller delay.
    best, accept = 0, False
    for route in range(1 + sns):
        if turn.truth.feasible[n, route] and (
            not accept or turn.truth.delay_ms[n, route] < turn.truth.delay_ms[n, best]
        ):
            best, accept = route, True
    told = EN_LOCAL + sizes.remotes * (routes - 1)
    row[told + ACTION] = action
    row[told + ACCEPT_LABEL] = accept
    row[told + ROUTE_LABEL] = best
    latest = notes.latest[run, task.en]
    if latest >= 0:
        notes.next_task[run, latest] = place
    notes.latest[run, task.en] = place
    for column in range(sns):
        _credit(sizes, scales, networks, turn, notes, n, sns, column, greedy)


@compiled
def _credit(sizes, scales, networks, turn, notes, n, sns, column, greedy):
    """Put a task into the interval of the SN in this column: its status was part of the decision,
    whatever the decision is.
    """
    task, place, scratch = turn.seen.dispatch[n], turn.truth.place[n], notes.scratch
    run = task.world
    stream = run * notes.pairs.links + notes.pairs.of_en[task.en, column]
    # The interval that the decision falls into, [u_n, u_n+1). R5: at the very start of the next
    # one the EN decides before the SN does.
    interval = notes.decisions[stream] - 1
    following = notes.start_ms[stream, interval] + notes.length_ms[stream, interval]
    begun = notes.start_ms[stream, interval]
    # An outage voids the pending decision: the interval lasts until the SN is back (R38).
    there = turn.truth.sn_up[n, column]
    if there and task.time_ms >= following and following < sizes.window_ms:
        interval, begun = interval + 1, task.time_ms
    worth = sizes.discount_per_ms ** (task.time_ms - begun)
    notes.interval[run, place, column] = interval
    notes.worth[run, place, column] = worth
    notes.pending[stream, interval] += 1

    if sizes.stale_loss_weight > 0.0:
        # What this SN's stale status costs in the EN's own eyes: with one sent just now, by how
        # much is the best action better than the one it chose?
        row, remote, scores = notes.rows[run, place], scratch[4], scratch[5]
        routes = turn.truth.delay_ms.shape[1]
        _see_remote(sizes, scales, networks, turn, n, sns, column, remote, scratch)
        _en_scores(sizes, networks.en[run], row, remote, sns, routes, scores, scratch)
        fresh = forward.en_greedy(scores, routes, sizes.gate_first)
        loss = _value(scores, fresh, routes, sizes.gate_first) - _value(
            scores, greedy, routes, sizes.gate_first
        )
        notes.reward[stream, interval] -= sizes.stale_loss_weight * loss * worth


@compiled
def _send(sizes, scales, networks, turn, chance, notes, n):
    """An SN decides about every EN for which that is due, and is asked again when the next is."""
    node, semantic = turn.seen.update[n], notes.scratch[3]
    # The encoder runs at the SN: these very numbers are what a status carries (R28).
    _semantic(sizes, scales, networks, node.world, node.sn, node.sn_state, semantic, notes.scratch)
    for k in range(sizes.dimensions):
        turn.answers.numbers[n, k] = semantic[k]
    left_ms, returned = np.inf, _has_returned(node)
    for column in range(turn.answers.send.shape[1]):
        turn.answers.send[n, column] = False
        pair = notes.pairs.of_sn[node.sn, column]
        if pair == NO_NODE:
            continue
        stream = node.world * notes.pairs.links + pair
        which, wait_ms = notes.decisions[stream], 0.0
        if which > 0:
            last = notes.start_ms[stream, which - 1] + notes.length_ms[stream, which - 1]
            wait_ms = last - node.time_ms
        if wait_ms <= ROUNDING_MS or returned:
            wait_ms = _send_to(sizes, scales, networks, turn, chance, notes, n, column, stream)
        left_ms = min(left_ms, wait_ms)
    turn.answers.interval_ms[n] = left_ms


@compiled
def _send_to(sizes, scales, networks, turn, chance, notes, n, column, stream):
    """Decide about one EN; returns after how many ms to decide about it again."""
    node = turn.seen.update[n]
    run, scratch, size = node.world, notes.scratch, sizes.dimensions
    which = notes.decisions[stream]
    if _has_returned(node):  # R38: that ends the interval, and the SN remembers nothing
        notes.length_ms[stream, which - 1] = node.time_ms - notes.start_ms[stream, which - 1]
        for k in range(sizes.hidden):
            notes.hidden[stream, k] = 0.0
    seen, hidden = notes.seen[stream, which], notes.hidden[stream]
    for k in range(size):
        seen[k] = scratch[3, k]
        seen[size + k] = turn.seen.acknowledged[n, column, k]
    others = seen[2 * size :]
    source = turn.seen.acknowledged_ms[n, column]
    if source != source:  # nothing since the SN is up
        source = node.up_since_ms
    others[0] = _age(scales, node.time_ms, source)
    others[1] = node.recent_delay_ms / scales.delay_ms
    others[2] = node.recent_success
    others[3] = node.recent_failure
    for k in range(3):
        rate = scales.down_mbps[node.sn, column]
        others[4 + k] = turn.seen.down_link_mbps[n, column, k] / rate

    for k in range(sizes.hidden):
        notes.before[stream, which, k] = hidden[k]
    values = scratch[5]
    forward.sn_values(
        networks.sn[run],
        seen,
        sizes.inputs,
        sizes.projection,
        sizes.hidden,
        hidden,
        values,
        sizes.actions,
        scratch[0],
        scratch[1],
        scratch[2],
    )
    action = 0
    for k in range(1, sizes.actions):
        if values[k] > values[action]:
            action = k
    if _explores(chance, run, stream, which):
        action = chance.choice[stream, which]
    # Send × intervals come first, then no-send × intervals.
    choices = notes.intervals_ms.size
    send, length = action < choices, notes.intervals_ms[action % choices]
    turn.answers.send[n, column] = send
    if node.time_ms >= sizes.window_ms:
        return length  # R21: on the very end it may send, but there is no transition
    notes.action[stream, which] = action
    notes.start_ms[stream, which] = node.time_ms
    notes.length_ms[stream, which] = length
    if send:
        notes.reward[stream, which] -= sizes.price
    notes.decisions[stream] += 1
    return length


def _entry_point(fingerprint: str) -> Any:
    @entry_point
    def act(sizes, scales, networks, turn, en_chance, sn_chance, notes):
        """Answer every decision of a turn."""
        _ = fingerprint  # part of the cache key
        for n in range(turn.counts[EN_ROWS]):
            _dispatch(sizes, scales, networks, turn, en_chance, notes, n)
        for n in range(turn.counts[SN_ROWS]):
            _send(sizes, scales, networks, turn, sn_chance, notes, n)

    return act


def _fingerprint() -> str:
    """Of everything that is compiled in: whole rooms, so that no constant can be forgotten."""
    rooms = kernel, node_room, features, forward, rules
    return fingerprint_of(*(Path(str(room.__file__)).parent for room in rooms))


act = _entry_point(_fingerprint())
