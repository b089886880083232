"""What the world is: immutable, validated scenarios, their presets and files."""

from cosmo.scenario.files import changed, dump, load, preset_names, scenario_from
from cosmo.scenario.model import Scenario, per_link, per_node

__all__ = [
    "Scenario",
    "changed",
    "dump",
    "load",
    "per_link",
    "per_node",
    "preset_names",
    "scenario_from",
]
