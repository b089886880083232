"""The SN of `cosmo-next`: sends when what it could tell is worth more than telling costs.

The worth of an update now, in successful tasks, is linear in what the SN sees of its *news*: how
its state differs from what the ENs can expect from the status that they have acknowledged. Its
price is the scenario's: the cost of a message against the value of a task. The fewer dimensions a
message has the cheaper it is; the semantic one carries two, outstanding work and free storage.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.next.seats import Seats
from cosmo.scenario import Scenario
from cosmo.world import STORAGE, WORK, UpdateObservation

Floats = NDArray[np.float64]

NEWS = 9  # numbers that the worth is linear in
LOOK_MS, WAIT_MS = 10.0, 40.0  # when to decide again: soon if an update is nearly worth its price


def news(nodes: KnownNodes, observed: UpdateObservation) -> Floats:
    """[row, NEWS]; with several ENs, what is news to them on average."""
    rate, storage = nodes.sn_full_rate[observed.sn], nodes.sn_storage[observed.sn]
    work = observed.sn_state[:, WORK] / rate
    age = observed.age_ms
    # Without news an EN expects that the work it was told of has been done since.
    told = observed.acknowledged_state[:, :, WORK] / rate[:, None]
    ahead = work - np.maximum(told - age, 0.0).mean(axis=1)
    taken = 1.0 - observed.sn_state[:, STORAGE] / storage
    told_taken = 1.0 - (observed.acknowledged_state[:, :, STORAGE] / storage[:, None]).mean(axis=1)
    mean_age = np.minimum(age.mean(axis=1), 400.0) / 200.0
    return np.stack(
        [
            np.ones_like(work),
            np.minimum(work, 60.0) / 30.0,
            np.clip(ahead, 0.0, 60.0) / 30.0,
            np.clip(-ahead, 0.0, 60.0) / 30.0,
            taken,
            np.abs(taken - told_taken),
            mean_age,
            observed.recent_failure,
            observed.recent_failure * mean_age,
        ],
        axis=1,
    )


def price(scenario: Scenario, dimensions: int) -> float:
    """Of an update, in successful tasks."""
    weights = scenario.utility
    cost = weights.update_weight * weights.update_cost_per_dimension * dimensions
    return cost / (weights.true_positive * weights.value)


class NextUpdater:
    """Weighs its news."""

    def __init__(
        self,
        scenario: Scenario,
        layers: Mapping[str, NDArray[np.floating]],
        seats: Seats,
        dimensions: int,
    ) -> None:
        self._nodes, self._price = KnownNodes(scenario), price(scenario, dimensions)
        self._worth, self._doubt = layers["worth"], layers["doubt"]
        self._seats = seats

    def worth(self, observed: UpdateObservation) -> Floats:
        """Of an update by each SN now, in successful tasks: at least that, beyond doubt."""
        run, told = self._seats.run[observed.world], news(self._nodes, observed)
        expected = (told * self._worth[run]).sum(axis=1)
        doubt = np.linalg.norm((told[:, None, :] @ self._doubt[run])[:, 0], axis=1)
        found: Floats = expected - doubt
        return found

    def decide(self, observed: UpdateObservation) -> tuple[NDArray[np.bool_], Floats]:
        """Send if it is worth it; look again the sooner the nearer it was."""
        worth = self.worth(observed)
        near = worth > 0.25 * self._price
        return worth > self._price, np.where(near, LOOK_MS, WAIT_MS)
