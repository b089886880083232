"""One turn of many worlds, compiled: what the agents see, what they do, what is noted about it.

The same observations as `policy.features`, the same networks as `policy.networks`; a turn costs
microseconds instead of hundreds of them.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo import node as node_room
from cosmo.learn import forward
from cosmo.learn.en_agent import ACCEPT_LABEL, ACTION, ROUTE_LABEL
from cosmo.node import RAW
from cosmo.policy import features
from cosmo.policy.features import EN_LINK, EN_LOCAL
from cosmo.policy.rules import run as rules
from cosmo.world import kernel
from cosmo.world.compiled import compiled, compiled_rule, entry_point, fingerprint_of
from cosmo.world.records import EN_ROWS, SN_ROWS
from cosmo.world.status import since

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]


class Sizes(NamedTuple):
    """Of the networks, and how they are used."""

    semantic: bool
    dimensions: int
    encoder_first: int
    encoder_second: int
    remotes: int
    branch: int
    fusion: int
    gate_first: bool
    with_age: bool
    inputs: int
    projection: int
    hidden: int
    actions: int
    stale_loss_weight: float  # in units of utility
    price: float  # of sending a status, in units of utility
    discount_per_ms: float  # inside an interval (R33)
    window_ms: float


class Scales(NamedTuple):
    """What makes observations comparable (R18)."""

    en_state: Doubles
    sn_state: Doubles
    up_mbps: Doubles
    down_mbps: Doubles
    task: Doubles  # bytes, cycles, ms
    delay_ms: float
    throughput_mbps: float
    residual_ms: float
    age_ms: float
    most_age: float


class Networks(NamedTuple):
    """Every run's parameters, a row each."""

    encoder: Floats
    en: Floats
    sn: Floats


class Chance(NamedTuple):
    """ε-greedy exploration: ε for each run, and the episode's draws."""

    steps: Ints  # decisions so far, of the whole training
    first: float
    last: float
    over: int
    chance: Doubles  # [run, decision]
    choice: Ints


class Notes(NamedTuple):
    """What training keeps of an episode's decisions."""

    rows: Floats  # [run, task, column] EN transitions that wait for their outcome
    latest: Ints  # [run] the task that the EN decided last, -1 before the first
    next_task: Ints  # [run, task] that it decided after this one, -1 as long as there is none
    interval: Ints  # [run, task] the SN interval that the task was decided in
    worth: Doubles  # [run, task] of a unit of its utility, at that interval's start (R33)
    decisions: Ints  # [run] of the SN so far, and of each:
    seen: Floats
    before: Floats  # the hidden state
    action: Ints
    start_ms: Doubles
    length_ms: Doubles
    reward: Doubles
    pending: Ints  # tasks that are not final yet
    hidden: Floats  # [run, unit] as it is now
    intervals_ms: Doubles
    scratch: Floats  # room for layers


_has_returned = compiled_rule(rules.has_returned)


@compiled
def _decided(chance, run, which, greedy):
    """A random action with probability ε, else the greedy one."""
    share = min(chance.steps[run] / chance.over, 1.0)
    epsilon = chance.first + share * (chance.last - chance.first)
    chance.steps[run] += 1
    return chance.choice[run, which] if chance.chance[run, which] < epsilon else greedy


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
def _see_remote(sizes, scales, networks, turn, n, fresh, out, scratch):
    """The statuses that the EN holds and the links, or, for the stale loss, fresh statuses."""
    task = turn.seen.dispatch[n]
    sns = turn.seen.status_ms.shape[1]
    width = sizes.dimensions + EN_LINK
    for sn in range(sns):
        start = sn * (width + (1 if sizes.with_age else 0))
        if fresh:
            state = turn.truth.sn_state[n, sn]
            _semantic(sizes, scales, networks, task.world, sn, state, out[start:], scratch)
        else:
            for k in range(sizes.dimensions):
                out[start + k] = turn.seen.status[n, sn, k]
        for k in range(EN_LINK):
            out[start + sizes.dimensions + k] = (
                turn.seen.up_link_mbps[n, sn, k] / scales.up_mbps[task.en, sn]
            )
        if sizes.with_age:
            source = task.time_ms if fresh else turn.seen.status_ms[n, sn]
            out[start + width] = _age(scales, task.time_ms, source)


