"""When an SN of the multi-node controller closes: its backlog is long and usually stays long.

An SN with a long busy period would have to report it again and again before ENs forget it. Instead
it reports once that it is closed and once that it is open again; between the two, ENs take its
last report as current. Where busy periods are short, as between ENs that share an SN, it never
closes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LATEST_WEIGHT = 0.1  # least weight of the latest busy or idle period in their mean length


class Closing(NamedTuple):
    """What SNs remember of their busy (1) and other (0) periods."""

    busy: Ints  # [world, SN] whether it is busy: above one limit, until below the other
    since: Floats  # [world, SN]
    lasts_ms: Floats  # [world, SN, (other, busy)] mean length of such periods
    times: Floats  # [world, SN, (other, busy)] number of such periods
    closed: Floats  # [world, SN] 1 while the SN is closed


def look(closing: Any, world: Any, sn: Any, work_ms: Any, full: Any, now: Any, p: Any) -> Any:
    """Close or open an SN by its backlog; returns how long it is expected to stay so, in ms."""
    was = closing.busy[world, sn]
    limit_ms = p.opening_work_ms if was == 1 else p.closing_work_ms
    busy = 1 if full or work_ms > limit_ms else 0
    if busy != was:
        passed = now - closing.since[world, sn]
        closing.times[world, sn, was] += 1.0
        weight = max(LATEST_WEIGHT, 1.0 / closing.times[world, sn, was])
        closing.lasts_ms[world, sn, was] += weight * (passed - closing.lasts_ms[world, sn, was])
        closing.busy[world, sn] = busy
        closing.since[world, sn] = now
    # A period that is longer than the mean is expected to last as long again.
    stays = max(closing.lasts_ms[world, sn, busy], now - closing.since[world, sn])
    closing.closed[world, sn] = 1.0 if busy == 1 and stays > p.closing_lasts_ms else 0.0
    return stays


def reopen(closing: Any, world: Any, sn: Any, now: Any) -> None:
    """Reset the periods of an SN that has come back from a failure (R38)."""
    closing.busy[world, sn] = 0
    closing.since[world, sn] = now
    closing.closed[world, sn] = 0.0
    for kind in range(2):
        closing.lasts_ms[world, sn, kind] = 0.0
        closing.times[world, sn, kind] = 0.0


def all_open(nodes: tuple[int, int]) -> Closing:
    """The state of all SNs, [world, SN], at the start."""
    return Closing(
        busy=np.zeros(nodes, np.int64),
        since=np.zeros(nodes),
        lasts_ms=np.zeros((*nodes, 2)),
        times=np.zeros((*nodes, 2)),
        closed=np.zeros(nodes),
    )
