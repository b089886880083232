"""CoSMO: update for decisions, not freshness.

Status updating and selective offloading at the network edge: the world, the methods, the measures.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cosmo.control.method import Method, Setting
    from cosmo.control.play import play
    from cosmo.control.registry import METHODS, method
    from cosmo.control.simulate import simulate
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

# Imported when they are asked for: the engine takes its time, and a command must be able to start.
_PLACES = {
    "cosmo.control": ("METHODS", "Method", "Setting", "method", "play", "simulate"),
    "cosmo.errors": ("InputError",),
    "cosmo.scenario": ("Scenario", "load", "preset_names"),
    "cosmo.world": ("DispatchObservation", "UpdateObservation", "Worlds"),
}


def __getattr__(name: str) -> Any:
    for place, names in _PLACES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(place), name)
            return found
    raise AttributeError(f"module 'cosmo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
