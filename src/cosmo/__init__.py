"""CoSMO: update for decisions, not freshness.

Status updating and selective offloading at the network edge: the world, the methods, the measures.
Names are loaded when they are first used, so that a node that runs a trained controller
(`cosmo.node`, `cosmo.policy`) needs NumPy alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The public names by their homes.
_HOMES = {
    "cosmo": ("study",),
    "cosmo.control.conformance": ("check_method",),
    "cosmo.control.evaluate": ("evaluate",),
    "cosmo.control.play": ("play",),
    "cosmo.control.registry": ("METHODS", "method"),
    "cosmo.control.simulate": ("simulate",),
    "cosmo.errors": ("InputError",),
    "cosmo.learn.training": ("train",),
    "cosmo.measure": ("episode_metrics", "task_table"),
    "cosmo.node": (
        "DispatchObservation",
        "Dispatcher",
        "Feedback",
        "Method",
        "Site",
        "SnStates",
        "UpdateObservation",
        "Updater",
    ),
    "cosmo.policy.controller": ("load_controller",),
    "cosmo.policy.outside": ("from_callable",),
    "cosmo.report.compare": ("compare",),
    "cosmo.scenario": ("Scenario", "load", "preset_names"),
    "cosmo.study": ("load_study",),
    "cosmo.study.tuning": ("tune",),
    "cosmo.workload": ("episode", "write_trace"),
    "cosmo.world": ("Worlds", "site_of"),
}
__all__ = sorted(name for names in _HOMES.values() for name in names)

if TYPE_CHECKING:  # what the names are; `X as X` exports them
    from cosmo import study as study
    from cosmo.control.conformance import check_method as check_method
    from cosmo.control.evaluate import evaluate as evaluate
    from cosmo.control.play import play as play
    from cosmo.control.registry import METHODS as METHODS
    from cosmo.control.registry import method as method
    from cosmo.control.simulate import simulate as simulate
    from cosmo.errors import InputError as InputError
    from cosmo.learn.training import train as train
    from cosmo.measure import episode_metrics as episode_metrics
    from cosmo.measure import task_table as task_table
    from cosmo.node import Dispatcher as Dispatcher
    from cosmo.node import DispatchObservation as DispatchObservation
    from cosmo.node import Feedback as Feedback
    from cosmo.node import Method as Method
    from cosmo.node import Site as Site
    from cosmo.node import SnStates as SnStates
    from cosmo.node import UpdateObservation as UpdateObservation
    from cosmo.node import Updater as Updater
    from cosmo.policy.controller import load_controller as load_controller
    from cosmo.policy.outside import from_callable as from_callable
    from cosmo.report.compare import compare as compare
    from cosmo.scenario import Scenario as Scenario
    from cosmo.scenario import load as load
    from cosmo.scenario import preset_names as preset_names
    from cosmo.study import load_study as load_study
    from cosmo.study.tuning import tune as tune
    from cosmo.workload import episode as episode
    from cosmo.workload import write_trace as write_trace
    from cosmo.world import Worlds as Worlds
    from cosmo.world import site_of as site_of


def __getattr__(name: str) -> Any:
    homes = [home for home, names in _HOMES.items() if name in names]
    if not homes:
        raise AttributeError(f"module 'cosmo' has no attribute {name!r}")
    [home] = homes
    try:
        if home == "cosmo":  # a package itself
            found = importlib.import_module(f"cosmo.{name}")
        else:
            found = getattr(importlib.import_module(home), name)
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
    return __all__
