"""Trained controllers on disk: written by `cosmo.learn`, read and used with NumPy alone.

A folder has `training.json` (what was trained, on what, how) and `agents.npz` (the parameters of
every run's best networks: one array a layer, `en/fusion.w` with a leading axis of runs).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.checksums import unsealed_arrays
from cosmo.control.learned import Agents
from cosmo.control.method import Dispatcher, Method, Setting, Updater
from cosmo.control.next.agents import NextAgents
from cosmo.control.next.rules import rules_from
from cosmo.errors import InputError
from cosmo.files import read_record
from cosmo.scenario import Scenario, scenario_from

FORMAT = 1
DESCRIPTION, AGENTS = "training.json", "agents.npz"


@dataclass(frozen=True)
class Controller:
    """The trained agents of one or several runs."""

    folder: Path
    method: str
    seeds: tuple[int, ...]
    scenarios: tuple[Scenario, ...]  # what each run was trained on
    agents: Agents | NextAgents  # a row a run

    def check(self, scenario: Scenario) -> None:
        """Refuse a scenario of another shape than the networks know."""
        if self.agents.any_topology:
            return
        trained = self.scenarios[0].sn.count
        if scenario.sn.count != trained:
            raise InputError(
                f"scenario = {scenario.name!r}: has {scenario.sn.count} SNs, but the controller in"
                f" '{self.folder}' was trained with {trained}"
            )

    def run_of(self, seed: int, scenario: Scenario) -> int:
        """The run that was trained with this seed, at best at this load, or else the first."""
        same = [run for run, own in enumerate(self.seeds) if own == seed]
        among = same or list(range(len(self.seeds)))
        load = scenario.workload
        return next((run for run in among if self.scenarios[run].workload == load), among[0])


def load_controller(folder: str | Path) -> Controller:
    """Read what `cosmo train` wrote."""
    folder = Path(folder)
    told = read_description(folder)
    arrays = read_arrays(folder / AGENTS)
    how = told["training"]
    layers: dict[str, dict[str, NDArray[np.float32]]] = {"encoder": {}, "en": {}, "sn": {}}
    for name, value in arrays.items():
        part, _, layer = name.partition("/")
        if part in layers:
            layers[part][layer] = value
    agents: Agents | NextAgents
    if told["method"] == "cosmo-next":
        agents = NextAgents(layers["en"], layers["sn"], rules_from(how))
    else:
        agents = _paper_agents(layers, how)
    return Controller(
        folder=folder,
        method=told["method"],
        seeds=tuple(run["seed"] for run in told["runs"]),
        scenarios=tuple(scenario_from(run["scenario"]) for run in told["runs"]),
        agents=agents,
    )


def _paper_agents(layers: dict[str, dict[str, NDArray[np.float32]]], how: dict[str, Any]) -> Agents:
    return Agents(
        encoder=layers["encoder"] if how["encoder"]["semantic"] else None,
        en=layers["en"],
        sn=layers["sn"],
        intervals_ms=tuple(how["sn"]["intervals_ms"]),
        hierarchical=how["en"]["hierarchical"],
        with_age=how["en"]["with_age"],
    )


def read_description(folder: Path) -> dict[str, Any]:
    """What `training.json` says; refuses folders of others and of other formats."""
    path = folder / DESCRIPTION
    return read_record(path, "there is no trained controller", "cosmo train", FORMAT)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz file; nothing in it is ever executed."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            return unsealed_arrays({name: file[name] for name in file.files})
    except FileNotFoundError:
        raise InputError(f"'{path}': is missing; the training has no checkpoint yet") from None
    except Exception as error:  # zipfile and NumPy raise all kinds at a flipped bit
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"'{path}': is damaged or cut short ({reason})") from None


def named_layers(part: str, layers: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """How the layers of a network are named in the file."""
    return {f"{part}/{name}": np.ascontiguousarray(value) for name, value in layers.items()}


class Trained(Method):
    """A trained controller from a folder of `cosmo train`."""

    trained = True
    name = ""  # of the method that the folder must hold

    def __init__(self, checkpoint: Path, run: int | None = None) -> None:
        self._controller = load_controller(checkpoint)
        if self.name and self._controller.method != self.name:
            raise InputError(
                f"checkpoint = '{checkpoint}': holds {self._controller.method}, not {self.name}"
            )
        seeds = self._controller.seeds
        if run is not None and run not in seeds:
            raise InputError(f"run = {run}: must be one of {', '.join(map(str, seeds))}")
        self._run = run
        self.carries = self._controller.agents.dimensions  # type: ignore[misc]

    def _learned(self, setting: Setting) -> Method:
        self._controller.check(setting.scenario)
        runs = [
            self._controller.run_of(seed if self._run is None else self._run, setting.scenario)
            for seed in setting.seeds
        ]
        return self._controller.agents.of(runs).at_work()

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The EN agents."""
        return self._learned(setting).dispatcher(setting)

    def updater(self, setting: Setting) -> Updater:
        """The SN agents."""
        return self._learned(setting).updater(setting)


def trained_method(name: str, folder: Path) -> "Trained":
    """The method of this name from a folder of `cosmo train`."""
    return {"cosmo": Cosmo, "cosmo-flat": CosmoFlat, "cosmo-next": CosmoNext}[name](folder)


class Cosmo(Trained):
    """Two agents that learn from realised utility: semantic status, gate then route."""

    name = "cosmo"


class CosmoFlat(Trained):
    """The ablation of `cosmo`: one flat head over the same three actions."""

    name = "cosmo-flat"


class CosmoNext(Trained):
    """One policy for all loads: own books, evidence of others, and learned prices of capacity."""

    name = "cosmo-next"
