"""The SN of `cosmo-next`: sends when what it could tell is worth more than telling costs.

The worth of an update now, in successful tasks, is linear in what the SN sees of its *news*: how
its state differs from what the ENs can expect from the status that they have acknowledged. Its
price is the scenario's: the cost of a message against the value of a task. The fewer dimensions a
message has the cheaper it is; the semantic one carries two, outstanding work and free storage.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Site, SnStates, UpdateObservation, Updater
from cosmo.policy.next.rules import NextRules
from cosmo.policy.next.seats import Seats
from cosmo.policy.next.told import Told

Floats = NDArray[np.float64]

NEWS = 9  # numbers that the worth is linear in
_MOST = 2.0  # what news is cut off at, on its scale


class News:
    """What an SN could tell: how its state differs from what the ENs can expect."""

    def __init__(self, site: Site, rules: NextRules) -> None:
        unit = site.tasks.deadline_ms[1]
        self._work_ms, self._age_ms = rules.spans.wait * unit, site.scales.age_ms
        self._rate, self._storage = site.sn.full_rate, site.sn.storage_bytes
        self._told = Told(site, rules)

    def of(self, observed: UpdateObservation) -> Floats:
        """[row, NEWS]; with several ENs, what is news to them on average."""
        rate, storage = self._rate[observed.sn], self._storage[observed.sn]
        work = observed.sn_state[:, WORK] / rate
        age, heard, reached = observed.age_ms, observed.heard, observed.reached
        # Without news an EN expects that the work it was told of has been done since.
        told_work, told_free = self._told.read(observed.sn[:, None], observed.acknowledged)
        told = told_work / rate[:, None]
        ahead = work - _mean(np.maximum(told - age, 0.0), reached)
        taken = 1.0 - observed.sn_state[:, STORAGE] / storage
        told_room = told_free / storage[:, None]
        told_taken = 1.0 - _mean(np.where(heard, told_room, 1.0), reached)
        mean_age = np.minimum(_mean(age, reached) / self._age_ms, _MOST)
        found = np.empty((len(observed), NEWS))
        found[:, 0] = 1.0
        found[:, 1] = np.minimum(work / self._work_ms, _MOST)
        found[:, 2] = np.minimum(np.maximum(ahead, 0.0) / self._work_ms, _MOST)
        found[:, 3] = np.minimum(np.maximum(-ahead, 0.0) / self._work_ms, _MOST)
        found[:, 4] = taken
        found[:, 5] = np.abs(taken - told_taken)
        found[:, 6] = mean_age
        found[:, 7] = observed.recent_failure
        found[:, 8] = observed.recent_failure * mean_age
        return found


def _mean(values: Floats, reached: NDArray[np.bool_]) -> Floats:
    """[row] over the ENs that there are."""
    found: Floats = np.where(reached, values, 0.0).sum(axis=1) / reached.sum(axis=1)
    return found


class NextUpdater(Updater):
    """Weighs its news."""

    def __init__(
        self,
        site: Site,
        layers: Mapping[str, NDArray[np.floating]],
        seats: Seats,
        rules: NextRules,
    ) -> None:
        unit = site.tasks.deadline_ms[1]
        self._look_ms, self._rest_ms = rules.spans.look * unit, rules.spans.rest * unit
        self._news, self._told, self._rules = News(site, rules), Told(site, rules), rules
        # Of an update, in successful tasks.
        self._price = site.prices.per_number * rules.dimensions / site.prices.success
        self._worth, self._doubt = layers["worth"], layers["doubt"]
        self._seats = seats

    def worth(self, observed: UpdateObservation) -> Floats:
        """[row] of an update by each SN now, in successful tasks: at least that, beyond doubt."""
        run, told = self._seats.run[observed.world], self._news.of(observed)
        expected = (told * self._worth[run]).sum(axis=1)
        doubt = np.linalg.norm((told[:, None, :] @ self._doubt[run])[:, 0], axis=1)
        found: Floats = expected - doubt
        return found

    def decide(self, observed: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Send if it is worth it; look again the sooner the nearer it was."""
        worth = self.worth(observed)
        near = worth > self._rules.near * self._price
        return worth > self._price, np.where(near, self._look_ms, self._rest_ms)

    def encode(self, states: SnStates) -> Floats:
        """[row, d] as `Told` says."""
        return self._told.encode(states)
