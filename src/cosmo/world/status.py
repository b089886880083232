"""Status messages, the EN's cache of them, and acknowledgements (R14)."""

from cosmo.world.compiled import compiled
from cosmo.world.events import ACK_AT_SN, STATUS_AT_EN, push
from cosmo.world.links import DOWN, UP, transmit
from cosmo.world.nodes import write_state
from cosmo.world.records import STATE_FIELDS


@compiled
def send_status(constants, state, w, sn, now):
    """The SN sends its state to every EN; the caller has made sure that there are messages left."""
    fixed = constants.settings[0]
    world = state.worlds[w]
    for en in range(fixed.ens):
        taken = world.free_message
        message = state.messages[w, taken]
        world.free_message = message.next
        world.free_messages -= 1
        world.updates += 1
        message.source = now
        message.link = en * fixed.sns + sn
        write_state(constants, state, w, fixed.ens + sn, now, message.state)
        arrival = transmit(constants, state, w, message.link, DOWN, fixed.status_bytes, now)
        push(state, w, arrival, STATUS_AT_EN, taken)


@compiled
def _release(state, w, taken):
    world = state.worlds[w]
    state.messages[w, taken].next = world.free_message
    world.free_message = taken
    world.free_messages += 1


@compiled
def receive_status(constants, state, w, taken, now):
    """The cache takes only what is newer than what it holds, and acknowledges what it took."""
    message = state.messages[w, taken]
    cache = state.caches[w, message.link]
    if message.source <= cache.source:
        _release(state, w, taken)
        return
    cache.source = message.source
    for k in range(STATE_FIELDS):
        cache.state[k] = message.state[k]
    ack_bytes = constants.settings[0].ack_bytes
    arrival = transmit(constants, state, w, message.link, UP, ack_bytes, now)
    push(state, w, arrival, ACK_AT_SN, taken)


@compiled
def receive_ack(state, w, taken):
    """The SN's view of the cache is the newest state that was acknowledged."""
    message = state.messages[w, taken]
    cache = state.caches[w, message.link]
    if message.source > cache.acknowledged:
        cache.acknowledged = message.source
        for k in range(STATE_FIELDS):
            cache.acknowledged_state[k] = message.state[k]
    _release(state, w, taken)
