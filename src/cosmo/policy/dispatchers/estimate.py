"""`estimate`: the faster route that should be in time, else reject."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, STORAGE, WORK, Dispatcher, DispatchObservation, Site
from cosmo.policy.dispatchers.raw import raw_states

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Actions = NDArray[np.int64]


def faster_feasible(
    site: Site,
    tasks: DispatchObservation,
    wait_ms: Floats,
    room: Bools,
    upload_ms: Floats | None = None,
) -> Actions:
    """The fastest route with room and within the deadline, given [row, k] waits and room.

    `upload_ms` is `site.upload_ms(tasks)`, for who knows it already.
    """
    elapsed = tasks.elapsed_ms
    local = elapsed + tasks.local_wait_ms + tasks.cycles / site.en.cycles_per_ms[tasks.en]
    remote = (
        elapsed[:, None]
        + (site.upload_ms(tasks) if upload_ms is None else upload_ms)
        + wait_ms
        + tasks.cycles[:, None] / site.sn.cycles_per_ms[tasks.sn]
        + site.return_ms(tasks)
    )
    delay = np.concatenate([local[:, None], remote], axis=1)
    fits = np.concatenate([tasks.local_room[:, None], room], axis=1)
    # Where there is no SN, the way to it has no end.
    delay = np.where(fits & (delay <= tasks.deadline_ms[:, None]), delay, np.inf)
    best = delay.argmin(axis=1)
    in_time = np.isfinite(delay[np.arange(len(tasks)), best])
    return np.where(in_time, best, tasks.reject)


class EstimateDispatcher(Dispatcher):
    """Local delay from the EN's true state; remote delay from the cached one.

    The wait at an SN is 0 if it had an idle slot, else its outstanding work over its full rate; it
    has room if its free storage covers the task.
    """

    def __init__(self, site: Site) -> None:
        self._site = site

    def decide(self, tasks: DispatchObservation) -> Actions:
        """The estimate's choice."""
        site, seen = self._site, raw_states(self._site, tasks)
        wait = np.where(seen[:, :, IDLE] > 0, 0.0, seen[:, :, WORK] / site.sn.full_rate[tasks.sn])
        room = seen[:, :, STORAGE] >= site.reservation(tasks.input_bytes)[:, None]
        return faster_feasible(site, tasks, wait, room)

    would_decide = decide
