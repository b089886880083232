"""Scenarios in and out: presets, TOML files that extend one another, single fields by name."""

from pathlib import Path
from typing import Any

from cosmo.documents import Documents, Settings, checked_settings
from cosmo.documents import dump as dump_document
from cosmo.errors import InputError
from cosmo.scenario.model import Scenario

DOCUMENTS = Documents(
    "scenario",
    Scenario,
    "cosmo.scenario",
    "paper",
    "workload.rate=220",
    ("workload.trace", "workload.events"),
)


def preset_names() -> list[str]:
    """The names of the scenarios that come with the package, `paper` first."""
    return DOCUMENTS.preset_names()


def load(source: str | Path = "paper", settings: Settings = ()) -> Scenario:
    """Load a scenario.

    A trace or a file of events that a scenario's file names is looked for beside it. Arrivals are
    then those of the trace: to set them is refused, as it would change nothing. The rate is what
    nodes know of the load (R36).

    Args:
        source: A preset's name (`preset_names`) or the path of a TOML file.
        settings: Fields to set, `{"workload.rate": 220}` or `["workload.rate=220"]`.

    Returns:
        The scenario, checked.

    Raises:
        InputError: In one line with the field, the value and what is allowed.

    """
    given = checked_settings(settings)
    found = DOCUMENTS.load(source, given)
    fields = {setting.partition("=")[0].strip() for setting in given}
    if found.workload.trace and "workload.arrivals" in fields:
        raise InputError(
            f"workload.arrivals: the tasks come from workload.trace = {found.workload.trace!r};"
            ' leave it out, or generate them with workload.trace=""'
        )
    return found


def without_trace(scenario: Scenario) -> Scenario:
    """The same with Poisson arrivals in place of a trace, and with events that are drawn in place
    of a file's: what methods are trained on.
    """
    drawn = changed(scenario, {"workload.events": ""}) if scenario.workload.events else scenario
    if not scenario.workload.trace:
        return drawn
    return changed(drawn, {"workload.trace": "", "workload.arrivals": "poisson"})


def scenario_from(data: dict[str, Any]) -> Scenario:
    """A scenario from what `Scenario.model_dump` gave."""
    return DOCUMENTS.validated(dict(data))


def changed(scenario: Scenario, settings: Settings) -> Scenario:
    """The same with single fields set, as text (`["workload.rate=220"]`) or as values by name."""
    return DOCUMENTS.validated(scenario.model_dump(), settings)


def dump(scenario: Scenario) -> str:
    """The scenario as a complete TOML file."""
    return dump_document(scenario)
