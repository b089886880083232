"""What an SN says of itself, checked before anything goes by it.

A number that no SN could have sent, as the simulator has them, must not reach a method: NaN or
infinity wins every comparison, and every task would follow it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import NOTHING, Method, Site, SnStates
from cosmo.node.guard import ask, checked_numbers, made_updater
from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS

Floats = NDArray[np.float64]
_ROUNDING = 1.0  # bytes, cycles or ms: sums of what came and went
_MOST_SEQUENCE = 2**48  # of the first status that is heard of
_MOST_LOST = 10**6  # statuses between two that are


class Claims:
    """What statuses of one SN may contain."""

    def __init__(self, method: Method, site: Site, sn: int) -> None:
        """`sn` is its number in the site; `method` is the one that its statuses are made by.

        A number that is a field of the SN's state has that field's bounds; any other is finite.
        """
        self.least = np.full(method.carries, -MOST_AMOUNT)
        self._most = np.full(method.carries, MOST_AMOUNT)
        nodes = site.sn
        most = [  # in the order of `cosmo.node.observation`
            *(nodes.slots[sn], MOST_MS, MOST_AMOUNT),
            *(nodes.storage_bytes[sn], nodes.queue_capacity[sn], MOST_MS),
        ]
        for place, field in enumerate(_fields_of(method, site, sn)):
            if field is not None:
                self.least[place], self._most[place] = -_ROUNDING, most[field]

    def fault_of(self, status: Any, before: int, most_held_ms: float) -> str:
        """What is wrong with a status after that of sequence `before`, in a line; "" if nothing.

        `before` is -1 if nothing was heard of this SN yet.
        """
        if len(status.numbers) != len(self.least):
            return f"{len(status.numbers)} numbers in a status: must be {len(self.least)}"
        for place, number in enumerate(status.numbers):
            if not self.least[place] <= number <= MOST_AMOUNT:  # nor is NaN
                allowed = f"must be from {self.least[place]:g} to {MOST_AMOUNT:g}"
                return f"number {place} of a status = {number:g}: {allowed}"
        if status.held_us > most_held_ms * 1000.0:
            return f"held_us = {status.held_us}: must be at most {most_held_ms * 1000.0:.0f}"
        most = before + _MOST_LOST if before >= 0 else _MOST_SEQUENCE
        if status.sequence > most:
            return f"sequence = {status.sequence}: must be at most {most}"
        return ""

    def cut(self, numbers: Any) -> Floats:
        """The numbers of a status without fault, none beyond what this EN knows the SN to have.

        An SN that has more than the configuration says is believed, and logged when it connects.
        """
        cut: Floats = np.minimum(np.array(numbers, np.float64), self._most)
        return cut


def fault_of_welcome(welcome: Any) -> str:
    """What is wrong with a welcome, in a line; empty if nothing."""
    for name in ("work_cycles", "cycles_per_ms"):
        if not 0.0 <= (number := getattr(welcome, name)) <= MOST_AMOUNT:  # nor is NaN
            return f"{name} = {number:g}: must be a number from 0 to {MOST_AMOUNT:g}"
    return ""


def _fields_of(method: Method, site: Site, sn: int) -> list[int | None]:
    """[number] which field of the SN's state a status repeats there, None if none.

    The updater is shown two states with six different values each.
    """
    if method.carries == NOTHING:
        return []
    shown = np.array(
        [[2.0, 3.5, 40_000.0, 50_001.0, 5.0, 7.5], [1.0, 4.5, 20_000.0, 60_001.0, 3.0, 6.5]]
    )
    rows = len(shown)
    states = SnStates(np.zeros(rows, np.int64), np.full(rows, sn), np.zeros(rows), shown)
    try:
        told = ask(method, made_updater(method, site).encode, states)
        numbers = checked_numbers(method, told, rows, method.carries)
    except InputError:  # the method's own fault, which is found where it is asked
        return [None] * method.carries
    same = (numbers[:, :, None] == shown[:, None, :]).all(axis=0)
    return [int(fields.argmax()) if fields.any() else None for fields in same]
