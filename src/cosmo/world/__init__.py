"""The embedded world: an event-driven engine that runs many worlds at once.

`batch.py` is the door, `kernel.py` the event loop, `CONTRACT.md` what may be assumed of it.
"""

from cosmo.world.batch import Decisions, Outcome, Worlds
from cosmo.world.observation import DispatchObservation, Truth, UpdateObservation

__all__ = [
    "Decisions",
    "DispatchObservation",
    "Outcome",
    "Truth",
    "UpdateObservation",
    "Worlds",
]
