"""What the world is: immutable, validated scenarios, their presets and files."""

from cosmo.scenario.files import dump, load, preset_names
from cosmo.scenario.model import Scenario, per_link, per_node

__all__ = ["Scenario", "dump", "load", "per_link", "per_node", "preset_names"]
