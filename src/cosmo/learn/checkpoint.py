"""A training on disk: what it is, where it stands, and what came of it so far.

    training.json   what is trained: method, runs, every number of training
    state.npz       where it stands: all that going on needs (networks, optimizers, replays, curves)
    agents.npz      the best networks of every run so far, for `cosmo.policy`
    curves.parquet  reward, success, … of every run and episode

Every file is whole or absent. `state.npz` alone decides where a resumed training goes on; the
others follow from it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars
from numpy.typing import NDArray

import cosmo
from cosmo.arrays import read_arrays
from cosmo.checksums import sealed_arrays
from cosmo.errors import InputError
from cosmo.files import whole_file, write_record
from cosmo.learn.run import Config, Curve, Run, TrainsRuns
from cosmo.policy.controller import AGENTS, DESCRIPTION, FORMAT, read_description
from cosmo.tables import write_table
from cosmo.world import site_of

STATE, CURVES = "state.npz", "curves.parquet"
CURVE_COLUMNS = (
    "reward",
    "success_rate",
    "decision_accuracy",
    "update_cost_rate",
    "epsilon",
    "validation_utility",
)


def describe(method: str, runs: list[Run], config: Config, device: str) -> dict[str, Any]:
    """What `training.json` says; a node needs `expects` and `sns` of it, not the scenario."""
    return {
        "format": FORMAT,
        "version": cosmo.__version__,
        "method": method,
        "device": device,
        "sns": runs[0].scenario.links.most_sns,
        "runs": [_described(run) for run in runs],
        "training": config.model_dump(mode="json"),
    }


def _described(run: Run) -> dict[str, Any]:
    tasks = site_of(run.scenario).tasks
    expects = {"rate": tasks.rate, "squared_variation": tasks.squared_variation}
    scenario = run.scenario.model_dump(mode="json")
    return {"seed": run.seed, "expects": expects, "scenario": scenario}


def check_same(folder: Path, told: dict[str, Any]) -> None:
    """Refuse to go on with another training than the folder's; more episodes are fine."""
    before = read_description(folder)
    mine, theirs = _flat(told), {"device": "cpu"} | _flat(before)  # older ones do not say
    wanted, known = mine.pop("training.episodes"), theirs.pop("training.episodes", None)
    for field in sorted(mine.keys() | theirs.keys()):
        if mine.get(field) != theirs.get(field):
            raise InputError(
                f"resume: '{folder}' was started with {field} = {theirs.get(field)!r},"
                f" not {mine.get(field)!r}"
            )
    if type(known) is not int:
        raise InputError(f"'{folder / DESCRIPTION}': training.episodes = {known!r}: is damaged")
    if wanted < known:
        raise InputError(f"resume: '{folder}' is for {known} episodes already, more than {wanted}")


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        items = dict(enumerate(value)).items()
    else:
        return {name: value}
    found: dict[str, Any] = {}
    for key, inner in items:
        found |= _flat(inner, f"{name}.{key}" if name else str(key))
    return found


class Curves:
    """Every run's curves so far: [episode, run, column]."""

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs
        self._rows: list[np.ndarray[Any, np.dtype[np.float64]]] = []

    def add(self, curves: list[Curve]) -> None:
        """Of the next episode."""
        self._rows.append(
            np.array([[curve.get(name, np.nan) for name in CURVE_COLUMNS] for curve in curves])
        )

    def saved(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the curves as one array, [episode, run, column]."""
        shape = len(self._rows), len(self._runs), len(CURVE_COLUMNS)
        return np.array(self._rows).reshape(shape)

    def restore(self, kept: np.ndarray[Any, np.dtype[np.float64]]) -> None:
        """The inverse of `saved`."""
        self._rows = list(kept)

    def episode(self, number: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """[run, column] of an episode."""
        return self._rows[number]

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> polars.DataFrame:
        """A row for every run and episode (counted from 1)."""
        values = self.saved()
        episodes, runs, _ = values.shape
        loads = [(run.scenario.workload.arrivals, run.scenario.workload.rate) for run in self._runs]
        columns: dict[str, Any] = {
            "arrivals": [arrivals for arrivals, _ in loads] * episodes,
            "rate": [float(rate) for _, rate in loads] * episodes,
            "seed": [run.seed for run in self._runs] * episodes,
            "episode": np.repeat(np.arange(1, episodes + 1), runs),
        }
        flat = values.reshape(-1, len(CURVE_COLUMNS))
        columns |= {name: flat[:, place] for place, name in enumerate(CURVE_COLUMNS)}
        return polars.DataFrame(columns).with_columns(
            polars.col("validation_utility").fill_nan(None)
        )


def start(folder: Path, told: dict[str, Any]) -> None:
    """Make the folder a training's."""
    write_record(folder / DESCRIPTION, told)


def save(folder: Path, trainer: TrainsRuns, curves: Curves) -> None:
    """Write down where a training stands."""
    _write_arrays(folder / STATE, {**trainer.saved(), "curves": curves.saved()})
    _write_arrays(folder / AGENTS, trainer.delivered())
    write_table(folder / CURVES, curves.table())


def restore(folder: Path, trainer: TrainsRuns, curves: Curves) -> bool:
    """Go on where the folder's training stands; False if it has not got to a checkpoint."""
    path = folder / STATE
    if not path.exists():
        return False
    kept = read_arrays(path)
    try:
        curves.restore(kept.pop("curves"))
        _check_kept(trainer.saved(), kept)
        trainer.restore(kept)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"'{path}': does not fit this training ({error})") from None
    return True


def _check_kept(fresh: Mapping[str, NDArray[Any]], kept: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays of other kinds than this trainer keeps; lengths may have grown since."""
    for name, mine in fresh.items():
        theirs = kept[name]
        if (theirs.dtype, theirs.ndim) != (mine.dtype, mine.ndim):
            raise ValueError(f"{name} is {theirs.dtype} with {theirs.ndim} axes")


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **sealed_arrays(arrays))
