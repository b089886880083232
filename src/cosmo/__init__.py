"""CoSMO: update for decisions, not freshness.

Status updating and selective offloading at the network edge: the world, the methods, the measures.
"""

from cosmo.control import METHODS, Method, Setting, method, play, simulate
from cosmo.errors import InputError
from cosmo.scenario import Scenario, load, preset_names
from cosmo.world import DispatchObservation, UpdateObservation, Worlds

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "DispatchObservation",
    "InputError",
    "Method",
    "Scenario",
    "Setting",
    "UpdateObservation",
    "Worlds",
    "load",
    "method",
    "play",
    "preset_names",
    "simulate",
]
