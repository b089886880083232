"""When an SN of the multi-node controller closes: its backlog is long, and such times last.

An SN whose other users stay for long would have to repeat that it is busy before ENs forget it.
Instead it says once that it is closed, and once that it is open again; until then ENs take it to be
as it said. Where busy times are short, as between ENs that share an SN, it never closes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LATEST_WEIGHT = 0.1  # at least, of the latest busy or idle time in how long they last


class Closing(NamedTuple):
    """What SNs remember of their busy (1) and other (0) times."""

    busy: Ints  # [world, SN] whether it is busy: above one limit, until below the other
    since: Floats  # [world, SN]
    lasts_ms: Floats  # [world, SN, (other, busy)] how long such times last
    times: Floats  # [world, SN, (other, busy)] how many there were
    closed: Floats  # [world, SN] 1 while it says so


def look(closing: Any, world: Any, sn: Any, work_ms: Any, full: Any, now: Any, p: Any) -> Any:
    """The SN looks at its backlog and closes or opens: how long it will stay as it is, in ms."""
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
    # What has lasted longer than usual will last as long again.
    stays = max(closing.lasts_ms[world, sn, busy], now - closing.since[world, sn])
    closing.closed[world, sn] = 1.0 if busy == 1 and stays > p.closing_lasts_ms else 0.0
    return stays


def reopen(closing: Any, world: Any, sn: Any, now: Any) -> None:
    """Nothing is known of the SN's times (R38)."""
    closing.busy[world, sn] = 0
    closing.since[world, sn] = now
    closing.closed[world, sn] = 0.0
    for kind in range(2):
        closing.lasts_ms[world, sn, kind] = 0.0
        closing.times[world, sn, kind] = 0.0


def all_open(nodes: tuple[int, int]) -> Closing:
    """For [world, SN] at the start."""
    return Closing(
        busy=np.zeros(nodes, np.int64),
        since=np.zeros(nodes),
        lasts_ms=np.zeros((*nodes, 2)),
        times=np.zeros((*nodes, 2)),
        closed=np.zeros(nodes),
    )
