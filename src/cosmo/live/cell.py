"""When each task of an episode reaches its EN (R4, R6, R7): the simulator's cells, played alone.

The channel does not depend on what ENs decide, so all arrivals are known from the start. What comes
out is what UEs would do: a load generator replays it, and the virtual world starts from it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Worlds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arrivals:
    """[task] when each reaches its EN (NaN: never, R4), and until when its UE stays after that."""

    time_ms: Floats
    residual_ms: Floats
    order: NDArray[np.int64]  # tasks that reach their EN, as they do: those of an instant in turn


def arrivals_at_ens(scenario: Scenario, episode: Episode) -> Arrivals:
    """Play the episode with every task rejected."""
    tasks = episode.tasks
    worlds, order = Worlds(scenario, [episode]), list[int]()
    time_ms, residual_ms = np.full(len(tasks), np.nan), np.zeros(len(tasks))
    of_en = [np.flatnonzero(tasks.en == en) for en in range(scenario.en.count)]
    while not (turn := worlds.advance()).over:
        seen = turn.dispatch
        for row, (en, number) in enumerate(zip(seen.en, seen.task, strict=True)):
            task = of_en[en][number]
            time_ms[task], residual_ms[task] = seen.time_ms[row], seen.residual_ms[row]
            order.append(int(task))
        worlds.answer(action=np.full(len(seen), seen.reject))
    return Arrivals(time_ms, residual_ms, np.array(order, np.int64))
