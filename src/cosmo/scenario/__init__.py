"""What the world is: immutable, validated scenarios, their presets and files."""

from cosmo.scenario.files import changed, dump, load, preset_names, scenario_from, without_trace
from cosmo.scenario.links import Links
from cosmo.scenario.model import Scenario
