"""A network that is not ours: messages are handed over to it, and it says when they arrive.

The world stops (NETWORK) whenever it has messages to hand over, or cannot go on before it knows
whether one arrives first. Both clocks move together: the network never runs past the next event of
the world, nor the world past what the network has told. What the world keeps of the network is the
same as ever: link backlogs as the nodes themselves estimate them, and R4 for tasks that never
arrive.
"""

import numpy as np

from cosmo.world.compiled import compiled
from cosmo.world.events import ACK_AT_SN, EN_DECISION, STATUS_AT_EN, push
from cosmo.world.records import PENDING, UNDECIDED

LOST = -1  # what a lost message makes on delivery


@compiled
def post(state, w, uplink, place, down, message_bytes, what, subject):
    """Hand a message over; there is room for one an EN and one more, all that an event sends."""
    world = state.worlds[w]
    item = state.posts[w, world.posts]
    item.bytes = message_bytes
    item.what = what
    item.subject = subject
    item.place = place
    item.uplink = uplink
    item.down = down
    world.posts += 1
    if uplink:
        world.on_air += 1
    else:
        world.on_links += 1


@compiled
def must_wait(constants, state, w, time):
    """Whether the network has to be asked before the world's next event, which is at `time`."""
    world = state.worlds[w]
    if world.posts == 0:
        if world.on_air == 0 and world.on_links == 0:
            return False
        if world.network >= time:
            return False
    world.horizon = time
    if time == np.inf and world.on_links == 0:
        world.horizon = world.last_chance
    return True


@compiled
def give_up(state, w):
    """R4: what is still on the air when nothing else can happen has no decision."""
    world = state.worlds[w]
    if world.posts > 0 or world.on_links > 0 or world.network < world.last_chance:
        return
    for task in range(world.first_task, world.end_task):
        item = state.tasks[task]
        if item.outcome == PENDING and np.isnan(item.decided):
            item.outcome = UNDECIDED
    world.on_air = 0


@compiled
def receive(constants, state, w, told):
    """Deliveries become events; the caller has made sure that there is room for them."""
    world = state.worlds[w]
    for k in range(told.size):
        what, subject, time = told[k].what, told[k].subject, told[k].time
        if what == EN_DECISION:
            world.on_air -= 1
            item = state.tasks[subject]
            if time > item.generated + item.deadline + constants.settings[0].undecided_after:
                item.outcome = UNDECIDED
                continue
        else:
            world.on_links -= 1
        if what == LOST:
            continue
        if what in (STATUS_AT_EN, ACK_AT_SN):
            time += state.messages[w, subject].jitter
        push(state, w, time, what, subject)
