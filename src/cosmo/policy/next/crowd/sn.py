"""The SN of a crowd: tells an EN that keeps to it when that is worth more than it costs."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site, SnStates, UpdateObservation, Updater
from cosmo.policy.next.crowd.formulas import (
    faded,
    later,
    news,
    read_number,
    smoothed,
    still_full,
    use,
    worth,
)
from cosmo.policy.next.crowd.ground import ground_of, told_number
from cosmo.policy.next.crowd.numbers import Numbers

Floats = NDArray[np.float64]

SAME_MS = 1e-6  # times of the same status differ by no more
NEAR = 0.3  # of its price, from which on telling is nearly worth it


class CrowdUpdater(Updater):
    """Compares what it has to do with what each EN must expect of it, by the EN's own formula."""

    def __init__(self, site: Site, p: Numbers) -> None:
        self._site = site
        self.numbers = p
        self.ground = ground_of(site, p)
        cells = site.worlds, *self.ground.told.shape
        self.work, self.told_at = np.zeros(cells), np.zeros(cells)
        self.full_at = np.full(cells, -np.inf)
        self.pressure, self.pressed_at = np.zeros((2, site.worlds, len(site.sn)))
        self.untold, self.looked_at = np.zeros(cells), np.zeros(cells)

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Whom to tell, and when to look again."""
        p, ground, place = self.numbers, self.ground, (nodes.world, nodes.sn)
        now = nodes.time_ms[:, None]
        told = told_number(self._site, nodes.sn, nodes.sn_state)[:, None]
        work, full = read_number(told, ground.longest_ms)
        self._forget_lost(nodes)
        age = now - self.told_at[place]
        still = still_full(now - self.full_at[place], p)
        expected = use(later(self.work[place], age, ground.gain[nodes.sn], p), still, p)
        there_is = full.astype(np.float64)
        fresh = news(use(work, there_is, p), expected, there_is, still, p)
        passed = now - self.looked_at[place]
        untold = faded(self.untold[place], passed, p.usage_ms) + fresh * passed
        value = worth(fresh, untold, age, p) * ground.usage[nodes.sn]
        value = value * (1.0 + p.stagger * ground.phase[nodes.sn])
        value = value * (1.0 + p.press * self._pressure(nodes, there_is[:, 0]))[:, None]
        send = value > ground.price  # never where an EN does not keep to it: its usage is 0
        self.work[place] = np.where(send, work, self.work[place])
        self.told_at[place] = np.where(send, now, self.told_at[place])
        self.full_at[place] = np.where(send, np.where(full, now, -np.inf), self.full_at[place])
        self.untold[place] = np.where(send, 0.0, untold)
        self.looked_at[place] = now
        near = (value > NEAR * ground.price).any(axis=1)
        return send, np.where(near, p.look_ms, p.rest_ms)

    def _pressure(self, nodes: UpdateObservation, full: Floats) -> Floats:
        """[row] the share of time that an SN has been full of late: others may fill it."""
        place = nodes.world, nodes.sn
        passed = nodes.time_ms - self.pressed_at[place]
        found = smoothed(self.pressure[place], full * passed, passed, self.numbers.press_ms)
        self.pressure[place], self.pressed_at[place] = found, nodes.time_ms
        return np.asarray(found)

    def _forget_lost(self, nodes: UpdateObservation) -> None:
        """What has not been acknowledged for long is taken back: the EN has what it had before."""
        place = nodes.world, nodes.sn
        told_at, made = self.told_at[place], nodes.acknowledged_ms
        overdue = nodes.time_ms[:, None] - told_at > self.numbers.patience_ms
        lost = overdue & ~(made >= told_at - SAME_MS)
        heard, number = nodes.heard, nodes.acknowledged[:, :, 0]
        work, full = read_number(number, self.ground.longest_ms)
        self.work[place] = np.where(lost, np.where(heard, work, 0.0), self.work[place])
        full_at = np.where(heard & full, made, -np.inf)
        self.full_at[place] = np.where(lost, full_at, self.full_at[place])
        self.told_at[place] = np.where(lost, np.where(heard, made, 0.0), told_at)

    def encode(self, states: SnStates) -> Floats:
        """[row, 1] the ms of work that there are, and whether anything fits in."""
        return told_number(self._site, states.sn, states.state)[:, None]
