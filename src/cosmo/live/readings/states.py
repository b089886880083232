"""A reading as the state that a service node knows of itself (R12), and as a status of a method."""

import math

import numpy as np
from numpy.typing import NDArray

from cosmo.live.readings.metering import Reading
from cosmo.node import (
    IDLE,
    LATENCY,
    REQUESTS,
    STATE_FIELDS,
    STORAGE,
    WAIT,
    WORK,
    Method,
    Site,
    SnStates,
)
from cosmo.node.guard import ask, checked_numbers, made_updater

Floats = NDArray[np.float64]


def state_of(reading: Reading, site: Site, sn: int) -> Floats:
    """[field] of `cosmo.node.observation`, of a service that is this SN of the site.

    Nobody knows what is left of a request: each counts for the mean of those that have finished,
    or for what tasks are expected to take while none has. A slot counts as idle only while nothing
    waits. The head of the queue has waited for as long as the queue takes to pass.
    """
    slots, rate = float(site.sn.slots[sn]), float(site.sn.cycles_per_ms[sn])
    storage = float(site.sn.storage_bytes[sn])
    requests = reading.running + reading.waiting
    waiting = max(reading.waiting, requests - slots)
    service_ms = reading.service_ms
    if math.isnan(service_ms):  # what is not spent waiting, as far as that follows from the queue
        service_ms = reading.latency_ms * slots / max(requests, slots)
    if math.isnan(service_ms):
        service_ms = site.tasks.mean_cycles / rate
    taken = reading.storage_share * storage
    if math.isnan(taken):
        taken = requests * site.reservation_floor_bytes
    found = np.zeros(STATE_FIELDS)
    found[IDLE] = 0.0 if waiting > 0.0 else slots - requests
    found[WAIT] = waiting * service_ms / slots
    found[WORK] = requests * service_ms * rate
    found[STORAGE] = max(storage - taken, 0.0)
    found[REQUESTS] = requests
    found[LATENCY] = 0.0 if math.isnan(reading.latency_ms) else reading.latency_ms
    return found


class StatusMaker:
    """Makes statuses of states as a method's own updater would."""

    def __init__(self, method: Method, site: Site) -> None:
        self._method, self._updater = method, made_updater(method, site)

    def numbers(self, sn: int, state: Floats, now: float) -> list[float]:
        """The numbers of a status; InputError if the method makes none of this state."""
        states = SnStates(np.zeros(1, np.int64), np.array([sn]), np.array([now]), state[None])
        told = ask(self._method, self._updater.encode, states)
        made: Floats = checked_numbers(self._method, told, 1, self._method.carries)[0]
        return [float(each) for each in made]
