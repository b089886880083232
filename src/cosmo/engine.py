"""The engine that a scenario asks for: the embedded one, or ns-3."""

import os
from collections.abc import Sequence

from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Batch, Worlds

_EMBEDDED_AT_ONCE = 64  # enough to share the cost of a call, few enough for caches


def worlds(
    scenario: Scenario,
    episodes: Sequence[Episode],
    status_dimensions: int = 0,
    rides: bool = False,
) -> Batch:
    """A batch of worlds, one for each episode, on the scenario's engine; with `rides`, statuses may
    ride on results (R31).
    """
    if scenario.engine == "ns3":
        from cosmo.ns3 import Ns3Worlds

        return Ns3Worlds(scenario, episodes, status_dimensions, rides)
    return Worlds(scenario, episodes, status_dimensions, rides=rides)


def worlds_at_once(scenario: Scenario) -> int:
    """How many worlds to run side by side, where any number would do."""
    return (os.cpu_count() or 1) if scenario.engine == "ns3" else _EMBEDDED_AT_ONCE
