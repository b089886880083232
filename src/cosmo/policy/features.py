"""What the learned agents see: observations on the fixed scales of R18, as plain matrices.

EN, local (R20):   access 3 | EN state 4 | task 3
EN, remote (R20):  cached semantic 2 | EN→SN link 3        for each SN; the age as an option
SN (R19):          semantic 2 | acknowledged semantic 2 | age 1 | completed tasks 3 | link 3
                   for each EN that it may inform
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import RAW, DispatchObservation, Site, UpdateObservation

Floats = NDArray[np.float32]
EN_LOCAL = 10
EN_LINK = 3
SN_OTHERS = 7  # all but the two statuses


class Features:
    """Turns observations at one site into the agents' inputs."""

    def __init__(self, site: Site) -> None:
        self.site, self.scales, self.links = site, site.scales, site.links
        self.en_scale, self.sn_scale = site.state_scale(site.en), site.state_scale(site.sn)
        tasks = site.tasks
        self.task_scale = np.array([tasks.input_bytes[1], tasks.cycles[1], tasks.deadline_ms[1]])
        self.delay_ms = tasks.deadline_ms[1]

    def sn_state(self, state: NDArray[np.float64], sn: NDArray[np.int64] | slice) -> Floats:
        """Normalised N, W, B, M of SNs (last axis of `state`)."""
        return (state[..., :RAW] / self.sn_scale[sn]).astype(np.float32)

    def en_local(self, tasks: DispatchObservation) -> Floats:
        """Return the 10 local numbers of an EN's observation, scaled (R20), [row, 10]."""
        rows = np.empty((len(tasks), EN_LOCAL), np.float32)
        rows[:, 0] = tasks.throughput_mbps / self.scales.throughput_mbps
        rows[:, 1] = tasks.throughput_trend_mbps / self.scales.throughput_mbps
        rows[:, 2] = tasks.residual_ms / self.scales.residual_ms
        rows[:, 3:7] = tasks.en_state[:, :RAW] / self.en_scale[tasks.en]
        rows[:, 7] = tasks.input_bytes / self.task_scale[0]
        rows[:, 8] = tasks.cycles / self.task_scale[1]
        rows[:, 9] = tasks.deadline_ms / self.task_scale[2]
        return rows

    def en_remote(self, tasks: DispatchObservation, with_age: bool) -> Floats:
        """[row, K · (status + 3 (+ 1))]; an empty cache reads as zeros (R14), and so does no SN."""
        link = tasks.up_link_mbps / self.links.up_mbps[tasks.en][:, :, None]
        link = np.where(tasks.reached[:, :, None], link, 0.0)
        parts = [tasks.status, link]
        if with_age:
            age = np.where(tasks.reached, self.scales.age(tasks.age_ms), 0.0)
            parts.append(age[:, :, None])
        return np.concatenate(parts, axis=2).reshape(len(tasks), -1).astype(np.float32)

    def sn(self, nodes: UpdateObservation, status: Floats) -> Floats:
        """[row, k, 11] of the k-th EN that reaches the SN, whose own status is [row, d]."""
        rows, ens = nodes.acknowledged_ms.shape
        of_sn = np.stack(
            [nodes.recent_delay_ms / self.delay_ms, nodes.recent_success, nodes.recent_failure], 1
        )
        parts: list[NDArray[np.floating]] = [
            np.broadcast_to(status[:, None], (rows, ens, status.shape[1])),
            nodes.acknowledged,  # zeros while there is none
            self.scales.age(nodes.age_ms)[:, :, None],
            np.broadcast_to(of_sn[:, None], (rows, ens, 3)),
            nodes.down_link_mbps / self.site.down_mbps(nodes)[:, :, None],
        ]
        return np.concatenate(parts, axis=2).astype(np.float32)
