"""What the learned agents see: observations on the fixed scales of R18, as plain matrices.

EN, local (R20):   access 3 | EN state 4 | task 3
EN, remote (R20):  cached semantic 2 | EN→SN link 3        for each SN; the age as an option
SN (R19):          semantic 2 | acknowledged semantic 2 | age 1 | completed tasks 3 | link 3
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.scenario import Scenario, en_state_scale, per_link, sn_state_scale
from cosmo.world import DispatchObservation, UpdateObservation

Floats = NDArray[np.float32]
STATE = 4  # N, W, B, M
EN_LOCAL = 10
EN_LINK = 3
SN_OTHERS = 7  # all but the two statuses

THROUGHPUT_MBPS = 100.0
RESIDUAL_MS = 15_000.0
AGE_MS = 200.0


class Features:
    """Turns observations of one scenario into the agents' inputs."""

    def __init__(self, scenario: Scenario) -> None:
        self.en_scale = en_state_scale(scenario)
        self.sn_scale = sn_state_scale(scenario)
        shape = scenario.en.count, scenario.sn.count
        self.up_mbps = np.array(per_link(scenario.backhaul.up_mbps, *shape))
        self.down_mbps = np.array(per_link(scenario.backhaul.down_mbps, *shape))
        workload = scenario.workload
        self.task_scale = np.array(
            [workload.input_bytes[1], workload.cycles[1], workload.deadline.clip_ms[1]]
        )
        self.delay_ms = workload.deadline.clip_ms[1]

    def sn_state(self, state: NDArray[np.float64], sn: NDArray[np.int64] | slice) -> Floats:
        """Normalised N, W, B, M of SNs (last axis of `state`)."""
        return (state[..., :STATE] / self.sn_scale[sn]).astype(np.float32)

    def en_local(self, tasks: DispatchObservation) -> Floats:
        """[row, 10]."""
        rows = np.empty((len(tasks), EN_LOCAL), np.float32)
        rows[:, 0] = tasks.throughput_mbps / THROUGHPUT_MBPS
        rows[:, 1] = tasks.throughput_trend_mbps / THROUGHPUT_MBPS
        rows[:, 2] = tasks.residual_ms / RESIDUAL_MS
        rows[:, 3:7] = tasks.en_state[:, :STATE] / self.en_scale[tasks.en]
        rows[:, 7] = tasks.input_bytes / self.task_scale[0]
        rows[:, 8] = tasks.cycles / self.task_scale[1]
        rows[:, 9] = tasks.deadline_ms / self.task_scale[2]
        return rows

    def en_remote(self, tasks: DispatchObservation, status: Floats, with_age: bool) -> Floats:
        """[row, SNs · (status + 3 (+ 1))] from the cached status of each SN, [row, SN, d].

        R14: an empty cache reads as zeros.
        """
        held = np.where(tasks.sn_source_ms[:, :, None] >= 0, status, 0.0)
        link = tasks.up_link_mbps / self.up_mbps[tasks.en][:, :, None]
        parts = [held, link]
        if with_age:
            parts.append(tasks.age_ms[:, :, None] / AGE_MS)
        return np.concatenate(parts, axis=2).reshape(len(tasks), -1).astype(np.float32)

    def sn(self, nodes: UpdateObservation, status: Floats, acknowledged: Floats) -> Floats:
        """[row, 11]; with several ENs, what the one with the oldest status holds."""
        rows = np.arange(len(nodes))
        oldest = nodes.age_ms.argmax(axis=1)
        known = nodes.acknowledged_source_ms[rows, oldest] >= 0
        held = np.where(known[:, None], acknowledged[rows, oldest], 0.0)
        completed = (
            nodes.age_ms[rows, oldest] / AGE_MS,
            nodes.recent_delay_ms / self.delay_ms,
            nodes.recent_success,
            nodes.recent_failure,
        )
        link = nodes.down_link_mbps[rows, oldest] / self.down_mbps[oldest, nodes.sn][:, None]
        parts = [status, held, np.stack(completed, axis=1), link]
        return np.concatenate(parts, axis=1).astype(np.float32)
