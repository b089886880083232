"""`estimate`: the faster route that should be in time, else reject."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.method import Setting
from cosmo.world import IDLE, STORAGE, WORK, DispatchObservation

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Actions = NDArray[np.int64]


def faster_feasible(
    nodes: KnownNodes, tasks: DispatchObservation, wait_ms: Floats, room: Bools
) -> Actions:
    """The fastest route with room and within the deadline, given waits and room at the SNs."""
    elapsed = tasks.time_ms - tasks.generated_ms
    local = elapsed + tasks.local_wait_ms + tasks.cycles / nodes.en_rate[tasks.en]
    remote = (
        elapsed[:, None]
        + nodes.upload_ms(tasks)
        + wait_ms
        + tasks.cycles[:, None] / nodes.sn_rate
        + nodes.return_ms(tasks)
    )
    delay = np.concatenate([local[:, None], remote], axis=1)
    fits = np.concatenate([tasks.local_room[:, None], room], axis=1)
    delay = np.where(fits & (delay <= tasks.deadline_ms[:, None]), delay, np.inf)
    best = delay.argmin(axis=1)
    in_time = np.isfinite(delay[np.arange(len(tasks)), best])
    return np.where(in_time, best, tasks.reject)


class EstimateDispatcher:
    """Local delay from the EN's true state; remote delay from the cached one.

    The wait at an SN is 0 if it had an idle slot, else its outstanding work over its full rate; it
    has room if its free storage covers the task.
    """

    def __init__(self, setting: Setting) -> None:
        self._nodes = KnownNodes(setting.scenario)
        self.routes = setting.scenario.sn.count  # actions up to this one accept the task

    def decide(self, tasks: DispatchObservation) -> Actions:
        """The estimate's choice."""
        nodes, seen = self._nodes, tasks.sn_state
        wait = np.where(seen[:, :, IDLE] > 0, 0.0, seen[:, :, WORK] / nodes.sn_full_rate)
        room = seen[:, :, STORAGE] >= nodes.reservation(tasks)[:, None]
        return faster_feasible(nodes, tasks, wait, room)

    would_decide = decide
