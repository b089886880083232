"""Live nodes under the virtual clock, held against the simulator task by task."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from virtual_nodes import VirtualWorld

from cosmo.live.tasks import Fate
from cosmo.node import Method
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP

# What live nodes call the simulator's outcomes.
_FATES = {
    TP: (Fate.DONE,),
    FP: (Fate.LATE, Fate.REFUSED, Fate.EXPIRED),
    TN: (Fate.REJECTED,),
    FN: (Fate.REJECTED,),
}


class Differences(NamedTuple):
    """How an episode on live nodes differs from the simulator's."""

    tasks: NDArray[np.int64]  # that were treated otherwise
    live: tuple[int, int]  # updates that were sent, and decisions on them
    simulated: tuple[int, int]


def differences(
    simulated: Outcome,
    scenario: Scenario,
    make_method: Callable[[], Method],
    seed: int = 0,
    number: int = 0,
) -> Differences:
    """Play what was simulated on live nodes; `make_method` is called for every node.

    Times are compared bit by bit, as is what ENs hear of their tasks and when. Of a task that an SN
    refused, the simulator knows at once; the EN hears later, so that its end is not compared.
    """
    live = VirtualWorld(scenario, make_method, simulated.episode, seed, number).play()
    decided = simulated.action >= 0
    same = live.action == simulated.action
    same &= (live.decided_ms == simulated.decided_ms) | ~decided
    away = simulated.refused & (simulated.action > 0)
    same &= (live.finished_ms == simulated.finished_ms) | away | ~decided
    heard = simulated.heard()
    if heard is not None:
        fate, when = heard
        same &= (live.heard == fate) & ((live.heard_ms == when) | (fate == 0))
    for task in np.flatnonzero(decided):
        same[task] &= live.fate[task] in _FATES[int(simulated.outcome[task])]
    return Differences(
        np.flatnonzero(~same),
        (live.updates, live.update_decisions),
        (simulated.updates, simulated.update_decisions),
    )
