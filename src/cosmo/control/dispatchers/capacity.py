"""`capacity`: the less loaded node that has room, whatever the deadline."""

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.method import Setting
from cosmo.world import STORAGE, WORK, DispatchObservation


class CapacityDispatcher:
    """Load is outstanding work in ms at a node's full rate; rejects only if no node has room."""

    def __init__(self, setting: Setting) -> None:
        self._nodes = KnownNodes(setting.scenario)

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The least loaded node with room (the EN of equals)."""
        nodes, seen = self._nodes, tasks.sn_state
        local = tasks.en_state[:, WORK] / nodes.en_full_rate[tasks.en]
        local = np.where(tasks.local_room, local, np.inf)
        room = seen[:, :, STORAGE] >= nodes.reservation(tasks)[:, None]
        remote = np.where(room, seen[:, :, WORK] / nodes.sn_full_rate, np.inf)
        load = np.concatenate([local[:, None], remote], axis=1)
        best = load.argmin(axis=1)
        return np.where(np.isfinite(load.min(axis=1)), best, tasks.reject)

    would_decide = decide