@compiled
def _en_scores(sizes, parameters, local, remote, routes, out, scratch):
    forward.en_scores(
        parameters,
        local,
        EN_LOCAL,
        remote,
        sizes.remotes,
        sizes.branch,
        sizes.fusion,
        routes,
        sizes.gate_first,
        out,
        scratch[0],
        scratch[1],
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
    task = turn.seen.dispatch[n]
    run, scratch = task.world, notes.scratch
    routes = turn.truth.delay_ms.shape[1]
    row = notes.rows[run, task.task]
    remote, scores = row[EN_LOCAL:], scratch[5]
    _see_local(scales, task, row)
    _see_remote(sizes, scales, networks, turn, n, False, remote, scratch)
    _en_scores(sizes, networks.en[run], row, remote, routes, scores, scratch)
    greedy = forward.en_greedy(scores, routes, sizes.gate_first)
    action = _decided(chance, run, task.task, greedy)
    turn.answers.action[n] = action

    # R23: accept if any route is feasible; then the feasible one with the smaller delay.
    best, accept = 0, False
    for route in range(routes):
        if turn.truth.feasible[n, route] and (
            not accept or turn.truth.delay_ms[n, route] < turn.truth.delay_ms[n, best]
        ):
            best, accept = route, True
    told = EN_LOCAL + sizes.remotes
    row[told + ACTION] = action
    row[told + ACCEPT_LABEL] = accept
    row[told + ROUTE_LABEL] = best
    if notes.latest[run] >= 0:
        notes.next_task[run, notes.latest[run]] = task.task
    notes.latest[run] = task.task

    # The interval that the decision falls into, [u_n, u_n+1). R5: at the very start of the next
    # one the EN decides before the SN does.
    interval = notes.decisions[run] - 1
    following = notes.start_ms[run, interval] + notes.length_ms[run, interval]
    begun = notes.start_ms[run, interval]
    # An outage voids the pending decision: the interval lasts until the SN is back (R38).
    there = turn.truth.sn_up[n, 0]
    if there and task.time_ms >= following and following < sizes.window_ms:
        interval, begun = interval + 1, task.time_ms
    worth = sizes.discount_per_ms ** (task.time_ms - begun)
    notes.interval[run, task.task] = interval
    notes.worth[run, task.task] = worth
    notes.pending[run, interval] += 1

    if sizes.stale_loss_weight > 0.0:
        # What the stale view costs in the EN's own eyes: with a status sent just now, by how much
        # is the best action better than the one it chose?
        remote = scratch[4]
        _see_remote(sizes, scales, networks, turn, n, True, remote, scratch)
        _en_scores(sizes, networks.en[run], row, remote, routes, scores, scratch)
        fresh = forward.en_greedy(scores, routes, sizes.gate_first)
        loss = _value(scores, fresh, routes, sizes.gate_first) - _value(
            scores, greedy, routes, sizes.gate_first
        )
        notes.reward[run, interval] -= sizes.stale_loss_weight * loss * worth


@compiled
def _send(sizes, scales, networks, turn, chance, notes, n):
    node = turn.seen.update[n]
    run, sn, scratch, size = node.world, node.sn, notes.scratch, sizes.dimensions
    which = notes.decisions[run]
    if _has_returned(node):  # R38: that ends the interval, and the SN remembers nothing
        notes.length_ms[run, which - 1] = node.time_ms - notes.start_ms[run, which - 1]
        for k in range(sizes.hidden):
            notes.hidden[run, k] = 0.0
    seen, hidden = notes.seen[run, which], notes.hidden[run]
    oldest = 0
    for en in range(turn.seen.acknowledged_ms.shape[1]):
        if since(turn.seen.acknowledged_ms[n, en]) < since(turn.seen.acknowledged_ms[n, oldest]):
            oldest = en
    # The encoder runs at the SN: these very numbers are what a status carries (R28).
    _semantic(sizes, scales, networks, run, sn, node.sn_state, seen, scratch)
    for k in range(size):
        turn.answers.numbers[n, k] = seen[k]
        seen[size + k] = turn.seen.acknowledged[n, oldest, k]
    others = seen[2 * size :]
    source = turn.seen.acknowledged_ms[n, oldest]
    if source != source:  # nothing since the SN is up
        source = node.up_since_ms
    others[0] = _age(scales, node.time_ms, source)
    others[1] = node.recent_delay_ms / scales.delay_ms
    others[2] = node.recent_success
    others[3] = node.recent_failure
    for k in range(3):
        others[4 + k] = turn.seen.down_link_mbps[n, oldest, k] / scales.down_mbps[sn, oldest]

    for k in range(sizes.hidden):
        notes.before[run, which, k] = hidden[k]
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
    greedy = 0
    for k in range(1, sizes.actions):
        if values[k] > values[greedy]:
            greedy = k
    action = _decided(chance, run, which, greedy)
    # Send × intervals come first, then no-send × intervals.
    choices = notes.intervals_ms.size
    send, length = action < choices, notes.intervals_ms[action % choices]
    for k in range(turn.answers.send.shape[1]):
        turn.answers.send[n, k] = send
    turn.answers.interval_ms[n] = length
    if node.time_ms >= sizes.window_ms:
        return  # R21: on the very end it may send, but there is no transition
    notes.action[run, which] = action
    notes.start_ms[run, which] = node.time_ms
    notes.length_ms[run, which] = length
    if send:
        notes.reward[run, which] -= sizes.price
    notes.decisions[run] += 1


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
