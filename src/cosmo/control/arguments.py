"""Names where objects are wanted: scenarios and methods as people write them in Python."""

import json
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from cosmo.control.registry import method
from cosmo.documents import Settings
from cosmo.errors import InputError
from cosmo.node import Method
from cosmo.scenario import Scenario, changed, load

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
        found = changed(found, settings if isinstance(settings, Mapping) else list(settings))
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
    if isinstance(settings, Mapping):
        return [f"{name}={json.dumps(value)}" for name, value in settings.items()]
    return list(settings)


def several(values: float | Iterable[float]) -> list[float]:
    """Rates, of which one may stand for a list of one."""
    found = _listed(values)
    if not found:
        raise InputError("rates = []: must have one number at least")
    if not all(isinstance(each, Real) for each in found):
        raise InputError(f"rates = {found}: must be numbers")
    return [float(each) for each in found]


def several_seeds(seeds: int | Iterable[int]) -> list[int]:
    """Seeds, of which one may stand for a list of one."""
    found = _listed(seeds)
    right = all(isinstance(each, Integral) and int(each) >= 0 for each in found)
    if not found or not right or len(set(found)) < len(found):
        raise InputError(f"seeds = {found}: must be different whole numbers from 0 on")
    return [int(each) for each in found]


def _listed(values: Any) -> list[Any]:
    """One as a list of one; a text is one, not a list of characters."""
    many = isinstance(values, Iterable) and not isinstance(values, str)
    return list(values) if many else [values]


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
