"""`strict`: local if that is surely in time, else the SN if that is, else reject.

The rule behind the paper's freshness baselines. It counts on one slot only: the wait at a node is
its outstanding work over *one* slot's rate, so that it errs on the side of caution.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Dispatcher, DispatchObservation, Site
from cosmo.policy.dispatchers.raw import raw_states


class StrictDispatcher(Dispatcher):
    """By the EN's own state first, then by the cached state of the SN with the least work."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """Local, else offload, else reject."""
        site, seen = self._site, raw_states(self._site, tasks)
        rate = site.en.cycles_per_ms[tasks.en]
        local_ms = (tasks.en_state[:, WORK] + tasks.cycles) / rate
        local = tasks.local_room & (tasks.elapsed_ms + local_ms <= tasks.deadline_ms)

        rows, best = (
            np.arange(len(tasks)),
            np.where(tasks.reached, seen[:, :, WORK], np.inf).argmin(axis=1),
        )
        there = seen[rows, best]
        served_ms = (there[:, WORK] + tasks.cycles) / site.sn.cycles_per_ms[tasks.sn[rows, best]]
        way_ms = (site.upload_ms(tasks) + site.return_ms(tasks))[rows, best]
        room = there[:, STORAGE] >= site.reservation(tasks.input_bytes)
        remote = room & (tasks.elapsed_ms + way_ms + served_ms <= tasks.deadline_ms)
        return np.where(local, 0, np.where(remote, 1 + best, tasks.reject))

    would_decide = decide
