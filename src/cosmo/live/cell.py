"""The cells of an episode, worked out beforehand: when each task reaches its EN (R4, R6, R7).

The channel does not depend on what ENs decide, so all arrivals are known from the start. What comes
out is what UEs would do: a load generator replays it, and the virtual world starts from it.
"""

import heapq
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.node.units import BYTES_PER_MS
from cosmo.scenario import Scenario
from cosmo.workload import Tasks
from cosmo.world.walks import Walks, walks

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Arrivals:
    """[task] when each reaches its EN (NaN: never, R4), and until when its UE stays after that."""

    time_ms: Floats
    requested_ms: Floats  # when the task got hold of the channel's queue: orders equal arrivals
    residual_ms: Floats


def arrivals_at_ens(scenario: Scenario, tasks: Tasks) -> Arrivals:
    """Play the cells alone."""
    access, walk = scenario.access, walks(scenario.mobility, scenario.ues_stay)
    rate = access.rate_mbps * BYTES_PER_MS
    free = [0.0] * scenario.en.count
    found, requested = np.full(len(tasks), np.nan), np.full(len(tasks), np.nan)
    # UEs that come back into range ask again before tasks that are generated at that instant.
    again: list[tuple[float, int, int]] = []
    following, count = 0, len(tasks)
    while again or following < count:
        born = tasks.time_ms[following] if following < count else math.inf
        if again and again[0][0] <= born:
            now, _, task = heapq.heappop(again)
        else:
            now, task = float(born), following
            following += 1
        en, ue = int(tasks.en[task]), int(tasks.ue[task])
        start = max(now, free[en])
        last = tasks.time_ms[task] + tasks.deadline_ms[task] + scenario.episode.undecided_after_ms
        if start < walk.enter[ue] <= last:
            heapq.heappush(again, (float(walk.enter[ue]), following + len(again), task))
            continue
        if start < walk.enter[ue] or start > walk.leave[ue]:
            continue
        hold = access.overhead_ms + float(tasks.input_bytes[task]) / rate
        if free[en] > now:
            hold += access.contention_ms
        free[en] = start + hold
        if free[en] <= last:
            found[task], requested[task] = free[en], now
    residual = [_residual(walk, int(ue), time) for ue, time in zip(tasks.ue, found, strict=True)]
    cap = scenario.mobility.residual_cap_ms
    return Arrivals(found, requested, np.minimum(np.array(residual), cap))


def _residual(walk: Walks, ue: int, now: float) -> float:
    """R7: until the UE is next at the edge of the radius."""
    if math.isnan(now):
        return 0.0
    edge, crossing = float(walk.edge[ue]), float(walk.crossing[ue])
    if now > edge and crossing > 0.0:
        edge += math.ceil((now - edge) / crossing) * crossing
    return max(edge - now, 0.0)
