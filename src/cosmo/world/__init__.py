"""The embedded world: an event-driven engine that runs many worlds at once.

`batch.py` is the door, `kernel.py` the event loop, `CONTRACT.md` what may be assumed of it.
"""

from cosmo.world.batch import Decisions, Outcome, StatusRecord, Worlds
from cosmo.world.observation import DispatchObservation, Settled, Truth, UpdateObservation
from cosmo.world.records import IDLE, LATENCY, REQUESTS, STORAGE, WAIT, WORK

__all__ = [
    "IDLE",
    "LATENCY",
    "REQUESTS",
    "STORAGE",
    "WAIT",
    "WORK",
    "Decisions",
    "DispatchObservation",
    "Outcome",
    "Settled",
    "StatusRecord",
    "Truth",
    "UpdateObservation",
    "Worlds",
]
