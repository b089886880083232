"""CoSMO: update for decisions, not freshness.

Status updating and selective offloading at the network edge: the world, the methods, the measures.
Names are loaded when they are first used, so that a node that runs a trained controller
(`cosmo.node`, `cosmo.policy`) needs NumPy alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Where each public name lives; a room by itself has no home.
_HOMES = {
    "DispatchObservation": "cosmo.node",
    "Dispatcher": "cosmo.node",
    "Feedback": "cosmo.node",
    "InputError": "cosmo.errors",
    "METHODS": "cosmo.control.registry",
    "Method": "cosmo.node",
    "Scenario": "cosmo.scenario",
    "Site": "cosmo.node",
    "SnStates": "cosmo.node",
    "UpdateObservation": "cosmo.node",
    "Updater": "cosmo.node",
    "Worlds": "cosmo.world",
    "check_method": "cosmo.control.conformance",
    "compare": "cosmo.report.compare",
    "episode": "cosmo.workload",
    "episode_metrics": "cosmo.measure",
    "evaluate": "cosmo.control.evaluate",
    "from_callable": "cosmo.policy.outside",
    "load": "cosmo.scenario",
    "load_controller": "cosmo.policy.controller",
    "load_study": "cosmo.study",
    "method": "cosmo.control.registry",
    "play": "cosmo.control.play",
    "preset_names": "cosmo.scenario",
    "simulate": "cosmo.control.simulate",
    "site_of": "cosmo.world",
    "study": "",
    "task_table": "cosmo.measure",
    "train": "cosmo.learn.training",
    "tune": "cosmo.study.tuning",
    "write_trace": "cosmo.workload",
}

__all__ = [
    "METHODS",
    "DispatchObservation",
    "Dispatcher",
    "Feedback",
    "InputError",
    "Method",
    "Scenario",
    "Site",
    "SnStates",
    "UpdateObservation",
    "Updater",
    "Worlds",
    "check_method",
    "compare",
    "episode",
    "episode_metrics",
    "evaluate",
    "from_callable",
    "load",
    "load_controller",
    "load_study",
    "method",
    "play",
    "preset_names",
    "simulate",
    "site_of",
    "study",
    "task_table",
    "train",
    "tune",
    "write_trace",
]

if TYPE_CHECKING:
    from cosmo import study
    from cosmo.control.conformance import check_method
    from cosmo.control.evaluate import evaluate
    from cosmo.control.play import play
    from cosmo.control.registry import METHODS, method
    from cosmo.control.simulate import simulate
    from cosmo.errors import InputError
    from cosmo.learn.training import train
    from cosmo.measure import episode_metrics, task_table
    from cosmo.node import (
        Dispatcher,
        DispatchObservation,
        Feedback,
        Method,
        Site,
        SnStates,
        UpdateObservation,
        Updater,
    )
    from cosmo.policy.controller import load_controller
    from cosmo.policy.outside import from_callable
    from cosmo.report.compare import compare
    from cosmo.scenario import Scenario, load, preset_names
    from cosmo.study import load_study
    from cosmo.study.tuning import tune
    from cosmo.workload import episode, write_trace
    from cosmo.world import Worlds, site_of


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cosmo' has no attribute {name!r}")
    home = _HOMES[name]
    try:
        found = (
            getattr(importlib.import_module(home), name)
            if home
            else importlib.import_module(f"cosmo.{name}")
        )
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "cosmo":
            raise
        raise ImportError(
            f"cosmo.{name} needs {error.name}; install it from a clone of the repository:"
            " pip install '.[lab]'"
        ) from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
