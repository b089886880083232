"""Who decides: the two calls, the methods behind them, their registry, and playing them."""

from cosmo.control.method import (
    NOTHING,
    PROBE,
    RAW,
    SEMANTIC,
    Dispatcher,
    Method,
    Setting,
    Updater,
)
from cosmo.control.play import play
from cosmo.control.registry import FEATURED, METHODS, method
from cosmo.control.simulate import Simulation, simulate

__all__ = [
    "FEATURED",
    "METHODS",
    "NOTHING",
    "PROBE",
    "RAW",
    "SEMANTIC",
    "Dispatcher",
    "Method",
    "Setting",
    "Simulation",
    "Updater",
    "method",
    "play",
    "simulate",
]
