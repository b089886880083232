"""A study on disk.

plan.toml         the plan, to do it again elsewhere
study.json        the plan, all scenarios and the training in full, versions, the machine
metrics.parquet   a row for every method, load, run and episode
curves.parquet    a row for every training run and episode
bounds.parquet    the clairvoyant bound of every load, run and episode, if the plan asks for it
tuned.parquet     evaluation episodes of tuned methods, if the plan tunes: the chosen settings and
                  those of trade-off curves
trials.parquet    a row for every setting that was tried on validation episodes
checksums.json    SHA-256 of these tables
inputs/           copies of the policies, models, traces and scenarios that the plan names
units/NAME/       what each unit wrote; checkpoints of trained methods are in NAME/checkpoint/;
                  failed.txt says why the last attempt failed
"""

import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import polars
from pydantic import BaseModel, Field, ValidationError

import cosmo
from cosmo.documents import dump
from cosmo.errors import InputError
from cosmo.files import digest_of, made_folder, read_record, whole_file, write_record
from cosmo.study import inputs
from cosmo.study.checks import (
    BOUNDS_FILE,
    CHECKPOINT,
    CURVES_FILE,
    METRICS_FILE,
    TRIALS_FILE,
    TUNED_FILE,
    finished,
)
from cosmo.study.focus import focus_of, is_known_yardstick, yardsticks_of
from cosmo.study.plan import Plan
from cosmo.study.plan_checks import check_focus
from cosmo.study.plan_files import plan_from
from cosmo.study.table_checks import check_points, check_table
from cosmo.study.tuning import SHOWN
from cosmo.study.units import BOUNDS, KEYS, TrainUnit
from cosmo.study.work import units_of
from cosmo.tables import read_parquet, write_table

FORMAT = 1
STUDY, PLAN, UNITS, FAILED = "study.json", "plan.toml", "units", "failed.txt"
CHECKSUMS = "checksums.json"


@dataclass(frozen=True)
class Study:
    """A study's plan and its results as data frames."""

    folder: Path
    plan: Plan
    about: dict[str, Any]  # versions and machine
    # scenario, arrivals, rate, method, seed, episode, every metric; and, of what is part of a
    # sweep, `swept` (the scenario or method that was varied), `sweep` (the field), `sweep_value`.
    metrics: polars.DataFrame
    curves: polars.DataFrame  # scenario, method, arrivals, rate, seed, episode, reward, …
    # scenario, arrivals, rate, seed, episode, clairvoyant_bound; empty if the plan did not ask
    bounds: polars.DataFrame = field(default_factory=lambda: polars.DataFrame(schema=BOUNDS))
    # As metrics, with `setting` (the method with its parameters) and `chosen`; of tuned methods
    tuned: polars.DataFrame = field(default_factory=lambda: polars.DataFrame(schema=TUNED))
    yardsticks: tuple[str, ...] = ()  # methods that are handed the truth, when the study was made

    @cached_property
    def focus(self) -> str:
        """The focus method.

        The one that the plan names, even if it failed and has no results: a verdict is never about
        another one. If the plan names none, one that there are results of.
        """
        there = self.metrics["method"].unique(maintain_order=True).to_list()
        chosen = focus_of(self.plan, self.yardsticks)
        others = (name for name in there if not self.is_yardstick(name))
        named = self.plan.focus is not None
        return chosen if named or chosen in there else next(others, there[0])

    def about_method(self, name: str) -> "Study":
        """The same results with another focus method; InputError if it is not there."""
        plan = self.plan.model_copy(update={"focus": name})
        check_focus(plan)
        return replace(self, plan=plan)

    def is_yardstick(self, name: str) -> bool:
        """Whether a method is handed the truth (R15), so that nobody could deploy it."""
        return name in self.yardsticks or is_known_yardstick(name)

    def checkpoint(self, method: str, rate: float, arrivals: str, scenario: str) -> Path:
        """The folder of a trained method's runs at a load, for `load_controller`."""
        for unit in units_of(self.plan):
            folder = self.folder / UNITS / unit.name / CHECKPOINT
            if isinstance(unit, TrainUnit) and unit.label == method and folder.exists():
                loads = [(one.name, one.workload) for one in unit.played_on]
                if any(
                    (name, load.arrivals) == (scenario, arrivals)
                    and (load.rate == rate or load.trace)
                    for name, load in loads
                ):
                    return folder
        raise InputError(f"'{self.folder}': has no checkpoint of {method} at {rate:g} tasks/s")


