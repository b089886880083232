"""Who decides: the two calls, the methods behind them, their registry, and playing them."""

from cosmo.control.controller import Controller, load_controller, trained_method
from cosmo.control.evaluate import evaluate
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
from cosmo.control.registry import BASELINES, METHODS, PAPER_BASELINES, method
from cosmo.control.simulate import Simulation, simulate, simulate_runs

__all__ = [
    "BASELINES",
    "METHODS",
    "NOTHING",
    "PAPER_BASELINES",
    "PROBE",
    "RAW",
    "SEMANTIC",
    "Controller",
    "Dispatcher",
    "Method",
    "Setting",
    "Simulation",
    "Updater",
    "evaluate",
    "load_controller",
    "method",
    "play",
    "simulate",
    "simulate_runs",
    "trained_method",
]
