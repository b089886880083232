"""SNs that fail and come back with nothing (R38)."""

import numpy as np

from cosmo.world.compiled import compiled
from cosmo.world.events import FINISH, SN_DECISION, push, remove
from cosmo.world.fates import lose
from cosmo.world.nodes import clear
from cosmo.world.records import NO_TASK
from cosmo.world.service import forget_recent
from cosmo.world.status import forget_acknowledged


@compiled
def tasks_at(constants, state, w, node):
    """Running and waiting tasks of a node."""
    here = state.nodes[w, node]
    return constants.node_slots[node] - here.idle + here.waiting


@compiled
def _lose_own(state, turn, w, task, now):
    """A task is gone; of a tenant's nobody keeps the record."""
    if task < state.worlds[w].end_task:
        lose(state, turn, w, task, now)


@compiled
def go_down(constants, state, turn, w, node, now):
    """All that the SN has and knows is gone. Links go on with what they were handed before."""
    sn = node - constants.settings[0].ens
    here = state.nodes[w, node]
    for slot in range(constants.first_slot[node], constants.first_slot[node + 1]):
        task = np.int64(state.slots[w, slot].task)
        if task != NO_TASK:
            remove(state, w, FINISH, slot)
            _lose_own(state, turn, w, task, now)
    task = np.int64(here.head)
    for _ in range(here.waiting):
        following = np.int64(state.tasks[task].next)
        _lose_own(state, turn, w, task, now)
        task = following
    clear(constants, state, w, node)
    remove(state, w, SN_DECISION, sn)
    forget_recent(state, w, sn)
    forget_acknowledged(constants, state, w, sn)
    here.up = False


@compiled
def come_back(constants, state, w, node, now):
    """The SN is there again; its updater is asked as at the start."""
    fixed = constants.settings[0]
    sn = node - fixed.ens
    here = state.nodes[w, node]
    here.up = True
    here.up_since = now
    anybody = constants.first_told[sn + 1] > constants.first_told[sn]
    if fixed.dimensions > 0 and anybody and now <= fixed.window:
        push(state, w, now, SN_DECISION, sn)
