"""What policies from elsewhere see: plain vectors with a name and bounds for every number.

The scales are R18's, so most numbers are around 0 to 1; all are cut off at the bounds. What is in
them is what a node knows: an EN's view of an SN is the raw status that it was last sent.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NOTHING, RAW, DispatchObservation, Site, UpdateObservation
from cosmo.policy.features import EN_LOCAL, Features

Floats = NDArray[np.float32]

LIMIT = 10.0
_STATE_NAMES = ("idle", "wait", "work", "storage")
_LINK_NAMES = ("rate", "rate_deviation", "rate_trend")


class View:
    """Names and bounds of what one kind of agent sees."""

    names: tuple[str, ...]

    def _bound(self, signed: set[str]) -> None:
        self.low = np.array([-LIMIT if name in signed else 0.0 for name in self.names], np.float32)
        self.high = np.full(len(self.names), LIMIT, np.float32)

    def _bounded(self, seen: NDArray[np.floating]) -> Floats:
        bounded: Floats = np.minimum(np.maximum(seen, self.low), self.high)
        return bounded.astype(np.float32, copy=False)


class EnView(View):
    """An EN on a task: the access link, itself, the task, and every SN that it reaches by its last
    status; where it reaches fewer than others do, zeros and the greatest age.

    A raw status is shown on R18's scales; one of `own_numbers` numbers of a method's own making,
    whose scales nobody knows, as sign(x) log(1 + |x|), zeros before the first.
    """

    def __init__(self, site: Site, own_numbers: int = 0) -> None:
        self._site, self._features, self._own = site, Features(site), own_numbers
        self._told = own_numbers or RAW
        status = tuple(f"status_{k}" for k in range(own_numbers)) or _STATE_NAMES
        per_sn = tuple(
            f"sn{sn}_{name}"
            for sn in range(site.links.reach.shape[1])
            for name in (*status, "age", *(f"link_{n}" for n in _LINK_NAMES), "link_backlog")
        )
        self.names = (
            "throughput", "throughput_trend", "residual_time",
            *(f"en_{name}" for name in _STATE_NAMES),
            "task_bytes", "task_cycles", "task_deadline", "task_slack",
            "local_wait", "local_room", *per_sn,
        )  # fmt: skip
        signed = {name for name in self.names if name.endswith("trend") or "_status_" in name}
        signed.add("task_slack")
        self._bound(signed)

    def of(self, tasks: DispatchObservation) -> Floats:
        """Return the observations of an EN by name, scaled, [row, name]."""
        scales, made, rows = self._site.scales, self._features, len(tasks)
        seen = np.empty((rows, len(self.names)), np.float32)
        seen[:, :EN_LOCAL] = made.en_local(tasks)
        seen[:, 10] = tasks.slack_ms / made.task_scale[2]
        seen[:, 11] = tasks.local_wait_ms / scales.wait_ms
        seen[:, 12] = tasks.local_room
        width = self._told
        others = np.empty((rows, tasks.sns, width + 5), np.float32)
        if self._own:
            told = np.where(tasks.heard[..., None], tasks.status, 0.0)
            others[..., :width] = np.sign(told) * np.log1p(np.abs(told))
        else:
            idle = self._site.sn.idle_state[tasks.sn]
            told = self._site.raw_states(tasks) if tasks.status.shape[2] == RAW else idle
            others[..., :RAW] = told / made.sn_scale[tasks.sn]
        others[..., width] = scales.age(tasks.age_ms)
        others[..., width + 1 : -1] = tasks.up_link_mbps / made.links.up_mbps[tasks.en][..., None]
        others[..., -1] = np.minimum(tasks.up_backlog_ms / scales.wait_ms, LIMIT)
        others[~tasks.reached] = (0.0,) * width + (LIMIT,) + (0.0,) * 4
        seen[:, 13:] = others.reshape(rows, -1)
        return self._bounded(seen)


class SnView(View):
    """An SN on an update: itself, recent tasks, and what every EN that reaches it has acknowledged.

    `carries` is what a status carries: raw numbers are shown on R18's scales, others as they are.
    """

    def __init__(self, site: Site, carries: int = RAW) -> None:
        self._site, self._features, self._raw = site, Features(site), carries in (NOTHING, RAW)
        self._nominal = site.links.down_mbps[site.links.reached_by][..., None]  # [SN, k, 1]
        told = _STATE_NAMES if self._raw else tuple(map(str, range(carries)))
        per_en = tuple(
            f"en{en}_{name}"
            for en in range(site.links.reached_by[0].shape[1])
            for name in (
                *(f"acknowledged_{n}" for n in told), "age",
                *(f"link_{n}" for n in _LINK_NAMES),
            )
        )  # fmt: skip
        recent = ("recent_delay", "recent_success", "recent_failure")
        self.names = (*_STATE_NAMES, *recent, *per_en)
        trends = {name for name in self.names if name.endswith("trend")}
        free = set() if self._raw else {name for name in self.names if "acknowledged" in name}
        self._bound(trends | free)

    def of(self, nodes: UpdateObservation) -> Floats:
        """Return the observations of an SN by name, scaled, [row, name]."""
        made, rows = self._features, len(nodes)
        scale = made.sn_scale[nodes.sn]
        seen = np.empty((rows, len(self.names)), np.float32)
        seen[:, :RAW] = nodes.sn_state[:, :RAW] / scale
        seen[:, RAW] = nodes.recent_delay_ms / made.delay_ms
        seen[:, RAW + 1] = nodes.recent_success
        seen[:, RAW + 2] = nodes.recent_failure
        told = nodes.acknowledged
        if self._raw:
            idle = self._site.sn.idle_state[nodes.sn][:, None]
            told = np.where(nodes.heard[..., None], told, idle) / scale[:, None]
        width = told.shape[2]
        others = seen[:, RAW + 3 :].reshape(rows, nodes.ens, width + 4)
        others[..., :width] = told
        others[..., width] = self._site.scales.age(nodes.age_ms)
        others[..., width + 1 :] = nodes.down_link_mbps / self._nominal[nodes.sn]
        reached = nodes.reached
        if not reached.all():
            others[~reached] = 0.0
        seen[:, RAW + 3 :] = others.reshape(rows, -1)
        return self._bounded(seen)
