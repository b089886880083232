"""What nodes see at a decision; beside it, for measurement and training alone, the truth."""

import numpy as np

from cosmo.node import NOBODY
from cosmo.world.access import observe_throughput, residual_time
from cosmo.world.compiled import compiled
from cosmo.world.foresight import foresee
from cosmo.world.links import DOWN, UP, write_rate_statistics
from cosmo.world.nodes import has_room, write_state
from cosmo.world.records import ANY_FEASIBLE
from cosmo.world.service import write_recent
from cosmo.world.status import since


@compiled
def _account(constants, state, turn, w, now, row):
    """How old and how wrong the cached state is at this decision (largest normalised component)."""
    fixed, en = constants.settings[0], turn.dispatch[row].en
    age, error = 0.0, 0.0
    first, end = constants.first_link[en], constants.first_link[en + 1]
    for link in range(first, end):
        cache, node = state.caches[w, link], fixed.ens + constants.link_sn[link]
        age += now - since(cache.source)
        worst = 0.0
        for k in range(constants.state_scale.shape[1]):
            gap = abs(turn.true_state[row, link - first, k] - cache.snapshot[k])
            worst = max(worst, gap / constants.state_scale[node, k])
        error += worst
    world = state.worlds[w]
    world.decisions += 1
    world.decision_age += age / (end - first)
    world.decision_error += error / (end - first)


@compiled
def _blank(node, source, numbers, rate, row, column):
    """A column without a node; another row's may have been there."""
    node[row, column] = NOBODY
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
    first, end = constants.first_link[en], constants.first_link[en + 1]
    for link in range(first, end):
        column, sn = link - first, constants.link_sn[link]
        turn.reached[row, column] = sn
        turn.status_source[row, column] = state.caches[w, link].source
        for k in range(fixed.dimensions):
            turn.status[row, column, k] = state.cached[w, link, k]
        write_rate_statistics(constants, state, w, link, UP, now, turn.up_link[row, column])
        turn.up_backlog[row, column] = max(0.0, state.links[w, link].up_free - now)
        write_state(constants, state, w, fixed.ens + sn, now, turn.true_state[row, column])
    for column in range(end - first, fixed.most_sns):
        _blank(turn.reached, turn.status_source, turn.status, turn.up_link, row, column)
        turn.up_backlog[row, column] = np.inf
        turn.true_state[row, column] = 0.0
    if foresee(constants, state, w, task, now, turn.estimate[row], turn.feasible[row]):
        item.marks |= ANY_FEASIBLE
    # For the answer: by then another world may have written its next decision into the row.
    for route in range(1 + fixed.most_sns):
        state.foreseen[w, route] = turn.feasible[row, route]
    service = item.cycles / constants.node_rate[en]
    seen.local_wait_ms = max(0.0, turn.estimate[row, 0] - (now - item.generated) - service)
    if item.generated >= fixed.warmup:
        _account(constants, state, turn, w, now, row)


@compiled
def show_status(constants, state, turn, w, sn, now, row):
    """Write what an SN sees when it must decide on an update."""
    fixed = constants.settings[0]
    seen = turn.update[row]
    seen.world = w
    seen.sn = sn
    seen.time_ms = now
    write_state(constants, state, w, fixed.ens + sn, now, seen.sn_state)
    write_recent(constants, state, w, sn, now, seen)
    first, end = constants.first_told[sn], constants.first_told[sn + 1]
    for place in range(first, end):
        column, link = place - first, constants.told_link[place]
        turn.told[row, column] = constants.link_en[link]
        turn.acknowledged_source[row, column] = state.caches[w, link].acknowledged
        for k in range(fixed.dimensions):
            turn.acknowledged[row, column, k] = state.acknowledged[w, link, k]
        write_rate_statistics(constants, state, w, link, DOWN, now, turn.down_link[row, column])
    for column in range(end - first, fixed.most_ens):
        _blank(turn.told, turn.acknowledged_source, turn.acknowledged, turn.down_link, row, column)


@compiled
def show_result(constants, state, turn, w, task, now, row):
    """Write what an SN sees when a result is about to leave: may a status ride on it (R31)?"""
    item = state.tasks[task]
    link = constants.first_link[item.node] + item.action - 1
    sn = constants.link_sn[link]
    seen = turn.result[row]
    seen.world = w
    seen.sn = sn
    seen.en = item.node
    seen.time_ms = now
    write_state(constants, state, w, constants.settings[0].ens + sn, now, seen.sn_state)
    seen.acknowledged_source = state.caches[w, link].acknowledged
    for k in range(constants.settings[0].dimensions):
        turn.result_acknowledged[row, k] = state.acknowledged[w, link, k]
