"""`power-of-d`: the best of a few SNs drawn at random, by their last status and one's own sends.

Where many ENs go by the same stale status, all of them rush to the SN that looked best. An EN that
compares only d SNs drawn at random for each task, among the few that it keeps to, does not; and it
knows what it has sent since the status was made.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, STORAGE, WORK, Dispatcher, DispatchObservation, Site, SnStates
from cosmo.policy.chance import DrawPerTask
from cosmo.policy.dispatchers.estimate import faster_feasible
from cosmo.policy.dispatchers.raw import raw_states
from cosmo.policy.friends import friends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ONE_NUMBER = 1  # a status of one number: the wait for a slot
ENTRIES = 64  # own tasks that are remembered for each SN, the latest of them


def wait_ms(site: Site, states: SnStates) -> Floats:
    """[row] the wait that a new task would have, in ms; the longest deadline where none fits in."""
    state, sn = states.state, states.sn
    wait = np.where(state[:, IDLE] > 0, 0.0, state[:, WORK] / site.sn.full_rate[sn])
    full = state[:, STORAGE] < site.largest_reservation
    found: Floats = np.where(full, site.tasks.deadline_ms[1], wait)
    return found


class PowerOfDDispatcher(Dispatcher):
    """Takes the fastest of local and d drawn SNs that should be in time, else rejects."""

    def __init__(self, site: Site, d: int, keep: int, numbers: int) -> None:
        self._site, self.d, self.numbers = site, d, numbers
        self.friends = friends(site, keep)
        self.draws = DrawPerTask(site, self.friends.shape[1])
        # Of own tasks, the latest for each SN: when they arrive there, and what they ask for.
        cells = (site.worlds, *site.links.reach.shape)
        self._next = np.zeros(cells, np.int64)
        self._arrival = np.full((*cells, ENTRIES), -np.inf)
        self._cycles, self._reserved = np.zeros((*cells, ENTRIES)), np.zeros((*cells, ENTRIES))

    def decide(self, tasks: DispatchObservation) -> Ints:
        """The choice, remembered."""
        wait, room = self.expected(tasks)
        actions = faster_feasible(self._site, tasks, wait, room & self.drawn(tasks))
        self._remember(tasks, actions)
        return actions

    def drawn(self, tasks: DispatchObservation) -> Bools:
        """[row, k] the d SNs that a task may go to, of those that its EN keeps to."""
        kept = self.friends[tasks.en]
        if self.d >= kept.shape[1]:
            return kept
        order = np.where(kept, self.draws.all_of(tasks), np.inf)
        last = np.partition(order, self.d - 1, axis=1)[:, self.d - 1 : self.d]
        drawn: Bools = kept & (order <= last)
        return drawn

    def expected(self, tasks: DispatchObservation) -> tuple[Floats, Bools]:
        """[row, k] the wait at SNs in ms and whether there is room, by their last status, what has
        been done since, and what this EN has sent since.
        """
        site, place = self._site, (tasks.world, tasks.en)
        since = np.where(tasks.heard, tasks.status_ms, 0.0)
        later = self._arrival[place] > since[:, :, None]
        rate, age = site.sn.full_rate[tasks.sn], tasks.time_ms[:, None] - since
        # One after the other, so that the sum has the same bits on any machine.
        own_ms = np.where(later, self._cycles[place], 0.0).cumsum(axis=2)[:, :, -1] / rate
        needed = site.reservation(tasks.input_bytes)[:, None]
        if self.numbers == ONE_NUMBER:
            told = tasks.status[:, :, 0]
            room = ~(tasks.heard & (told >= site.tasks.deadline_ms[1]))
            return np.maximum(told + own_ms - age, 0.0), room
        seen, reserved = raw_states(site, tasks), np.where(later, self._reserved[place], 0.0)
        idle = seen[:, :, IDLE] > later.sum(axis=2)
        work_ms = seen[:, :, WORK] / rate + own_ms - age
        room = seen[:, :, STORAGE] - reserved.sum(axis=2) >= needed
        return np.where(idle, 0.0, np.maximum(work_ms, 0.0)), room

    def _remember(self, tasks: DispatchObservation, actions: Ints) -> None:
        sent = np.flatnonzero((actions > 0) & (actions < tasks.reject))
        if len(sent) == 0:
            return
        column = actions[sent] - 1
        place = tasks.world[sent], tasks.en[sent], column
        entry = (*place, self._next[place] % ENTRIES)
        self._arrival[entry] = tasks.time_ms[sent] + self._site.upload_ms(tasks)[sent, column]
        self._cycles[entry] = tasks.cycles[sent]
        self._reserved[entry] = self._site.reservation(tasks.input_bytes[sent])
        self._next[place] += 1
