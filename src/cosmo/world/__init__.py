"""The embedded world: an event-driven engine that runs many worlds at once.

`worlds.py` is the door, `kernel.py` the event loop, `CONTRACT.md` what may be assumed of it.
"""

from cosmo.world.batch import Batch, Decisions
from cosmo.world.observation import DispatchObservation, Settled, Truth, UpdateObservation
from cosmo.world.outcome import Outcome, StatusRecord
from cosmo.world.records import IDLE, LATENCY, REQUESTS, STORAGE, WAIT, WORK
from cosmo.world.worlds import Network, Worlds

__all__ = [
    "IDLE",
    "LATENCY",
    "REQUESTS",
    "STORAGE",
    "WAIT",
    "WORK",
    "Batch",
    "Decisions",
    "DispatchObservation",
    "Network",
    "Outcome",
    "Settled",
    "StatusRecord",
    "Truth",
    "UpdateObservation",
    "Worlds",
]
