"""The cell: one channel shared by the UEs of an EN, and UEs that move (R4, R6, R7, R8)."""

import math

from cosmo.node.units import BYTES_PER_MS
from cosmo.world.compiled import compiled
from cosmo.world.events import CHANNEL_REQUEST, EN_DECISION, push
from cosmo.world.outside import post
from cosmo.world.records import UNDECIDED


@compiled
def request_channel(constants, state, w, task, now):
    """A task asks for its cell's channel; when it gets through, its EN decision is scheduled."""
    fixed = constants.settings[0]
    item = state.tasks[task]
    # A network outside has its own channel: whoever is in range may send.
    free = now if fixed.outside else state.channel_free[w, item.node]
    start = max(now, free)
    last_chance = item.generated + item.deadline + fixed.undecided_after
    if start < constants.ue_enter[item.ue] <= last_chance:
        push(state, w, constants.ue_enter[item.ue], CHANNEL_REQUEST, task)
        return
    if start < constants.ue_enter[item.ue] or start > constants.ue_leave[item.ue]:
        item.outcome = UNDECIDED
        item.clock = last_chance
        return
    if fixed.outside:
        item.clock = last_chance
        state.worlds[w].last_chance = max(state.worlds[w].last_chance, last_chance)
        place = item.node * fixed.ues + item.ue
        post(state, w, 1, place, 0, item.input_bytes, EN_DECISION, task)
        return
    hold = fixed.access_overhead + item.input_bytes / fixed.access_bytes_per_ms
    if free > now:
        hold += fixed.contention
    done = start + hold
    state.channel_free[w, item.node] = done
    if done > last_chance:
        item.outcome = UNDECIDED
        item.clock = last_chance
    else:
        push(state, w, done, EN_DECISION, task)


@compiled
def observe_throughput(constants, state, w, en, ue, sample_bytes, delay):
    """R8: fold in a sample; returns the smoothed throughput and its trend, in Mbps."""
    here = state.ues[w, en * constants.settings[0].ues + ue]
    nominal = constants.settings[0].access_bytes_per_ms
    sample = (sample_bytes / delay if delay > 0.0 else nominal) / BYTES_PER_MS
    before = here.throughput
    here.samples += 1
    if here.samples == 1:
        here.throughput = sample
        return sample, 0.0
    weight = constants.settings[0].throughput_weight
    here.throughput = weight * sample + (1.0 - weight) * before
    return here.throughput, here.throughput - before


@compiled
def residual_time(constants, ue, now):
    """R7: time until the UE is next at the edge of the radius, capped for those that never are."""
    edge = constants.ue_edge[ue]
    crossing = constants.ue_crossing[ue]
    if now > edge and crossing > 0.0:  # it turns at the edge and walks to and fro
        edge += math.ceil((now - edge) / crossing) * crossing
    return min(max(edge - now, 0.0), constants.settings[0].residual_cap)
