"""What nodes see at a decision; beside it, for measurement and training alone, the truth."""

import numpy as np

from cosmo.world.access import observe_throughput, residual_time
from cosmo.world.compiled import compiled
from cosmo.world.foresight import foresee
from cosmo.world.links import DOWN, UP, write_rate_statistics
from cosmo.world.nodes import has_room, write_state
from cosmo.world.service import write_recent
from cosmo.world.status import since


@compiled
def _account(constants, state, turn, w, now, row):
    """How old and how wrong the cached state is at this decision (largest normalised component)."""
    fixed = constants.settings[0]
    age, error = 0.0, 0.0
    for sn in range(fixed.sns):
        cache = state.caches[w, np.int64(turn.dispatch[row].en) * fixed.sns + sn]
        age += now - since(cache.source)
        worst = 0.0
        for k in range(constants.state_scale.shape[1]):
            gap = abs(turn.true_state[row, sn, k] - cache.snapshot[k])
            worst = max(worst, gap / constants.state_scale[fixed.ens + sn, k])
        error += worst
    world = state.worlds[w]
    world.decisions += 1
    world.decision_age += age / fixed.sns
    world.decision_error += error / fixed.sns


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
    for sn in range(fixed.sns):
        link = en * fixed.sns + sn
        turn.status_source[row, sn] = state.caches[w, link].source
        for k in range(fixed.dimensions):
            turn.status[row, sn, k] = state.cached[w, link, k]
        write_rate_statistics(constants, state, w, link, UP, now, turn.up_link[row, sn])
        turn.up_backlog[row, sn] = max(0.0, state.links[w, link].up_free - now)
        write_state(constants, state, w, fixed.ens + sn, now, turn.true_state[row, sn])
    item.feasible = foresee(constants, state, w, task, now, turn.estimate[row], turn.feasible[row])
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
    for en in range(fixed.ens):
        link = en * fixed.sns + sn
        turn.acknowledged_source[row, en] = state.caches[w, link].acknowledged
        for k in range(fixed.dimensions):
            turn.acknowledged[row, en, k] = state.acknowledged[w, link, k]
        write_rate_statistics(constants, state, w, link, DOWN, now, turn.down_link[row, en])
