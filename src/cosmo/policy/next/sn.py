"""The SN of `cosmo-next`: sends a status when that is worth more than it costs.

The worth of an update now, in successful tasks, is linear in the SN's change of state: how
its state differs from what the ENs can expect from the status that they have acknowledged. Its
price is the scenario's: the cost of a message against the value of a task. The fewer dimensions a
message has the cheaper it is; the semantic one carries two, outstanding work and free storage.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Site, SnStates, UpdateObservation, Updater
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.next.status_encoding import StatusEncoding

Floats = NDArray[np.float64]

CHANGE_SIZE = 9  # numbers that the worth is linear in
_MOST = 2.0  # inputs are cut off at this


class StateChange:
    """How an SN's state differs from what its ENs can expect, as inputs of a linear value."""

    def __init__(self, site: Site, settings: NextSettings) -> None:
        unit = site.tasks.deadline_ms[1]
        self._work_ms, self._age_ms = settings.spans.wait * unit, site.scales.age_ms
        self._rate, self._storage = site.sn.full_rate, site.sn.storage_bytes
        self._encoding = StatusEncoding(site, settings)

    def of(self, observed: UpdateObservation) -> Floats:
        """[row, CHANGE_SIZE]; with several ENs, the mean over them."""
        rate, storage = self._rate[observed.sn], self._storage[observed.sn]
        work = observed.sn_state[:, WORK] / rate
        age, heard, reached = observed.age_ms, observed.heard, observed.reached
        # Without a status an EN expects that the work it was told of has been done since.
        told_work, told_free = self._encoding.read(observed.sn[:, None], observed.acknowledged)
        told = told_work / rate[:, None]
        ahead = work - _mean(np.maximum(told - age, 0.0), reached)
        taken = 1.0 - observed.sn_state[:, STORAGE] / storage
        told_room = told_free / storage[:, None]
        told_taken = 1.0 - _mean(np.where(heard, told_room, 1.0), reached)
        mean_age = np.minimum(_mean(age, reached) / self._age_ms, _MOST)
        found = np.empty((len(observed), CHANGE_SIZE))
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
    """Compares the value of a status with its price."""

    def __init__(
        self,
        site: Site,
        layers: Mapping[str, NDArray[np.floating]],
        run_rows: RunRows,
        settings: NextSettings,
    ) -> None:
        unit = site.tasks.deadline_ms[1]
        self._look_ms, self._rest_ms = settings.spans.look * unit, settings.spans.rest * unit
        self._change, self._encoding, self._settings = (
            StateChange(site, settings),
            StatusEncoding(site, settings),
            settings,
        )
        # Of an update, in successful tasks.
        self._price = site.prices.per_number * settings.dimensions / site.prices.success
        self._worth, self._doubt = layers["worth"], layers["doubt"]
        self._run_rows = run_rows

    def worth(self, observed: UpdateObservation) -> Floats:
        """[row] of an update by each SN now, in successful tasks: at least that, beyond doubt."""
        run, told = self._run_rows.run[observed.world], self._change.of(observed)
        expected = (told * self._worth[run]).sum(axis=1)
        doubt = np.linalg.norm((told[:, None, :] @ self._doubt[run])[:, 0], axis=1)
        found: Floats = expected - doubt
        return found

    def decide(self, observed: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Send if it is worth it; look again the sooner the nearer it was."""
        worth = self.worth(observed)
        near = worth > self._settings.near * self._price
        return worth > self._price, np.where(near, self._look_ms, self._rest_ms)

    def encode(self, states: SnStates) -> Floats:
        """[row, d] as `StatusEncoding` says."""
        return self._encoding.encode(states)
