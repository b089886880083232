"""Runs a method's updater at an SN: when to send a status, to which ENs, with which numbers."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.live.dispatcher_runner import Remarks
from cosmo.node import Method, ResultObservation, Site, UpdateObservation
from cosmo.node.guard import ask, checked_numbers, checked_ride, checked_update, made_updater

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class UpdaterRunner:
    """Asks the updater of one method; its mistakes become InputErrors that name the method."""

    def __init__(self, method: Method, site: Site) -> None:
        self.method = method
        self._updater = made_updater(method, site)
        self.rides = self._updater.rides  # whether it is to be asked before each result (R31)
        self.remarks = Remarks()

    def decide(self, seen: UpdateObservation, ens: int) -> tuple[Bools, float, Floats]:
        """Return ([EN] whether to send, ms until the next decision, the numbers of the status)."""
        answer = ask(self.method, self._updater.decide, seen)
        send, interval_ms = checked_update(self.method, answer, seen)
        receivers = send[0, :ens]
        numbers = np.zeros(self.method.carries)
        if receivers.any():
            encoded = ask(self.method, self._updater.encode, seen.states)
            numbers = checked_numbers(self.method, encoded, 1, self.method.carries)[0]
        return receivers, float(interval_ms[0]), numbers.copy()

    def ride(self, result: ResultObservation) -> Floats | None:
        """Return the numbers of the status that this result carries (R31), or None."""
        answer = ask(self.method, self._updater.ride, result)
        if not checked_ride(self.method, answer, 1)[0]:
            return None
        encoded = ask(self.method, self._updater.encode, result.states)
        numbers: Floats = checked_numbers(self.method, encoded, 1, self.method.carries)[0].copy()
        return numbers


class GuardedUpdaterRunner(UpdaterRunner):
    """Reports faults of the updater instead of raising, and then sends nothing for `pause_ms`."""

    def __init__(self, method: Method, site: Site, pause_ms: float = 100.0) -> None:
        super().__init__(method, site)
        self._site, self._pause_ms = site, pause_ms
        self.faults = 0
        self.report: Callable[[str], None] = lambda why: None

    def decide(self, seen: UpdateObservation, ens: int) -> tuple[Bools, float, Floats]:
        """Return the updater's decision, or 'send nothing' after a fault."""
        try:
            decided = super().decide(seen, ens)
            self.remarks.decided(self._updater.remark)
            return decided
        except InputError as error:
            self.faults += 1
            self.report(str(error))
            return np.zeros(ens, np.bool_), self._pause_ms, np.zeros(self.method.carries)

    def ride(self, result: ResultObservation) -> Floats | None:
        """Return the updater's numbers, or None after a fault."""
        try:
            return super().ride(result)
        except InputError as error:
            self.faults += 1
            self.report(str(error))
            return None
