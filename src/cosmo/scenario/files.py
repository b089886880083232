"""Scenarios in and out: presets, TOML files that extend one another, single fields by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cosmo.documents import Documents
from cosmo.documents import dump as dump_document
from cosmo.scenario.model import Scenario

_SCENARIOS = Documents("scenario", Scenario, "cosmo.scenario", "paper", "workload.rate=220")


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return _SCENARIOS.preset_names()


def load(source: str | Path = "paper", settings: Iterable[str] = ()) -> Scenario:
    """A preset by name or a TOML file by path, with single fields set as `workload.rate=220`."""
    return _SCENARIOS.load(source, settings)


def scenario_from(data: dict[str, Any]) -> Scenario:
    """A scenario from what `Scenario.model_dump` gave."""
    return _SCENARIOS.validated(dict(data))


def changed(scenario: Scenario, settings: Iterable[str] | Mapping[str, Any]) -> Scenario:
    """The same with single fields set, as text (`["workload.rate=220"]`) or as values by name."""
    return _SCENARIOS.validated(scenario.model_dump(), settings)


def dump(scenario: Scenario) -> str:
    """The scenario as a complete TOML file."""
    return dump_document(scenario)
