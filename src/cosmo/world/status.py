"""Status messages, the EN's cache of them, acknowledgements (R14), and the age of the cache."""

import numpy as np

from cosmo.node.observation import RAW_FIELDS
from cosmo.world.compiled import compiled
from cosmo.world.events import ACK_AT_SN, STATUS_AT_EN, note
from cosmo.world.links import DOWN, UP, deliver_later, transmit
from cosmo.world.nodes import write_state
from cosmo.world.outside import LOST, post
from cosmo.world.records import TAKEN


@compiled
def _uniform(state, w):
    """A draw from [0, 1) of the world's own generator (SplitMix64)."""
    world = state.worlds[w]
    world.random += np.uint64(0x9E3779B97F4A7C15)
    mixed = world.random
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.float64(mixed >> np.uint64(11)) * 2.0**-53


@compiled
def _take(state, w):
    """A free message; the loop has made sure that there is one."""
    world = state.worlds[w]
    taken = world.free_message
    world.free_message = state.messages[w, taken].next
    world.free_messages -= 1
    return taken


@compiled
def _release(state, w, taken):
    world = state.worlds[w]
    state.messages[w, taken].next = world.free_message
    world.free_message = taken
    world.free_messages += 1


@compiled
def _transfer(constants, state, w, taken, direction, message_bytes, what, now):
    """Send a message or its acknowledgement; on the way it may be delayed (jitter) or lost."""
    fixed = constants.settings[0]
    link = state.messages[w, taken].link
    arrival = transmit(constants, state, w, link, direction, message_bytes, now)
    if fixed.loss > 0.0 and _uniform(state, w) < fixed.loss:
        if fixed.outside:  # it takes its time on the link all the same
            post(state, w, 0, link, direction, message_bytes, LOST, taken)
        _release(state, w, taken)
        return
    state.messages[w, taken].jitter = 0.0
    if fixed.jitter > 0.0:
        state.messages[w, taken].jitter = fixed.jitter * _uniform(state, w)
        arrival += state.messages[w, taken].jitter
    deliver_later(constants, state, w, link, direction, message_bytes, arrival, what, taken)


@compiled
def since(source):
    """From when on a status ages: the start, while there is none (R14)."""
    return source if source == source else 0.0


@compiled
def _made(constants, state, w, link, numbers, message_bytes, now):
    """A status for the EN of a link, charged for; returns the message."""
    fixed, world = constants.settings[0], state.worlds[w]
    taken = _take(state, w)
    message = state.messages[w, taken]
    message.source = now
    message.link = link
    for k in range(fixed.dimensions):
        state.carried[w, taken, k] = numbers[k]
    # Not from the turn's row: another world may have written its next decision there already.
    write_state(constants, state, w, fixed.ens + constants.link_sn[link], now, message.snapshot)
    world.updates += 1
    world.status_bytes += message_bytes
    return taken


@compiled
def send_status(constants, state, turn, w, sn, row, now):
    """The SN sends the numbers of its updater to the ENs that its updater chose (R28, R31)."""
    size, first = constants.settings[0].status_bytes, constants.first_told[sn]
    for place in range(first, constants.first_told[sn + 1]):
        if turn.answers.send[row, place - first]:
            link = constants.told_link[place]
            taken = _made(constants, state, w, link, turn.answers.numbers[row], size, now)
            _transfer(constants, state, w, taken, DOWN, size, STATUS_AT_EN, now)


@compiled
def ride_status(constants, state, turn, w, link, row, now):
    """A status rides on a result over this link (R31); returns the message, which is not lost, nor
    late on its own.
    """
    size = constants.settings[0].ride_bytes
    state.worlds[w].rides += 1
    return _made(constants, state, w, link, turn.answers.ride_numbers[row], size, now)


@compiled
def _count_age(constants, cache, now):
    """Add up the age at the EN since it was last counted, within the measured window."""
    fixed = constants.settings[0]
    source = since(cache.source)
    start, end = max(cache.counted_until, fixed.warmup), min(now, fixed.window)
    if end > start:
        cache.age_area += 0.5 * ((end - source) ** 2 - (start - source) ** 2)
    if fixed.warmup <= now < fixed.window:
        cache.age_peaks += now - source
        cache.falls += 1
    cache.counted_until = now


@compiled
def receive_status(constants, state, w, taken, now):
    """The cache takes only what is newer than what it holds, and acknowledges what it took."""
    message = state.messages[w, taken]
    cache = state.caches[w, message.link]
    if message.source <= cache.source:  # NaN: nothing yet
        _release(state, w, taken)
        return
    _count_age(constants, cache, now)
    cache.source = message.source
    note(state, w, TAKEN, message.link, message.source, now)
    for k in range(constants.settings[0].dimensions):
        state.cached[w, message.link, k] = state.carried[w, taken, k]
    for k in range(RAW_FIELDS):
        cache.snapshot[k] = message.snapshot[k]
    ack_bytes = constants.settings[0].ack_bytes
    _transfer(constants, state, w, taken, UP, ack_bytes, ACK_AT_SN, now)


@compiled
def forget_acknowledged(constants, state, w, sn):
    """An SN that fails does not know what any EN holds (R38)."""
    for place in range(constants.first_told[sn], constants.first_told[sn + 1]):
        link = constants.told_link[place]
        state.caches[w, link].acknowledged = np.nan
        for k in range(constants.settings[0].dimensions):
            state.acknowledged[w, link, k] = 0.0


@compiled
def receive_ack(constants, state, w, taken):
    """The SN's view of the cache is the newest status that was acknowledged since it is up."""
    message = state.messages[w, taken]
    cache = state.caches[w, message.link]
    here = state.nodes[w, constants.settings[0].ens + constants.link_sn[message.link]]
    known = here.up and message.source >= here.up_since
    if known and not message.source <= cache.acknowledged:  # NaN: nothing yet
        cache.acknowledged = message.source
        for k in range(constants.settings[0].dimensions):
            state.acknowledged[w, message.link, k] = state.carried[w, taken, k]
    _release(state, w, taken)
