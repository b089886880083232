"""R7 in closed form: where UEs start and when they reach the edges of their cell."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario.model import Mobility

Floats = NDArray[np.float64]


class Walks(NamedTuple):
    """The UEs of a cell, each on a straight line; times in ms."""

    ahead_m: Floats  # from its start to the point of its line nearest to the EN
    aside_m: Floats  # from there to the EN
    enter: Floats  # from then on it is in range,
    leave: Floats  # until then
    edge: Floats  # first at the far edge
    crossing: Floats  # between one edge and the other, if it turns round there, else 0


def walks(mobility: Mobility, stay: bool = False) -> Walks:
    """Every UE's walk; one that is never in range leaves before it enters.

    With `stay` all are in range at all times; a UE is then at an edge when it would be if it turned
    there, or never if its line misses the cell.
    """
    speed, radius = mobility.speed_m_per_s / 1000.0, mobility.radius_m
    rows = []
    for distance, heading in zip(mobility.distances_m, mobility.headings_deg, strict=True):
        ahead = distance * math.cos(math.radians(heading))
        aside = distance * math.sin(math.radians(heading))
        half = radius * radius - aside * aside  # square of half the chord
        if speed == 0.0 or half < 0.0:
            inside = stay or distance <= radius
            times = 0.0, math.inf if inside else -1.0, math.inf if inside else 0.0, 0.0
        else:
            near, far = (ahead - math.sqrt(half)) / speed, (ahead + math.sqrt(half)) / speed
            if stay:
                edge = far if far >= 0.0 else math.inf
                times = 0.0, math.inf, edge, far - near if far >= 0.0 else 0.0
            elif far < 0.0:  # it starts outside and walks away
                times = 0.0, -1.0, 0.0, 0.0
            elif mobility.at_edge == "turn":
                times = max(near, 0.0), math.inf, far, far - near
            else:
                times = max(near, 0.0), far, far, 0.0
        rows.append((ahead, aside, *times))
    return Walks(*np.array(rows).T.copy())
