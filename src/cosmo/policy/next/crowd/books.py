"""What an EN of a crowd expects of the SNs that it keeps to: books of work, put right by news.

Of each SN it has the work that should be there, from the latest that it knows: a status, or a
result, which tells how long the task has waited, or a notice that it was full. Work is done since
then; what it has sent itself comes on top, each task when it arrives; and what rivals send, judged
by what it sends itself.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import REFUSED, DispatchObservation, Feedback, Site
from cosmo.policy.next.crowd.formulas import faded, later, read_number, smoothed
from cosmo.policy.next.crowd.ground import Ground
from cosmo.policy.next.crowd.numbers import Numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENTRIES = 32  # own tasks that are remembered for each SN, the latest of them


class Books:
    """Of every EN in a batch of worlds, [world, EN, k] by the SNs that it reaches."""

    def __init__(self, site: Site, ground: Ground, p: Numbers) -> None:
        self._site, self._ground, self._p = site, ground, p
        cells = (site.worlds, *site.links.reach.shape)
        self.work, self.work_at = np.zeros(cells), np.zeros(cells)
        self.full_at = np.full(cells, -np.inf)
        self.source = np.zeros(cells)  # of the latest news
        self.flow, self.flow_at = np.zeros(cells), np.zeros(cells)
        self.blame, self.blame_at = np.zeros(cells), np.zeros(cells)
        # A ring of own tasks: the next place in it, and of each its number, arrival and ms of work.
        self.next_entry = np.zeros(cells, np.int64)
        self.task = np.full((*cells, ENTRIES), -1, np.int64)
        self.arrival = np.full((*cells, ENTRIES), -np.inf)
        self.own_work = np.zeros((*cells, ENTRIES))

    def gain(self, world: Ints, en: Ints, now: Floats) -> Floats:
        """[row, k] ms of work a ms that rivals are taken to send to each SN."""
        flow = faded(self.flow[world, en], now[:, None] - self.flow_at[world, en], self._p.flow_ms)
        found: Floats = self._p.rivals * self._ground.rivals[en] * flow
        return found

    def take_status(self, tasks: DispatchObservation) -> None:
        """News that has come since the EN last decided."""
        place = tasks.world, tasks.en
        fresh = (tasks.status_ms > self.source[place]) & self._ground.kept[tasks.en]
        if not fresh.any():
            return
        gain, longest = self.gain(*place, tasks.time_ms), self._ground.longest_ms
        for row, column in zip(*np.nonzero(fresh), strict=True):
            cell = int(tasks.world[row]), int(tasks.en[row]), int(column)
            told, source = tasks.status[row, column, 0], tasks.status_ms[row, column]
            work, full = read_number(told, longest)
            self._start(cell, work, source, gain[row, column])
            self.full_at[cell] = source if full else -np.inf

    def observe(self, feedback: Feedback) -> None:
        """Results and refusals of own tasks, in order of time."""
        columns = self.source.shape[2]
        for row in np.flatnonzero((feedback.action >= 1) & (feedback.action <= columns)).tolist():
            world, en = int(feedback.world[row]), int(feedback.en[row])
            cell = world, en, int(feedback.action[row]) - 1
            found = np.flatnonzero(self.task[cell] == feedback.task[row])
            if len(found):
                now = float(feedback.time_ms[row])
                refused = bool(feedback.fate[row] == REFUSED)
                self._hear(cell, int(found[0]), refused, bool(feedback.in_time[row]), now)

    def _hear(
        self, cell: tuple[int, int, int], entry: int, refused: bool, in_time: bool, now: float
    ) -> None:
        _, en, column = cell
        arrival, own = self.arrival[(*cell, entry)], self.own_work[(*cell, entry)]
        self.task[(*cell, entry)] = -1
        if refused:
            self.work[cell] = max(self.work[cell] - own, 0.0)
            if arrival > self.source[cell]:
                self.source[cell] = self.full_at[cell] = arrival
            return
        elapsed = max(now - self.blame_at[cell], 0.0)
        left = faded(self.blame[cell], elapsed, self._p.blame_ms)
        self.blame[cell] = 0.5 * left if in_time else left + 1.0
        self.blame_at[cell] = now
        if arrival <= self.source[cell]:
            return
        sn, nodes = self._site.links.reach[en, column], self._site.sn
        service = own * nodes.full_rate[sn] / nodes.cycles_per_ms[sn]
        waited = now - self._site.links.result_ms[en, column] - arrival - service
        ease = self._p.ease * self._ground.ease_ms[sn]
        before = waited + ease if waited > 0.5 else 0.5 * ease
        gain = self.gain(np.array([cell[0]]), np.array([en]), np.array([now]))[0, column]
        self._start(cell, before + own, arrival, gain)
        self.full_at[cell] = -np.inf

    def _start(self, cell: tuple[int, int, int], work: float, source: float, gain: float) -> None:
        """The books begin anew with what was there then; own tasks that came later follow."""
        at = source
        first = int(self.next_entry[cell])
        for place in range(first, first + ENTRIES):
            entry = (*cell, place % ENTRIES)
            arrival = self.arrival[entry]
            if arrival > source:
                work = later(work, max(arrival - at, 0.0), gain, self._p) + self.own_work[entry]
                at = max(arrival, at)
        self.work[cell], self.work_at[cell] = work, at
        self.source[cell] = source

    def send(
        self, tasks: DispatchObservation, rows: Ints, column: Ints, arrival: Floats, gain: Floats
    ) -> None:
        """Tasks of these rows go to these SNs and arrive then; `gain` is each one's."""
        p, cell = self._p, (tasks.world[rows], tasks.en[rows], column)
        own = tasks.cycles[rows] / self._site.sn.full_rate[tasks.sn[rows, column]]
        elapsed = np.maximum(arrival - self.work_at[cell], 0.0)
        self.work[cell] = later(self.work[cell], elapsed, gain, p) + own
        self.work_at[cell] = np.maximum(arrival, self.work_at[cell])
        now = tasks.time_ms[rows]
        self.flow[cell] = smoothed(self.flow[cell], own, now - self.flow_at[cell], p.flow_ms)
        self.flow_at[cell] = now
        entry = (*cell, self.next_entry[cell] % ENTRIES)
        self.task[entry], self.arrival[entry] = tasks.task[rows], arrival
        self.own_work[entry] = own
        self.next_entry[cell] += 1
