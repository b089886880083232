"""The status of `cosmo-next`: how an SN encodes its state, and what an EN decodes."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, STORAGE, WORK, Site, SnStates
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.rules.multi_node_formulas import number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StatusEncoding:
    """Work in cycles and free bytes; all of R12; or one number, as of the multi-node controller,
    which says how much work there is and whether a task fits in.
    """

    def __init__(self, site: Site, settings: NextSettings) -> None:
        self._site, self._carried, self._single = site, settings.carried, settings.single
        self._longest_ms = site.tasks.deadline_ms[1]

    def encode(self, states: SnStates) -> Floats:
        """[row, d] the numbers of a status of these states."""
        if self._single:
            return np.array(
                [[self._number(*each)] for each in zip(states.sn, states.state, strict=True)]
            )
        return states.state[:, self._carried]

    def _number(self, sn: int, own: Floats) -> float:
        full = 1.0 if own[STORAGE] < self._site.largest_reservation else 0.0
        return float(number(own[WORK] / self._site.sn.full_rate[sn], full, 0.0, self._longest_ms))

    def read(self, sn: Ints, numbers: Floats) -> tuple[Floats, Floats]:
        """Work in cycles and free bytes, […] of statuses […, d] of these SNs.

        One number does not say how much room there is: about as many tasks as there is work for.
        """
        nodes = self._site.sn
        if not self._single:
            work, room = self._carried.index(WORK), self._carried.index(STORAGE)
            return numbers[..., work], numbers[..., room]
        told = numbers[..., 0]
        full = told >= self._longest_ms
        work_ms = np.where(full, told - self._longest_ms, told)
        work_cycles = work_ms * nodes.full_rate[sn]
        tasks = np.ceil(work_cycles / (0.5 * self._site.tasks.mean_cycles) - 1e-9)
        # What runs is half done on average; what waits behind the slots is whole.
        slots = nodes.slots[sn]
        waiting = np.maximum(tasks - slots, 0.0) / 2.0
        held = np.minimum(tasks, slots) + np.ceil(waiting)
        left = np.maximum(nodes.storage_bytes[sn] - held * self._site.largest_reservation, 0.0)
        at_least = np.minimum(self._site.largest_reservation, nodes.storage_bytes[sn])
        return work_cycles, np.where(full, 0.0, np.maximum(left, at_least))

    def busy(self, sn: Ints, numbers: Floats, held: Floats) -> Floats:
        """[row] slots that are taken, at least 1, if so many tasks are there."""
        slots = self._site.sn.slots[sn]
        taken = held
        if not self._single and IDLE in self._carried:
            taken = slots - numbers[..., self._carried.index(IDLE)]
        return np.clip(taken, 1, slots)
