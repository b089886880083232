"""What an EN sees of a task: as plain numbers for rules, as arrays for all other methods.

A node decides task by task. Rules read numbers, and making a dozen arrays for one task would take
longer than most rules do; so arrays are made only if a method, a log or a shadow asks for them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, DispatchObservation
from cosmo.policy.rules.run import SeenTasks, Task

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NO_LINK = (1.0, 0.0, 0.0)  # mean rate, its deviation, trend of a link that is not there
_WORLD = np.zeros(1, np.int64)


class Links:
    """What an EN sees of the links to its SNs, and of these by their statuses; kept up to date."""

    def __init__(self, reach: Ints, known: int, carries: int) -> None:
        """`reach` is [1, k] the SNs; the first `known` of them are there."""
        self.reach, columns = reach, reach.shape[1]
        self._mbps = np.tile(np.array(_NO_LINK), (1, columns, 1))
        self._backlog = np.full((1, columns), math.inf)
        self._status = np.zeros((1, columns, carries))
        self._status_ms = np.full((1, columns), math.nan)
        self.all_reached = bool(reach[0, -1] != NO_NODE)  # no column is left over
        self._told: list[object] = [None] * known  # the rates and numbers that are in the arrays
        self._numbers: list[object] = [None] * known
        self._made_view: Any = self._status_ms.data
        self._backlog_view: Any = self._backlog.data
        rates = self._mbps.data
        self.views = reach.data, self._status.data, self._made_view, rates, self._backlog_view

    def see(
        self,
        column: int,
        mbps: tuple[float, float, float],
        numbers: Floats,
        made_ms: float,
        backlog_ms: float,
    ) -> None:
        """How a link is now, and the last status of its SN (made when the method's clock said)."""
        if mbps is not self._told[column]:
            self._told[column] = mbps
            self._mbps[0, column] = mbps
        if numbers is not self._numbers[column]:
            self._numbers[column] = numbers
            self._status[0, column] = numbers
        self._made_view[0, column] = made_ms
        self._backlog_view[0, column] = backlog_ms

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Copies of status, its time, rates and backlog."""
        kept = self._status, self._status_ms, self._mbps, self._backlog
        return kept[0].copy(), kept[1].copy(), kept[2].copy(), kept[3].copy()


class Sight(NamedTuple):
    """One task; valid until the next one is seen."""

    task: Task
    ue: int
    mbps: float  # of the UE's uploads, smoothed (R8), …
    trend_mbps: float
    residual_ms: float
    speed: float  # of the EN (R37)
    links: Links

    @property
    def reject(self) -> int:
        """The action that rejects."""
        return int(self.links.reach.shape[1]) + 1

    @property
    def tasks(self) -> SeenTasks:
        """What rules see of the task and of the links."""
        return SeenTasks([self.task], *self.links.views)

    def arrays(self) -> DispatchObservation:
        """For other methods: arrays of their own, which stay as they are."""
        task = self.task
        numbers = np.array(
            [
                *(task.time_ms, task.generated_ms, task.input_bytes, task.cycles),
                *(task.deadline_ms, self.mbps, self.trend_mbps, self.residual_ms),
                *(task.local_wait_ms, self.speed),
            ],
            np.float64,
        )
        who = np.array([task.en, self.ue, task.task], np.int64)
        status, status_ms, mbps, backlog_ms = self.links.arrays()
        return DispatchObservation(
            world=_WORLD,
            en=who[0:1],
            ue=who[1:2],
            task=who[2:3],
            time_ms=numbers[0:1],
            generated_ms=numbers[1:2],
            input_bytes=numbers[2:3],
            cycles=numbers[3:4],
            deadline_ms=numbers[4:5],
            throughput_mbps=numbers[5:6],
            throughput_trend_mbps=numbers[6:7],
            residual_ms=numbers[7:8],
            en_state=np.array([task.en_state], np.float64),
            local_wait_ms=numbers[8:9],
            local_room=np.array([task.local_room]),
            sn=self.links.reach,
            status=status,
            status_ms=status_ms,
            up_link_mbps=mbps,
            up_backlog_ms=backlog_ms,
            en_speed=numbers[9:10],
        )