def prepare(folder: Path, plan: Plan) -> None:
    """Make the folder this plan's; refuse one that is somebody else's or another plan's."""
    empty = made_folder(folder)
    if (folder / STUDY).exists():
        _check_same(folder, plan)
        refocus(folder, plan.focus)
    elif not empty:
        raise InputError(f"out = '{folder}': is not empty and has no study in it")
    else:  # first of all, so that a run that is killed here finds its own folder again
        about = {
            "format": FORMAT,
            **made_here(),
            "plan": plan.model_dump(mode="json"),
            "resolved": plan.resolved(),
            "yardsticks": yardsticks_of(plan),
        }
        write_record(folder / STUDY, about)
    inputs.keep(folder, plan)
    if not (folder / PLAN).exists():
        _write_plan(folder, plan)


def _write_plan(folder: Path, plan: Plan) -> None:
    with whole_file(folder / PLAN) as temporary:
        temporary.write_text(dump(plan), encoding="utf-8")


def _check_same(folder: Path, plan: Plan) -> None:
    """Refuse to mix plans, scenarios that have changed, or versions in one folder."""
    about = read_about(folder)
    # The focus changes the report of the results, not the results.
    for name, value in plan.model_dump(mode="json", exclude={"focus"}).items():
        # A field that an older study does not have was as it is by default.
        if about["plan"].get(name, Plan.model_fields[name].get_default()) != value:
            raise InputError(
                f"out = '{folder}': has a study with another {name}; choose another folder"
            )
    if about["version"] != cosmo.__version__:
        raise InputError(
            f"out = '{folder}': was begun by cosmo {about['version']}, this is"
            f" {cosmo.__version__}; choose another folder"
        )
    now = plan.resolved()
    for source, scenario in about["resolved"]["scenarios"].items():
        if now["scenarios"].get(source) != scenario:
            raise InputError(
                f"out = '{folder}': {source!r} has changed since; choose another folder"
            )
    for name, trace in about["resolved"].get("traces", {}).items():
        if now["traces"].get(name) != trace:
            raise InputError(
                f"out = '{folder}': the trace of {name!r} has changed since; choose another"
            )
    for name, events in about["resolved"].get("events", {}).items():
        if now.get("events", {}).get(name) != events:
            raise InputError(
                f"out = '{folder}': the events of {name!r} have changed since; choose another"
            )
    if now["training"] != about["resolved"]["training"]:
        raise InputError(f"out = '{folder}': the training has changed; choose another folder")


def refocus(folder: Path, focus: str | None) -> None:
    """Give a study on disk another focus method of its plan."""
    about = read_about(folder)
    if about["plan"].get("focus") == focus:
        return
    plan = plan_from({**about["plan"], "focus": focus}, about["resolved"])
    check_focus(plan)
    about["plan"] = plan.model_dump(mode="json")
    _write_plan(folder, plan)
    write_record(folder / STUDY, about)


