"""The engines that can play a scenario, and what the rest of the package asks of them.

Most engines offer worlds that the caller steps from decision to decision (`worlds`). The nodes of
`live` decide by themselves, so that it plays whole episodes instead (`play`). A new engine is a
name in `scenario.model.Engine`, an entry of `ENGINES`, and its own code, imported when it is used.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Batch, Outcome, Worlds

Progress = Callable[[int], None]  # called with the number of tasks generated so far
# (scenario, episodes, numbers in a status, whether statuses ride on results) -> a world for each
Start = Callable[[Scenario, Sequence[Episode], int, bool], Batch]
# (scenario, the method's name, episodes, a seed for each, progress) -> what became of each
Play = Callable[[Scenario, str, Sequence[Episode], Sequence[int], Progress | None], list[Outcome]]


@dataclass(frozen=True)
class Engine:
    """What an engine offers."""

    worlds: Start
    at_once: int = 1  # worlds to run side by side, where any number would do
    play: Play | None = None  # if its nodes decide by themselves: then nobody can step or watch it
    # Has ready what takes long to make; InputError in one line for what is missing.
    prepare: Callable[[Scenario], None] = lambda scenario: None


def _embedded_worlds(scenario: Scenario, episodes: Sequence[Episode], *given: Any) -> Batch:
    dimensions, rides = given
    return Worlds(scenario, episodes, dimensions, rides=rides)


def _ns3_worlds(*given: Any) -> Batch:
    from cosmo.ns3 import Ns3Worlds

    return Ns3Worlds(*given)


def _ns3_prepare(scenario: Scenario) -> None:
    from cosmo.ns3.library import compiled_network

    compiled_network()


def _live_worlds(*given: Any) -> Batch:
    raise InputError(
        "engine = 'live': its nodes decide by themselves, so it can neither be stepped nor watched"
        " nor trained on; use it in simulate, compare and studies"
    )


def _live_play(*given: Any) -> list[Outcome]:
    from cosmo.live.testbed.play import played

    return played(*given)


def _live_prepare(scenario: Scenario) -> None:
    from cosmo.live.testbed.networks import check_permitted

    check_permitted(scenario.live)


ENGINES = {
    "embedded": Engine(_embedded_worlds, at_once=64),  # few enough for caches
    "ns3": Engine(_ns3_worlds, at_once=os.cpu_count() or 1, prepare=_ns3_prepare),
    "live": Engine(_live_worlds, play=_live_play, prepare=_live_prepare),
}


def engine_of(scenario: Scenario) -> Engine:
    """The engine that a scenario asks for."""
    return ENGINES[scenario.engine]


def worlds(
    scenario: Scenario,
    episodes: Sequence[Episode],
    status_dimensions: int = 0,
    rides: bool = False,
) -> Batch:
    """A batch of worlds, one for each episode, on the scenario's engine; with `rides`, statuses may
    ride on results (R31). InputError if the engine's worlds cannot be stepped.
    """
    return engine_of(scenario).worlds(scenario, episodes, status_dimensions, rides)


def worlds_at_once(scenario: Scenario) -> int:
    """How many worlds to run side by side, where any number would do."""
    return engine_of(scenario).at_once
