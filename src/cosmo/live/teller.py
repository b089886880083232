"""Who is asked at an SN: a method's updater, when to send and what."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import Method, ResultObservation, Site, UpdateObservation
from cosmo.node.guard import ask, checked_numbers, checked_ride, checked_update, made_updater

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Teller:
    """Asks one method; a mistake of it is an InputError that names it."""

    def __init__(self, method: Method, site: Site) -> None:
        self.method = method
        self._updater = made_updater(method, site)
        self.rides = self._updater.rides  # whether it is to be asked before each result (R31)

    def decide(self, seen: UpdateObservation, ens: int) -> tuple[Bools, float, Floats]:
        """([EN] whether to send, ms until the next decision, the numbers of a status)."""
        answer = ask(self.method, self._updater.decide, seen)
        send, interval_ms = checked_update(self.method, answer, seen)
        whom = send[0, :ens]
        numbers = np.zeros(self.method.carries)
        if whom.any():
            told = ask(self.method, self._updater.encode, seen.states)
            numbers = checked_numbers(self.method, told, 1, self.method.carries)[0]
        return whom, float(interval_ms[0]), numbers.copy()

    def ride(self, result: ResultObservation) -> Floats | None:
        """The numbers of a status that rides on this result (R31); None if none does."""
        answer = ask(self.method, self._updater.ride, result)
        if not checked_ride(self.method, answer, 1)[0]:
            return None
        told = ask(self.method, self._updater.encode, result.states)
        numbers: Floats = checked_numbers(self.method, told, 1, self.method.carries)[0].copy()
        return numbers


class GuardedTeller(Teller):
    """The same for a node that must go on: a fault is reported, and nothing is sent for a while."""

    def __init__(self, method: Method, site: Site, pause_ms: float = 100.0) -> None:
        super().__init__(method, site)
        self._site, self._pause_ms = site, pause_ms
        self.faults = 0
        self.report: Callable[[str], None] = lambda why: None

    def decide(self, seen: UpdateObservation, ens: int) -> tuple[Bools, float, Floats]:
        """What the updater says, or silence."""
        try:
            return super().decide(seen, ens)
        except InputError as error:
            self.faults += 1
            self.report(str(error))
            return np.zeros(ens, np.bool_), self._pause_ms, np.zeros(self.method.carries)

    def ride(self, result: ResultObservation) -> Floats | None:
        """What the updater says, or nothing."""
        try:
            return super().ride(result)
        except InputError as error:
            self.faults += 1
            self.report(str(error))
            return None