def made_here() -> dict[str, Any]:
    """Versions and machine, of now and here."""
    return {
        "version": cosmo.__version__,
        "versions": _versions(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in ("numpy", "numba", "jax", "jaxlib", "optax", "polars"):
        found[name] = metadata.version(name)
    return found


class _Trace(BaseModel):
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    sha256: str


class _Resolved(BaseModel):
    scenarios: dict[str, dict[str, Any]]
    training: dict[str, dict[str, Any]]
    traces: dict[str, _Trace] = {}


class _About(BaseModel):
    """The fields of `study.json`: a seal says that it is as it was written, not who wrote it."""

    version: str
    versions: dict[str, str]
    machine: str
    plan: dict[str, Any]
    resolved: _Resolved
    yardsticks: list[str] = []  # studies of before have none


def read_about(folder: Path) -> dict[str, Any]:
    """What `study.json` says; InputError in one line if it is not a study's."""
    told = read_record(folder / STUDY, "there is no study", "cosmo study", FORMAT)
    try:
        _About.model_validate(told)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"'{folder / STUDY}': {field}: {first['msg'].lower()}") from None
    return told


def merge(folder: Path, plan: Plan) -> None:
    """Gather what is finished into the study's tables, in the plan's order."""
    done = [folder / UNITS / unit.name for unit in units_of(plan)]
    done = [path for path in done if finished(path)]
    place = ["scenario", "arrivals", "rate", "method"]
    points = [(scenario.name, *rest) for scenario, *rest in plan.points()]
    order = polars.DataFrame(points, schema=place, orient="row").with_row_index("place")
    written = {}
    for name in (METRICS_FILE, CURVES_FILE):
        parts = [_read(path / name) for path in done if (path / name).exists()]
        if parts:
            rows = polars.concat(parts, how="diagonal")
            table = rows.join(order, on=place, how="left")
            if name == METRICS_FILE:
                assert not table["place"].has_nulls(), "every row is a point of the plan"
                table = with_axes(table, plan)
            # A training for all loads has none of its own: its curves come last.
            table = table.sort("place", "method", "seed", "episode", nulls_last=True).drop("place")
            write_table(folder / name, table)
            written[name] = digest_of(folder / name)
    for name in (BOUNDS_FILE, TUNED_FILE, TRIALS_FILE):
        parts = [_read(path / name) for path in done if (path / name).exists()]
        if parts:
            write_table(folder / name, polars.concat(parts))
            written[name] = digest_of(folder / name)
    write_record(folder / CHECKSUMS, {"format": FORMAT, "written": written})


def with_axes(metrics: polars.DataFrame, plan: Plan) -> polars.DataFrame:
    """The same with `swept`, `sweep` and `sweep_value`: null in rows that are part of no sweep."""
    axes = polars.DataFrame(plan.axes(), schema=AXES, orient="row")
    return metrics.join(axes, on=["scenario", "method"], how="left", maintain_order="left")


def load_study(folder: str | Path) -> Study:
    """Read a study from its folder.

    Args:
        folder: The folder that `cosmo study run`, `cosmo compare` or `cosmo run` wrote.

    Returns:
        The plan and its results as data frames.

    Raises:
        InputError: In one line, if there are no results, or they are damaged or of another format.

    """
    folder = Path(folder)
    about = read_about(folder)
    if not (folder / METRICS_FILE).exists():
        raise InputError(f"'{folder}': has no results yet (go on with cosmo study run)")
    _check_tables(folder)
    plan = plan_from(about["plan"], about["resolved"])
    metrics = _loaded(folder / METRICS_FILE, RESULTS, (*KEYS, *SHOWN, "decision_accuracy"))
    check_points(folder / METRICS_FILE, metrics, plan)
    own = [name for name in KEYS if name != "episode"]  # what all have
    return Study(
        folder=folder,
        plan=plan,
        about={key: about[key] for key in ("version", "versions", "machine")},
        metrics=metrics,
        curves=_loaded(folder / CURVES_FILE, NO_CURVES, own),
        bounds=_loaded(folder / BOUNDS_FILE, BOUNDS, BOUNDS),
        tuned=_loaded(folder / TUNED_FILE, TUNED, TUNED),
        yardsticks=tuple(about.get("yardsticks", ())),  # studies of before have none
    )


def _loaded(path: Path, kinds: dict[str, Any], needed: Iterable[str]) -> polars.DataFrame:
    """A table of results; an empty one if there is none."""
    if not path.exists():
        return polars.DataFrame(schema=kinds)
    table = _read(path)
    check_table(path, table, kinds, tuple(needed))
    return table


def _check_tables(folder: Path) -> None:
    """Refuse tables that are not what was written; a study without checksums is an older one."""
    if not (folder / CHECKSUMS).exists():
        return
    told = read_record(folder / CHECKSUMS, "there are no checksums", "cosmo study", FORMAT)
    written = told.get("written")
    if not isinstance(written, dict):
        raise InputError(f"'{folder / CHECKSUMS}': has no checksums")
    for name, digest in written.items():
        path = folder / name
        if not path.is_file() or digest_of(path) != digest:
            raise InputError(
                f"'{path}': is not what was written, it is damaged or cut short; gather it again"
                f" with: cosmo study run {folder / PLAN} --out {folder}"
            )


AXES: dict[str, Any] = {
    **dict.fromkeys(("scenario", "method", "swept", "sweep"), polars.String),
    "sweep_value": polars.Float64,
}
TUNED: dict[str, Any] = {
    **dict.fromkeys(("scenario", "arrivals", "method", "setting"), polars.String),
    **dict.fromkeys(("rate", *SHOWN), polars.Float64),
    **dict.fromkeys(("seed", "episode"), polars.Int64),
    "chosen": polars.Boolean,
}
RESULTS: dict[str, Any] = {
    **AXES,
    **dict.fromkeys(("scenario", "arrivals", "method"), polars.String),
    "rate": polars.Float64,
    **dict.fromkeys(("seed", "episode"), polars.Int64),
}
NO_CURVES: dict[str, Any] = {
    **dict.fromkeys(("scenario", "method", "arrivals"), polars.String),
    "rate": polars.Float64,
    **dict.fromkeys(("seed", "episode"), polars.Int64),
    **dict.fromkeys(("reward", "success_rate", "decision_accuracy"), polars.Float64),
    **dict.fromkeys(("update_cost_rate", "epsilon", "validation_utility"), polars.Float64),
}
assert set(KEYS) <= set(NO_CURVES)


def _read(path: Path) -> polars.DataFrame:
    wrong = f"'{path}': is damaged or cut short"
    try:
        return read_parquet(path, wrong)
    except OSError as error:
        raise InputError(f"{wrong} ({error.strerror})") from None
