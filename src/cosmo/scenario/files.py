"""Scenarios in and out: presets, TOML files that extend one another, single fields by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cosmo.documents import Documents
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
    """The presets that come with the package."""
    return DOCUMENTS.preset_names()


def load(source: str | Path = "paper", settings: Iterable[str] = ()) -> Scenario:
    """A preset by name or a TOML file by path, with single fields set as `workload.rate=220`.

    A trace or a file of events that the file names is looked for beside it. Arrivals are then those
    of the trace: to set them is refused, as it would change nothing. The rate is what nodes are
    told (R36).
    """
    settings = list(settings)
    found = DOCUMENTS.load(source, settings)
    if found.workload.trace:
        for setting in settings:
            field = setting.partition("=")[0].strip()
            if field == "workload.arrivals":
                raise InputError(
                    f"{field}: the tasks come from workload.trace = {found.workload.trace!r}; leave"
                    ' it out, or generate them with workload.trace=""'
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


def changed(scenario: Scenario, settings: Iterable[str] | Mapping[str, Any]) -> Scenario:
    """The same with single fields set, as text (`["workload.rate=220"]`) or as values by name."""
    return DOCUMENTS.validated(scenario.model_dump(), settings)


def dump(scenario: Scenario) -> str:
    """The scenario as a complete TOML file."""
    return dump_document(scenario)
