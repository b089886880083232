"""`self-tracking`: the EN keeps its own books of what it has offloaded, and needs no update.

With a single EN and no other load, the SN holds nothing but the EN's own tasks; their sizes and
demands, the link and the SN's speed are known, so when each of them starts and finishes can be
worked out.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Site
from cosmo.policy.dispatchers.estimate import faster_feasible
from cosmo.policy.queue import append, first_slots

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Actions = NDArray[np.int64]


class SelfTrackingDispatcher(Dispatcher):
    """`estimate` on books of the SNs' queues: first come, first served onto the slots they have."""

    def __init__(self, site: Site) -> None:
        self._site = site
        reach = site.links.reach
        books = site.worlds, *reach.shape
        # When each slot will be done with what was sent to it.
        self.slot_free = first_slots(site.sn.slots[reach], (site.worlds,))
        entries = int(site.most_tasks(site.sn).max())
        self.finish = np.full((*books, entries), -np.inf)
        self.reserved = np.zeros((*books, entries))

    def would_decide(self, tasks: DispatchObservation) -> Actions:
        """The choice, without writing it into the books."""
        site, place = self._site, (tasks.world, tasks.en)
        upload = site.upload_ms(tasks)
        arrival = tasks.time_ms[:, None] + upload
        wait = np.maximum(self.slot_free[place].min(axis=2) - arrival, 0.0)
        there = self.finish[place] > tasks.time_ms[:, None, None]
        reserved = (self.reserved[place] * there).sum(axis=2)
        needed = site.reservation(tasks.input_bytes)[:, None]
        room = site.sn.storage_bytes[tasks.sn] - reserved >= needed
        room &= there.sum(axis=2) < site.sn.queue_capacity[tasks.sn]
        room &= self.usable(tasks)
        return faster_feasible(site, tasks, wait, room, upload)

    def usable(self, tasks: DispatchObservation) -> Bools:
        """[row, k] which SNs may be sent to at all; every one, by these books."""
        return np.ones(tasks.status_ms.shape, np.bool_)

    def decide(self, tasks: DispatchObservation) -> Actions:
        """The choice, written down."""
        actions = self.would_decide(tasks)
        self.write(tasks, actions)
        return actions

    def write(self, tasks: DispatchObservation, actions: Actions) -> Floats:
        """What was decided, whoever did; [row] when a task is done at its SN, NaN of others."""
        site, sent = self._site, np.flatnonzero((actions > 0) & (actions < tasks.reject))
        done = np.full(len(tasks), np.nan)
        if len(sent) == 0:  # nothing to write down: one task at a time, that is often so
            return done
        column = actions[sent] - 1
        place = tasks.world[sent], tasks.en[sent], column
        arrival = tasks.time_ms[sent] + site.upload_ms(tasks)[sent, column]
        speed = site.sn.cycles_per_ms[tasks.sn[sent, column]]
        finish = append(self.slot_free, place, arrival, tasks.cycles[sent] / speed)
        # There was room for it, so not all entries are taken: the first to finish has done so.
        entry = self.finish[place].argmin(axis=1)
        self.finish[(*place, entry)] = finish
        self.reserved[(*place, entry)] = site.reservation(tasks.input_bytes[sent])
        done[sent] = finish
        return done
