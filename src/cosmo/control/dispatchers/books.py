"""`self-tracking`: the EN keeps its own books of what it has offloaded, and needs no update.

With a single EN and no other load, the SN holds nothing but the EN's own tasks; their sizes and
demands, the link and the SN's speed are known, so when each of them starts and finishes can be
worked out.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.estimate import faster_feasible
from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.method import Setting
from cosmo.world import DispatchObservation

Floats = NDArray[np.float64]
Actions = NDArray[np.int64]

_MOST_OUTSTANDING = 128  # entries kept per EN and SN; the oldest make way


class SelfTrackingDispatcher:
    """`estimate` on books of the SNs' queues: first come, first served onto the slots they have."""

    def __init__(self, setting: Setting) -> None:
        scenario = setting.scenario
        self._nodes = KnownNodes(scenario)
        books = len(setting.episodes), scenario.en.count, scenario.sn.count
        slots = int(self._nodes.sn_slots.max())
        # When each slot will be done with what was sent to it; slots that do not exist never are.
        self._slot_free = np.zeros((*books, slots))
        self._slot_free[:, :, np.arange(slots) >= self._nodes.sn_slots[:, None]] = np.inf
        self._finish = np.full((*books, _MOST_OUTSTANDING), -np.inf)
        self._reserved = np.zeros((*books, _MOST_OUTSTANDING))
        self._next = np.zeros(books, np.int64)

    def would_decide(self, tasks: DispatchObservation) -> Actions:
        """The choice, without writing it into the books."""
        nodes, place = self._nodes, (tasks.world, tasks.en)
        arrival = tasks.time_ms[:, None] + nodes.upload_ms(tasks)
        wait = np.maximum(self._slot_free[place].min(axis=2) - arrival, 0.0)
        there = self._finish[place] > tasks.time_ms[:, None, None]
        reserved = (self._reserved[place] * there).sum(axis=2)
        room = nodes.sn_storage - reserved >= nodes.reservation(tasks)[:, None]
        room &= there.sum(axis=2) < nodes.sn_places
        return faster_feasible(nodes, tasks, wait, room)

    def decide(self, tasks: DispatchObservation) -> Actions:
        """The choice, written down."""
        actions = self.would_decide(tasks)
        sent = np.flatnonzero((actions > 0) & (actions < tasks.reject))
        sn = actions[sent] - 1
        place = tasks.world[sent], tasks.en[sent], sn
        arrival = tasks.time_ms[sent] + self._nodes.upload_ms(tasks)[sent, sn]
        slot = self._slot_free[place].argmin(axis=1)
        start = np.maximum(arrival, self._slot_free[(*place, slot)])
        finish = start + tasks.cycles[sent] / self._nodes.sn_rate[sn]
        self._slot_free[(*place, slot)] = finish
        entry = self._next[place]
        self._finish[(*place, entry)] = finish
        self._reserved[(*place, entry)] = self._nodes.reservation(tasks)[sent]
        self._next[place] = (entry + 1) % _MOST_OUTSTANDING
        return actions
