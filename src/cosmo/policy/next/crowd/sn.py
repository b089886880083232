"""The SN of a crowd: tells an EN that keeps to it when that is worth more than it costs."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Site, SnStates, UpdateObservation, Updater
from cosmo.policy.next.crowd.formulas import faded, later, news, still_full, use, worth
from cosmo.policy.next.crowd.ground import ground_of, told_number
from cosmo.policy.next.crowd.numbers import Numbers, at_deadline

Floats = NDArray[np.float64]

NEAR = 0.3  # of its price, from which on telling is nearly worth it


class CrowdUpdater(Updater):
    """Compares what it has to do with what each EN must expect of it, by the EN's own formula."""

    def __init__(self, site: Site, p: Numbers) -> None:
        self._site = site
        self.numbers = p = at_deadline(p, site.tasks.deadline_ms[1])
        self.ground = ground_of(site, p)
        cells = site.worlds, *self.ground.told.shape
        self.work, self.told_at = np.zeros(cells), np.zeros(cells)
        self.full_at = np.full(cells, -np.inf)
        self.untold, self.looked_at = np.zeros(cells), np.zeros(cells)

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Whom to tell, and when to look again."""
        p, ground, place = self.numbers, self.ground, (nodes.world, nodes.sn)
        now = nodes.time_ms[:, None]
        told = told_number(self._site, nodes.sn, nodes.sn_state)[:, None]
        full = told >= ground.longest_ms
        work = np.where(full, told - ground.longest_ms, told)
        age = now - self.told_at[place]
        still = still_full(now - self.full_at[place], p)
        expected = use(later(self.work[place], age, ground.gain[nodes.sn], p), still, p)
        there_is = full.astype(np.float64)
        fresh = news(use(work, there_is, p), expected, there_is, still, p)
        passed = now - self.looked_at[place]
        untold = faded(self.untold[place], passed, p.usage_ms) + fresh * passed
        value = worth(fresh, untold, age, p) * ground.usage[nodes.sn]
        value = value * (1.0 + p.stagger * ground.phase[nodes.sn])
        friend = ground.told[nodes.sn]
        send = friend & (value > ground.price)
        self.work[place] = np.where(send, work, self.work[place])
        self.told_at[place] = np.where(send, now, self.told_at[place])
        self.full_at[place] = np.where(send, np.where(full, now, -np.inf), self.full_at[place])
        self.untold[place] = np.where(send, 0.0, untold)
        self.looked_at[place] = now
        near = (friend & (value > NEAR * ground.price)).any(axis=1)
        return send, np.where(near, p.look_ms, p.rest_ms)

    def encode(self, states: SnStates) -> Floats:
        """[row, 1] the ms of work that there are, and whether anything fits in."""
        return told_number(self._site, states.sn, states.state)[:, None]
