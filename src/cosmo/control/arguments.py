"""Names where objects are wanted: scenarios and methods as people write them in Python."""

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cosmo.control.registry import method
from cosmo.documents import Settings, checked_settings, plain_value, short
from cosmo.errors import InputError
from cosmo.node import Method
from cosmo.scenario import Scenario, changed, load
from cosmo.seeds import SEED_LIMIT
from cosmo.workload import Tasks

_MOST = 100_000  # rates, or seeds, of one call
ScenarioLike = Scenario | str | Path  # a preset's name or a TOML file's path stand for the scenario
MethodLike = Method | type[Method] | str  # a class is made without arguments


def as_scenario(
    scenario: ScenarioLike,
    settings: Settings = (),
    rate: float | None = None,
    arrivals: str | None = None,
) -> Scenario:
    """The scenario itself, with fields set; InputError in one line if there is none such."""
    found = scenario if isinstance(scenario, Scenario) else load(scenario)
    if settings:
        found = changed(found, settings)
    load_fields = {"workload.rate": rate, "workload.arrivals": arrivals}
    given = {name: value for name, value in load_fields.items() if value is not None}
    return changed(found, given) if given else found


def at_rates(
    scenario: ScenarioLike,
    settings: Settings = (),
    rates: float | Iterable[float] | None = None,
    arrivals: str | None = None,
) -> list[Scenario]:
    """The same at each rate; at the scenario's own if no rate is given."""
    return [
        as_scenario(scenario, settings, rate, arrivals)
        for rate in ([None] if rates is None else several(rates))
    ]


def as_settings(settings: Settings) -> list[str]:
    """Settings as on the command line, whichever way they were given."""
    given = checked_settings(settings)
    if isinstance(given, list):
        return given
    try:
        return [f"{name}={json.dumps(value)}" for name, value in given.items()]
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"settings = {short(settings)}: {error}") from None


def _listed(values: Any) -> list[Any]:
    """What was given as one value or several; a single one that is none of those is left to the
    caller to refuse.
    """
    values = plain_value(values)
    alone = isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable)
    return [values] if alone else list(islice(values, _MOST + 1))


def several(values: float | Iterable[float]) -> list[float]:
    """Rates, of which one may stand for a list of one."""
    found = _listed(values)
    if not found:
        raise InputError("rates = []: must have one number at least")
    right = all(isinstance(each, Real) and not isinstance(each, bool) for each in found)
    try:
        if right and len(found) <= _MOST:
            return [float(each) for each in found]
    except OverflowError:
        pass
    raise InputError(f"rates = {short(found)}: must be numbers of tasks/s, at most {_MOST}")


def several_seeds(seeds: int | Iterable[int]) -> list[int]:
    """Seeds, of which one may stand for a list of one."""
    found = _listed(seeds)
    right = all(_is_whole(each) and 0 <= each < SEED_LIMIT for each in found)
    if not right or len(set(found)) < len(found) or not 1 <= len(found) <= _MOST:
        raise InputError(
            f"seeds = {short(found)}: must be different whole numbers from 0 on, below 2^63"
        )
    return [int(each) for each in found]


def whole_number(name: str, value: int, least: int = 1, most: int = 1_000_000) -> int:
    """The value of an argument that counts; InputError in one line if it is not such a number."""
    if not _is_whole(value) or not least <= value <= most:
        raise InputError(f"{name} = {short(value)}: must be a whole number from {least} to {most}")
    return int(value)


def check_tasks(tasks: object) -> None:
    """Raise InputError for what are no tasks, where some may be given."""
    if not isinstance(tasks, Tasks | None):
        raise InputError(f"tasks = {short(tasks)}: must be tasks, as an episode has them")


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def as_method(given: MethodLike) -> Method:
    """The method itself; a name is looked up as on the command line, a class is called."""
    if isinstance(given, str):
        return method(given)
    if isinstance(given, type) and issubclass(given, Method):
        try:
            return given()
        except TypeError as error:
            raise InputError(f"method {given.__name__}: cannot be made ({error})") from None
    if not isinstance(given, Method):
        raise InputError(
            f"method = {given!r}: must be a method's name, a cosmo.Method or a class of that kind"
        )
    return given
