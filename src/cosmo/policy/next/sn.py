"""The SN of `cosmo-next`: sends a status if its value exceeds its cost.

The value of an update now, in successful tasks, is linear in the SN's change of state: the
difference between its state and what the ENs can expect from the status that they have
acknowledged. Its price comes from the scenario: the cost of a message relative to the value of a
task. A message with fewer dimensions is cheaper; the semantic one has two, outstanding work and
free storage.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Site, SnStates, UpdateObservation, Updater
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.next.status_encoding import StatusEncoding

Floats = NDArray[np.float64]

CHANGE_SIZE = 9  # inputs of the linear value
_MOST = 2.0  # inputs are cut off at this


class StateChange:
    """The difference between an SN's state and what its ENs expect, as inputs of a linear value."""

    def __init__(self, site: Site, settings: NextSettings) -> None:
        unit = site.tasks.deadline_ms[1]
        self._work_ms, self._age_ms = settings.spans.wait * unit, site.scales.age_ms
        self._rate, self._storage = site.sn.full_rate, site.sn.storage_bytes
        self._encoding = StatusEncoding(site, settings)

    def of(self, observed: UpdateObservation) -> Floats:
        """The inputs, [row, CHANGE_SIZE]; with several ENs, the mean over them."""
        rate, storage = self._rate[observed.sn], self._storage[observed.sn]
        work = observed.sn_state[:, WORK] / rate
        age, heard, reached = observed.age_ms, observed.heard, observed.reached
        # An EN expects that the SN has worked on the reported backlog since.
        status_work, status_free = self._encoding.read(observed.sn[:, None], observed.acknowledged)
        reported = status_work / rate[:, None]
        ahead = work - _mean(np.maximum(reported - age, 0.0), reached)
        taken = 1.0 - observed.sn_state[:, STORAGE] / storage
        status_room = status_free / storage[:, None]
        status_taken = 1.0 - _mean(np.where(heard, status_room, 1.0), reached)
        mean_age = np.minimum(_mean(age, reached) / self._age_ms, _MOST)
        found = np.empty((len(observed), CHANGE_SIZE))
        found[:, 0] = 1.0
        found[:, 1] = np.minimum(work / self._work_ms, _MOST)
        found[:, 2] = np.minimum(np.maximum(ahead, 0.0) / self._work_ms, _MOST)
        found[:, 3] = np.minimum(np.maximum(-ahead, 0.0) / self._work_ms, _MOST)
        found[:, 4] = taken
        found[:, 5] = np.abs(taken - status_taken)
        found[:, 6] = mean_age
        found[:, 7] = observed.recent_failure
        found[:, 8] = observed.recent_failure * mean_age
        return found


def _mean(values: Floats, reached: NDArray[np.bool_]) -> Floats:
    """The mean over the ENs that reach the SN, [row]."""
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
        # Cost of an update, in successful tasks.
        self._price = site.prices.per_number * settings.dimensions / site.prices.success
        self._worth, self._doubt = layers["worth"], layers["doubt"]
        self._run_rows = run_rows

    def worth(self, observed: UpdateObservation) -> Floats:
        """Lower confidence bound of the value of an update now, in successful tasks; [row]."""
        run, change = self._run_rows.run[observed.world], self._change.of(observed)
        expected = (change * self._worth[run]).sum(axis=1)
        doubt = np.linalg.norm((change[:, None, :] @ self._doubt[run])[:, 0], axis=1)
        found: Floats = expected - doubt
        return found

    def decide(self, observed: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Send a status if its value exceeds its price; decide again sooner if it nearly did."""
        worth = self.worth(observed)
        near = worth > self._settings.near * self._price
        return worth > self._price, np.where(near, self._look_ms, self._rest_ms)

    def encode(self, states: SnStates) -> Floats:
        """Statuses of these states, [row, d], encoded by `StatusEncoding`."""
        return self._encoding.encode(states)
