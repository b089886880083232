"""Trained controllers on disk: written by `cosmo.learn`, read and used with NumPy alone.

A folder has `training.json` (what was trained, on what, how) and `agents.npz` (the parameters of
every run's best networks: one array a layer, `en/fusion.w` with a leading axis of runs).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.arrays import read_arrays
from cosmo.errors import InputError
from cosmo.files import read_record
from cosmo.node import Site
from cosmo.policy.controller_fields import Fields, check_layers
from cosmo.policy.learned_methods import Agents, learned_method
from cosmo.seeds import run_digest

FORMAT = 2
DESCRIPTION, AGENTS = "training.json", "agents.npz"
_MOST_SNS = 1_000_000


@dataclass(frozen=True)
class TrainedRun:
    """One run of a training: its seed, and the load that it was trained for."""

    seed: int
    rate: float  # tasks a second at an EN
    squared_variation: float  # of the gaps between them


@dataclass(frozen=True)
class Controller:
    """The trained agents of one or several runs."""

    folder: Path
    method: str
    runs: tuple[TrainedRun, ...]
    sns: int  # of the scenario that it was trained on
    agents: Agents = field(repr=False)  # a row a run
    description: Mapping[str, Any] = field(repr=False)  # all of training.json

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the trained runs."""
        return tuple(run.seed for run in self.runs)

    @property
    def device(self) -> str:
        """Where it was trained, "cpu" or "gpu"; empty if the training did not say."""
        return str(self.description.get("device", ""))

    def run_of(self, digest: str, site: Site) -> int:
        """The run of this `run_digest` (else any) that was trained for the load nearest to the
        site's.
        """
        same = [number for number, run in enumerate(self.runs) if run_digest(run.seed) == digest]
        among = same or list(range(len(self.runs)))
        tasks = site.tasks

        def distance(number: int) -> tuple[float, float]:
            run = self.runs[number]
            variation = abs(run.squared_variation - tasks.squared_variation)
            return round(abs(run.rate - tasks.rate), 6), variation

        return min(among, key=distance)  # the first of equals


def load_controller(folder: str | Path) -> Controller:
    """Read a trained controller.

    Args:
        folder: The folder that `cosmo train` or `cosmo.train` wrote.

    Returns:
        The controller: its runs, their seeds and their networks.

    Raises:
        InputError: In one line, if it is missing, damaged or of another format.

    """
    folder = Path(folder)
    told = read_description(folder)
    layers: dict[str, dict[str, NDArray[np.float32]]] = {}
    for name, value in read_arrays(folder / AGENTS).items():
        part, _, layer = name.partition("/")
        layers.setdefault(part, {})[layer] = value
    try:
        fields = Fields(told)
        method, sns = fields.text("method"), fields.whole("sns", 1, _MOST_SNS)
        runs = tuple(_trained_run(run) for run in fields.groups("runs"))
        agents = learned_method(method).agents(layers, fields.group("training"))
    except ValueError as error:
        raise InputError(f"'{folder / DESCRIPTION}': is damaged ({error})") from None
    try:
        check_layers(layers, agents.shapes(), len(runs))
    except ValueError as error:
        raise InputError(f"'{folder / AGENTS}': is damaged ({error})") from None
    return Controller(folder, method, runs, sns, agents, told)


def _trained_run(run: Fields) -> TrainedRun:
    expects = run.group("expects")
    return TrainedRun(
        run.whole("seed", 0, 2**63), expects.number("rate"), expects.number("squared_variation")
    )


def read_description(folder: Path) -> dict[str, Any]:
    """What `training.json` says; refuses folders of others and of other formats."""
    path = folder / DESCRIPTION
    return read_record(path, "there is no trained controller", "cosmo train", FORMAT)


def named_layers(part: str, layers: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """How the layers of a network are named in the file."""
    return {f"{part}/{name}": np.ascontiguousarray(value) for name, value in layers.items()}
