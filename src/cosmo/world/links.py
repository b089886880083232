"""EN–SN links: one FIFO each way per pair, store and forward over the hops (R13)."""

import math

from cosmo.node import units
from cosmo.world.compiled import compiled, compiled_rule
from cosmo.world.events import push
from cosmo.world.outside import post
from cosmo.world.records import NO_TASK

UP, DOWN = 0, 1
_MBPS = units.BYTES_PER_MS
_transfer_ms = compiled_rule(units.transfer_ms)


@compiled
def rate_at(constants, state, w, link, direction, time):
    """Bytes per ms in force at a time; constant, or a step function (`fading`)."""
    nominal = constants.up_rate[link] if direction == UP else constants.down_rate[link]
    period = constants.settings[0].rate_period
    if period <= 0.0:
        return nominal
    steps = state.rate_factor.shape[2]
    step = min(int(time / period), steps - 1)
    return nominal * state.rate_factor[w, direction * state.links.shape[1] + link, step]


@compiled
def on_wire(constants, message_bytes):
    """Bytes that a message takes on a link: with framing, each packet brings its own headers."""
    fixed = constants.settings[0]
    if fixed.framing == 0.0:
        return message_bytes
    return message_bytes + fixed.framing * math.ceil(message_bytes / fixed.packet_bytes)


@compiled
def arrival_after_start(constants, link, message_bytes, start, rate):
    """When the last bit of a message that starts at `start` is at the other end (R13)."""
    fixed = constants.settings[0]
    size, packet = on_wire(constants, message_bytes), fixed.packet_bytes + fixed.framing
    return start + _transfer_ms(size, rate, constants.hops[link], constants.hop_delay[link], packet)


@compiled
def transmit(constants, state, w, link, direction, message_bytes, now):
    """Put a message on the link behind what is there; returns its delivery time.

    The rate in force when the transmission starts holds for the whole message.
    """
    here = state.links[w, link]
    free = here.up_free if direction == UP else here.down_free
    start = max(now, free)
    rate = rate_at(constants, state, w, link, direction, start)
    if direction == UP:
        here.up_free = start + on_wire(constants, message_bytes) / rate
    else:
        here.down_free = start + on_wire(constants, message_bytes) / rate
    return arrival_after_start(constants, link, message_bytes, start, rate)


@compiled
def deliver_later(constants, state, w, link, direction, message_bytes, arrival, what, subject):
    """Have a transmitted message make its event at `arrival`, or, if the network is outside, when
    that says so; `arrival` is then only what the EN and the SN estimate.
    """
    if constants.settings[0].outside:
        post(state, w, 0, link, direction, message_bytes, what, subject)
    else:
        push(state, w, arrival, what, subject)


@compiled
def write_rate_statistics(constants, state, w, link, direction, now, out):
    """Time-weighted mean and deviation of the rate over the last window, and now minus mean."""
    rate = rate_at(constants, state, w, link, direction, now) / _MBPS
    out[0], out[1], out[2] = rate, 0.0, 0.0
    period = constants.settings[0].rate_period
    start = max(0.0, now - constants.settings[0].history)
    if period <= 0.0 or now <= start:
        return
    first, second, left = 0.0, 0.0, start
    while left < now:
        right = min(now, (math.floor(left / period) + 1.0) * period)
        if right <= left:
            right = now
        value = rate_at(constants, state, w, link, direction, 0.5 * (left + right)) / _MBPS
        first += value * (right - left)
        second += value * value * (right - left)
        left = right
    mean = first / (now - start)
    out[0] = mean
    out[1] = math.sqrt(max(0.0, second / (now - start) - mean * mean))
    out[2] = rate - mean


@compiled
def join_flight(state, w, sn, task, arrival):
    """Note a task on its way to an SN, in the order in which the SN will get them."""
    service = state.services[w, sn]
    state.tasks[task].clock = arrival
    state.tasks[task].next = NO_TASK
    if service.flight_head == NO_TASK:
        service.flight_head = task
        service.flight_tail = task
    elif state.tasks[service.flight_tail].clock <= arrival:
        state.tasks[service.flight_tail].next = task
        service.flight_tail = task
    elif state.tasks[service.flight_head].clock > arrival:
        state.tasks[task].next = service.flight_head
        service.flight_head = task
    else:
        before = service.flight_head
        while state.tasks[state.tasks[before].next].clock <= arrival:
            before = state.tasks[before].next
        state.tasks[task].next = state.tasks[before].next
        state.tasks[before].next = task


@compiled
def leave_flight(state, w, sn, task):
    """A task has arrived: the first on its way, unless the network is outside and has its own
    order.
    """
    service = state.services[w, sn]
    if service.flight_head == task:
        service.flight_head = state.tasks[task].next
        if service.flight_head == NO_TASK:
            service.flight_tail = NO_TASK
        return
    before = service.flight_head
    while state.tasks[before].next != task:
        before = state.tasks[before].next
    state.tasks[before].next = state.tasks[task].next
    if service.flight_tail == task:
        service.flight_tail = before
