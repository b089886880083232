"""The status of `cosmo-next`: how an SN encodes its state, and what an EN decodes."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, STORAGE, WORK, Site, SnStates
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.rules.multi_node_formulas import number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class StatusEncoding:
    """A status is work in cycles and free bytes, or all numbers of R12, or one number as in the
    multi-node controller, which encodes the backlog and whether a task fits in.
    """

    def __init__(self, site: Site, settings: NextSettings) -> None:
        self._site, self._carried, self._single = site, settings.carried, settings.single
        self._longest_ms = site.tasks.deadline_ms[1]

    def encode(self, states: SnStates) -> Floats:
        """The numbers of a status of each of these states, [row, d]."""
        if self._single:
            return np.array(
                [[self._number(*each)] for each in zip(states.sn, states.state, strict=True)]
            )
        return states.state[:, self._carried]

    def _number(self, sn: int, own: Floats) -> float:
        full = 1.0 if own[STORAGE] < self._site.largest_reservation else 0.0
        return float(number(own[WORK] / self._site.sn.full_rate[sn], full, 0.0, self._longest_ms))

    def read(self, sn: Ints, numbers: Floats) -> tuple[Floats, Floats]:
        """Work in cycles and free bytes, […], from statuses […, d] of these SNs.

        One number does not contain the free bytes; they are estimated from the backlog.
        """
        nodes = self._site.sn
        if not self._single:
            work, room = self._carried.index(WORK), self._carried.index(STORAGE)
            return numbers[..., work], numbers[..., room]
        backlog_ms = numbers[..., 0]
        full = backlog_ms >= self._longest_ms
        work_ms = np.where(full, backlog_ms - self._longest_ms, backlog_ms)
        work_cycles = work_ms * nodes.full_rate[sn]
        tasks = np.ceil(work_cycles / (0.5 * self._site.tasks.mean_cycles) - 1e-9)
        # Running tasks are half done on average; waiting tasks are whole.
        slots = nodes.slots[sn]
        waiting = np.maximum(tasks - slots, 0.0) / 2.0
        held = np.minimum(tasks, slots) + np.ceil(waiting)
        left = np.maximum(nodes.storage_bytes[sn] - held * self._site.largest_reservation, 0.0)
        at_least = np.minimum(self._site.largest_reservation, nodes.storage_bytes[sn])
        return work_cycles, np.where(full, 0.0, np.maximum(left, at_least))

    def busy(self, sn: Ints, numbers: Floats, held: Floats) -> Floats:
        """Busy slots of each SN if `held` tasks are there, at least 1; [row]."""
        slots = self._site.sn.slots[sn]
        taken = held
        if not self._single and IDLE in self._carried:
            taken = slots - numbers[..., self._carried.index(IDLE)]
        return np.clip(taken, 1, slots)
