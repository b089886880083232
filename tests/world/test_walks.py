"""R7 on paper: a cell of 5 m, UEs at 1 m/s."""

import math

import numpy as np

from cosmo import load
from cosmo.world.walks import walks


def _walk(distance, heading, stay=False, speed=1.0, at_edge="leave"):
    """(ahead, aside, enter, leave, edge, crossing) in m and s."""
    ways = [f"distances_m=[{distance}]", f"headings_deg=[{heading}]", "radius_m=5"]
    ways += [f"speed_m_per_s={speed}", f"at_edge={at_edge}"]
    scenario = load("paper", [f"mobility.{way}" for way in ways])
    ahead, aside, *times = np.array(walks(scenario.mobility, stay)).reshape(-1)
    return [round(each, 9) for each in (ahead, aside, *np.divide(times, 1000.0))]


def test_straight_through_the_en():
    assert _walk(3.0, 0.0) == [3.0, 0.0, 0.0, 8.0, 8.0, 0.0]
    assert _walk(9.0, 0.0) == [9.0, 0.0, 4.0, 14.0, 14.0, 0.0]
    assert _walk(3.0, 180.0) == [-3.0, 0.0, 0.0, 2.0, 2.0, 0.0]
    assert _walk(6.0, 0.0, speed=2.0) == [6.0, 0.0, 0.5, 5.5, 5.5, 0.0]


def test_past_the_en():
    # 3 m aside: half a chord of 4 m.
    assert _walk(3.0, 90.0) == [0.0, 3.0, 0.0, 4.0, 4.0, 0.0]
    assert _walk(math.sqrt(72.0), 45.0) == [6.0, 6.0, 0.0, -0.001, 0.0, 0.0]  # misses the cell
    assert _walk(9.0, 180.0) == [-9.0, 0.0, 0.0, -0.001, 0.0, 0.0]  # walks away from it


def test_who_does_not_walk_is_in_range_or_never():
    assert _walk(5.0, 0.0, speed=0.0) == [5.0, 0.0, 0.0, math.inf, math.inf, 0.0]
    assert _walk(5.1, 0.0, speed=0.0) == [5.1, 0.0, 0.0, -0.001, 0.0, 0.0]
    assert _walk(5.1, 0.0, speed=0.0, stay=True) == [5.1, 0.0, 0.0, math.inf, math.inf, 0.0]


def test_who_turns_at_the_edge_crosses_the_cell_again_and_again():
    assert _walk(3.0, 0.0, at_edge="turn") == [3.0, 0.0, 0.0, math.inf, 8.0, 10.0]
    assert _walk(9.0, 0.0, at_edge="turn") == [9.0, 0.0, 4.0, math.inf, 14.0, 10.0]
    assert _walk(9.0, 180.0, at_edge="turn") == [-9.0, 0.0, 0.0, -0.001, 0.0, 0.0]


def test_who_stays_is_in_range_at_all_times():
    assert _walk(9.0, 0.0, stay=True) == [9.0, 0.0, 0.0, math.inf, 14.0, 10.0]
    assert _walk(9.0, 180.0, stay=True) == [-9.0, 0.0, 0.0, math.inf, math.inf, 0.0]


def test_at_the_very_edge():
    # 5 m behind: it leaves as it starts. Nearly so: half a ms later.
    assert _walk(5.0, 180.0) == [-5.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    assert _walk(5.0, 180.0, stay=True) == [-5.0, 0.0, 0.0, math.inf, 0.0, 10.0]
    assert _walk(4.9995, 180.0, stay=True) == [-4.9995, 0.0, 0.0, math.inf, 0.0005, 10.0]
    # A chord of 0.2 m: half of it is 0.1.
    aside = math.sqrt(25.0 - 0.01)
    assert _walk(aside, 90.0) == [0.0, round(aside, 9), 0.0, 0.1, 0.1, 0.0]
