"""What nodes see at a decision; beside it, for measurement and training alone, the truth."""

import numpy as np

from cosmo.node import NO_NODE
from cosmo.world.access import observe_throughput, residual_time
from cosmo.world.compiled import compiled
from cosmo.world.fates import own_number
from cosmo.world.foresight import foresee, seen_wait
from cosmo.world.links import DOWN, UP, write_rate_statistics
from cosmo.world.nodes import has_room, rate_of, seen_cycles, write_state
from cosmo.world.records import ANY_FEASIBLE
from cosmo.world.service import write_recent
from cosmo.world.status import since


@compiled
def _account(constants, state, turn, w, now, row):
    """How old and how wrong the cached state is at this decision (largest normalised component)."""
    fixed, en = constants.settings[0], turn.seen.dispatch[row].en
    age, error = 0.0, 0.0
    first, end = constants.first_link[en], constants.first_link[en + 1]
    for link in range(first, end):
        cache, node = state.caches[w, link], fixed.ens + constants.link_sn[link]
        age += now - since(cache.source)
        if not state.nodes[w, node].up:
            continue  # has no state that a status could be right about
        worst = 0.0
        for k in range(constants.state_scale.shape[1]):
            gap = abs(turn.truth.sn_state[row, link - first, k] - cache.snapshot[k])
            worst = max(worst, gap / constants.state_scale[node, k])
        error += worst
    world = state.worlds[w]
    world.decisions += 1
    world.decision_age += age / (end - first)
    world.decision_error += error / (end - first)


@compiled
def _blank(node, source, numbers, rate, row, column):
    """A column without a node; another row's may have been there."""
    node[row, column] = NO_NODE
    source[row, column] = np.nan
    numbers[row, column] = 0.0
    rate[row, column] = 0.0
    rate[row, column, 0] = 1.0


@compiled
def show_task(constants, state, turn, w, task, now, row):
    """Write what an EN sees of a task that has just reached it."""
    fixed = constants.settings[0]
    item = state.tasks[task]
    en = np.int64(item.node)
    seen = turn.seen.dispatch[row]
    seen.world = w
    seen.en = en
    seen.ue = item.ue
    seen.task = own_number(constants, state, w, task)
    turn.truth.place[row] = task - state.worlds[w].first_task
    seen.time_ms = now
    seen.generated_ms = item.generated
    seen.input_bytes = item.input_bytes
    seen.cycles = seen_cycles(state, w, task)
    seen.deadline_ms = item.deadline
    throughput, trend = observe_throughput(
        constants, state, w, en, np.int64(item.ue), item.input_bytes, now - item.generated
    )
    seen.throughput_mbps = throughput
    seen.throughput_trend_mbps = trend
    seen.residual_ms = residual_time(constants, item.ue, now)
    write_state(constants, state, w, en, now, seen.en_state)
    seen.en_speed = state.nodes[w, en].speed
    seen.local_room = has_room(constants, state, w, en, item.input_bytes, 0.0, 0)
    first, end = constants.first_link[en], constants.first_link[en + 1]
    for link in range(first, end):
        column, sn = link - first, constants.link_sn[link]
        turn.seen.sn[row, column] = sn
        turn.seen.status_ms[row, column] = state.caches[w, link].source
        for k in range(fixed.dimensions):
            turn.seen.status[row, column, k] = state.cached[w, link, k]
        write_rate_statistics(
            constants, state, w, link, UP, now, turn.seen.up_link_mbps[row, column]
        )
        turn.seen.up_backlog_ms[row, column] = max(0.0, state.links[w, link].up_free - now)
        write_state(constants, state, w, fixed.ens + sn, now, turn.truth.sn_state[row, column])
        turn.truth.sn_up[row, column] = state.nodes[w, fixed.ens + sn].up
    for column in range(end - first, fixed.most_sns):
        _blank(
            turn.seen.sn, turn.seen.status_ms, turn.seen.status, turn.seen.up_link_mbps, row, column
        )
        turn.seen.up_backlog_ms[row, column] = np.inf
        turn.truth.sn_state[row, column] = 0.0
        turn.truth.sn_up[row, column] = False
    delay, feasible = turn.truth.delay_ms[row], turn.truth.feasible[row]
    if foresee(constants, state, w, task, now, False, delay, feasible):
        item.marks |= ANY_FEASIBLE
    # For the answer: by then another world may have written its next decision into the row.
    for route in range(1 + fixed.most_sns):
        state.foreseen[w, route] = turn.truth.feasible[row, route]
    if state.worlds[w].unsure:
        seen.local_wait_ms = seen_wait(constants, state, w, en, now)
    else:
        service = item.cycles / rate_of(constants, state, w, en)
        elapsed = now - item.generated
        seen.local_wait_ms = max(0.0, turn.truth.delay_ms[row, 0] - elapsed - service)
    if item.generated >= fixed.warmup:
        _account(constants, state, turn, w, now, row)


@compiled
def show_status(constants, state, turn, w, sn, now, row):
    """Write what an SN sees when it must decide on an update."""
    fixed = constants.settings[0]
    seen = turn.seen.update[row]
    seen.world = w
    seen.sn = sn
    seen.time_ms = now
    write_state(constants, state, w, fixed.ens + sn, now, seen.sn_state)
    seen.sn_speed = state.nodes[w, fixed.ens + sn].speed
    seen.up_since_ms = state.nodes[w, fixed.ens + sn].up_since
    write_recent(constants, state, w, sn, now, seen)
    first, end = constants.first_told[sn], constants.first_told[sn + 1]
    for place in range(first, end):
        column, link = place - first, constants.told_link[place]
        turn.seen.en[row, column] = constants.link_en[link]
        turn.seen.acknowledged_ms[row, column] = state.caches[w, link].acknowledged
        for k in range(fixed.dimensions):
            turn.seen.acknowledged[row, column, k] = state.acknowledged[w, link, k]
        write_rate_statistics(
            constants, state, w, link, DOWN, now, turn.seen.down_link_mbps[row, column]
        )
    for column in range(end - first, fixed.most_ens):
        _blank(
            turn.seen.en,
            turn.seen.acknowledged_ms,
            turn.seen.acknowledged,
            turn.seen.down_link_mbps,
            row,
            column,
        )


@compiled
def show_result(constants, state, turn, w, task, now, row):
    """Write what an SN sees when a result is about to leave: may a status ride on it (R31)?"""
    item = state.tasks[task]
    link = constants.first_link[item.node] + item.action - 1
    sn = constants.link_sn[link]
    seen = turn.seen.result[row]
    seen.world = w
    seen.sn = sn
    seen.en = item.node
    seen.time_ms = now
    node = constants.settings[0].ens + sn
    write_state(constants, state, w, node, now, seen.sn_state)
    seen.sn_speed = state.nodes[w, node].speed
    seen.up_since_ms = state.nodes[w, node].up_since
    seen.acknowledged_ms = state.caches[w, link].acknowledged
    for k in range(constants.settings[0].dimensions):
        turn.seen.result_acknowledged[row, k] = state.acknowledged[w, link, k]
