"""Updates for those ENs alone that keep to an SN, as messages of their own or on results (R31)."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import ResultObservation, Site, SnStates, UpdateObservation, Updater
from cosmo.policy.dispatchers.power_of_d import ONE_NUMBER, wait_ms
from cosmo.policy.friends import told_friends
from cosmo.policy.updaters.periodic import Answer

Floats = NDArray[np.float64]


class _ToFriends(Updater):
    """A status is one number, the wait for a slot, or the raw state."""

    def __init__(self, site: Site, keep: int, numbers: int) -> None:
        self._site, self._numbers = site, numbers
        self.friends = told_friends(site, keep)

    def encode(self, states: SnStates) -> Floats:
        """[row, d] the wait in ms, or N, W, B, M."""
        if self._numbers == ONE_NUMBER:
            return wait_ms(self._site, states)[:, None]
        return super().encode(states)


class RegularUpdater(_ToFriends):
    """Tells its friends every `interval_ms`."""

    def __init__(self, site: Site, keep: int, numbers: int, interval_ms: float) -> None:
        super().__init__(site, keep, numbers)
        self.interval_ms = interval_ms

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Send to all friends."""
        return self.friends[nodes.sn], np.full(len(nodes), self.interval_ms)


class MovedUpdater(_ToFriends):
    """Looks every `check_ms`, and tells a friend when the wait has moved by `threshold_ms` from
    what the friend must expect: what it was last told, less the time since.
    """

    def __init__(
        self, site: Site, keep: int, numbers: int, threshold_ms: float, check_ms: float
    ) -> None:
        super().__init__(site, keep, numbers)
        self.threshold_ms, self.check_ms = threshold_ms, check_ms
        cells = site.worlds, *self.friends.shape
        self._told_ms, self._told_at = np.zeros(cells), np.zeros(cells)

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Compare with what each was last sent."""
        place, now = (nodes.world, nodes.sn), nodes.time_ms[:, None]
        wait = wait_ms(self._site, nodes.states)[:, None]
        told, at = self._told_ms[place], self._told_at[place]
        full = self._site.tasks.deadline_ms[1]
        # Nobody expects an SN that had no room to have some by now, unless told so.
        expected = np.where(told >= full, told, np.maximum(told - (now - at), 0.0))
        send = self.friends[nodes.sn] & (np.abs(wait - expected) > self.threshold_ms)
        self._told_ms[place] = np.where(send, wait, told)
        self._told_at[place] = np.where(send, now, at)
        return send, np.full(len(nodes), self.check_ms)


class RidingUpdater(_ToFriends):
    """Sends nothing of its own; a status rides on a result, `gap_ms` after the last at the soonest.

    Results go to whom the tasks came from, so that friends alone are told.
    """

    def __init__(self, site: Site, keep: int, numbers: int, gap_ms: float) -> None:
        super().__init__(site, keep, numbers)
        self.gap_ms = gap_ms
        self.last_ms = np.full((site.worlds, len(site.sn), len(site.en)), -np.inf)

    def decide(self, nodes: UpdateObservation) -> Answer:
        """Never."""
        return np.zeros(len(nodes), np.bool_), np.full(len(nodes), np.inf)

    def ride(self, results: ResultObservation) -> NDArray[np.bool_]:
        """Whether the last one is old enough."""
        place = results.world, results.sn, results.en
        ride: NDArray[np.bool_] = results.time_ms - self.last_ms[place] >= self.gap_ms
        self.last_ms[place] = np.where(ride, results.time_ms, self.last_ms[place])
        return ride
