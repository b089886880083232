"""What agents from elsewhere see: plain vectors with a name and bounds for every number.

The scales are R18's, so most numbers are around 0 to 1; all are cut off at the bounds. What is in
them is what a node knows: nothing here tells the truth about another node.
"""

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from cosmo.control.features import AGE_MS, EN_LOCAL, STATE, Features
from cosmo.scenario import Scenario
from cosmo.world import DispatchObservation, UpdateObservation

Floats = NDArray[np.float32]

LIMIT = 10.0
_STATE_NAMES = ("idle", "wait", "work", "storage")
_LINK_NAMES = ("rate", "rate_deviation", "rate_trend")
_WAIT_MS = 100.0


class _View:
    """Names, bounds and the space of one kind of agent."""

    names: tuple[str, ...]

    def _bounded(self, signed: set[str]) -> Box:
        low = np.array([-LIMIT if name in signed else 0.0 for name in self.names], np.float32)
        return Box(low, np.full(len(self.names), LIMIT, np.float32), dtype=np.float32)


class EnView(_View):
    """An EN on a task: the access link, itself, the task, and every SN as it was last told."""

    def __init__(self, scenario: Scenario) -> None:
        self._scales = Features(scenario)
        per_sn = tuple(
            f"sn{sn}_{name}"
            for sn in range(scenario.sn.count)
            for name in (*_STATE_NAMES, "age", *(f"link_{n}" for n in _LINK_NAMES), "link_backlog")
        )
        self.names = (
            "throughput", "throughput_trend", "residual_time",
            *(f"en_{name}" for name in _STATE_NAMES),
            "task_bytes", "task_cycles", "task_deadline", "task_slack",
            "local_wait", "local_room", *per_sn,
        )  # fmt: skip
        signed = {name for name in self.names if name.endswith("trend")} | {"task_slack"}
        self.space = self._bounded(signed)

    def of(self, tasks: DispatchObservation) -> Floats:
        """[row, name]."""
        scales, rows = self._scales, len(tasks)
        seen = np.empty((rows, len(self.names)), np.float32)
        seen[:, :EN_LOCAL] = scales.en_local(tasks)
        slack = tasks.generated_ms + tasks.deadline_ms - tasks.time_ms
        seen[:, 10] = slack / scales.task_scale[2]
        seen[:, 11] = tasks.local_wait_ms / _WAIT_MS
        seen[:, 12] = tasks.local_room
        others = np.empty((rows, tasks.sns, 9), np.float32)
        others[..., :STATE] = tasks.sn_state[..., :STATE] / scales.sn_scale
        others[..., STATE] = tasks.age_ms / AGE_MS
        others[..., 5:8] = tasks.up_link_mbps / scales.up_mbps[tasks.en][..., None]
        others[..., 8] = tasks.up_backlog_ms / _WAIT_MS
        seen[:, 13:] = others.reshape(rows, -1)
        return np.clip(seen, self.space.low, self.space.high, out=seen)


class SnView(_View):
    """An SN on an update: itself, recent tasks, and what every EN has acknowledged."""

    def __init__(self, scenario: Scenario) -> None:
        self._scales = Features(scenario)
        per_en = tuple(
            f"en{en}_{name}"
            for en in range(scenario.en.count)
            for name in (
                *(f"acknowledged_{n}" for n in _STATE_NAMES), "age",
                *(f"link_{n}" for n in _LINK_NAMES),
            )
        )  # fmt: skip
        recent = ("recent_delay", "recent_success", "recent_failure")
        self.names = (*_STATE_NAMES, *recent, *per_en)
        self.space = self._bounded({name for name in self.names if name.endswith("trend")})

    def of(self, nodes: UpdateObservation) -> Floats:
        """[row, name]."""
        scales, rows = self._scales, len(nodes)
        scale = scales.sn_scale[nodes.sn]
        own = np.concatenate(
            [
                nodes.sn_state[:, :STATE] / scale,
                np.stack(
                    [
                        nodes.recent_delay_ms / scales.delay_ms,
                        nodes.recent_success,
                        nodes.recent_failure,
                    ],
                    axis=1,
                ),
            ],
            axis=1,
        )
        others = np.concatenate(
            [
                nodes.acknowledged_state[..., :STATE] / scale[:, None],
                nodes.age_ms[..., None] / AGE_MS,
                nodes.down_link_mbps / scales.down_mbps[:, nodes.sn].T[..., None],
            ],
            axis=2,
        )
        seen = np.concatenate([own, others.reshape(rows, -1)], axis=1)
        bounded: Floats = np.clip(seen, self.space.low, self.space.high).astype(np.float32)
        return bounded
