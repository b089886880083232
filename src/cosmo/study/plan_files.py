"""Plans in and out: presets, TOML files, and what a study on disk keeps of one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cosmo.control.arguments import as_settings
from cosmo.documents import Documents, Settings
from cosmo.errors import InputError
from cosmo.learn.session import config_from
from cosmo.scenario import scenario_from
from cosmo.study import inputs, method_files
from cosmo.study.plan import Code, Plan
from cosmo.study.plan_checks import check_plan
from cosmo.study.tune_units import check_searches

_NAMED = (".toml", ".csv", ".parquet")  # files that plans name: scenarios, trainings, traces
DOCUMENTS = Documents("plan", Plan, "cosmo.study", "paper", "episodes=5")


def plan_names() -> list[str]:
    """The names of the plans that come with the package, `paper` first."""
    return DOCUMENTS.preset_names()


def load_plan(source: str | Path, settings: Settings = (), code: Code = "refuse") -> Plan:
    """Load and check a plan.

    Args:
        source: A preset's name (`plan_names`) or the path of a TOML file.
        settings: Fields to set, `{"episodes": 5}` or `["episodes=5"]`.
        code: A plan may be a stranger's. Policies in Python and models of Stable-Baselines3 that it
            names are refused (`"refuse"`), run (`"run"`) or not looked at (`"skip"`); those that
            `settings` name are one's own and run.

    Returns:
        The plan.

    Raises:
        InputError: In one line, for what is unknown, not allowed or refused.

    """
    settings = as_settings(settings)
    plan = DOCUMENTS.load(source, settings)
    methods = [name for part in plan.parts for name in part.methods]
    typed = "\n".join(settings)
    own = [name for name in methods if f'"{name}"' in typed or f"'{name}'" in typed]
    if str(source) not in plan_names():
        folder = Path(source).parent
        plan = _beside(plan, folder)
        own = [inputs.found_method(folder, method_files.beside(name, folder)) for name in own]
    check_plan(plan, code, own)
    check_searches(plan, code == "run")
    return plan


# Fields of a plan and of its parts that name files, and those that name methods.
_FILES = frozenset({"scenarios", "scenario", "traces", "config"})
_METHODS = frozenset({"methods", "also", "repeats", "focus", "over"})


def _beside(plan: Plan, folder: Path) -> Plan:
    """Files that the plan names are looked for beside it first; what is gone or has changed, among
    the copies that a study keeps (`inputs`).
    """

    def file(name: str) -> str:
        near = folder / name
        if not name.endswith(_NAMED):
            return name
        return str(near) if os.path.isfile(near) else inputs.found(folder, name)

    def method(name: str) -> str:
        return inputs.found_method(folder, method_files.beside(name, folder))

    def found(name: str, value: Any) -> Any:
        if name in _FILES or name in _METHODS:
            return _renamed(value, file if name in _FILES else method)
        if isinstance(value, tuple):
            return tuple(found("", each) for each in value)
        if isinstance(value, BaseModel):
            changes = {
                field: found(field, getattr(value, field)) for field in type(value).model_fields
            }
            return value.model_copy(update=changes)
        return value

    made: Plan = found("", plan)
    return made


def _renamed(value: Any, change: Callable[[str], str]) -> Any:
    """A name, several, or several by name, each changed; what a name stands for, if it is no name,
    stays.
    """
    match value:
        case str():
            return change(value)
        case tuple():
            return tuple(map(change, value))
        case dict():
            return {
                change(name): _renamed(told, change) if isinstance(told, tuple) else told
                for name, told in value.items()
            }
    return value


def plan_checked(data: dict[str, Any]) -> Plan:
    """Make a plan from plain data.

    Args:
        data: The plan's fields, by name; policies that it names are run.

    Returns:
        The plan, checked.

    Raises:
        InputError: In one line, for what is unknown or not allowed.

    """
    plan = DOCUMENTS.validated(data)
    check_plan(plan)
    check_searches(plan, runs=True)
    return plan


def plan_from(data: dict[str, Any], resolved: dict[str, Any]) -> Plan:
    """A plan from what `Plan.model_dump` and `Plan.resolved` gave."""
    plan = DOCUMENTS.validated(data)
    plan._scenarios = {
        source: scenario_from(scenario) for source, scenario in resolved["scenarios"].items()
    }
    trainings = plan.trainings()
    for name, told in resolved["training"].items():
        if name not in trainings:
            raise InputError(f"resolved.training.{name}: is not trained by the plan")
        try:
            plan._configs[name] = config_from(trainings[name].method, told)
        except InputError as error:  # damaged, or of a version whose settings had other names
            line = f"{error}; carry the study out again, with this version"
            raise InputError(f"resolved.training.{name}: {line}") from None
    plan._rates = {name: told["rate"] for name, told in resolved.get("traces", {}).items()}
    return plan
