"""What the two kinds of agent see, as plain arrays with one row a decision.

Nothing here knows of the simulator: a real node can fill in the same fields. Times are in ms. The
arrays are views that the next `advance()` overwrites: copy what you want to keep.

The fields of a node's state are IDLE slots, WAIT of the head of the queue, WORK outstanding in
cycles, free STORAGE (R12: N, W, B, M), REQUESTS in the node, and its smoothed LATENCY.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(slots=True)
class Settled:
    """Tasks whose outcome became final since the last turn; of one world, in order of time."""

    world: Ints
    task: Ints
    en: Ints
    action: Ints
    outcome: Ints  # codes of `cosmo.world.records`
    time_ms: Floats

    def __len__(self) -> int:
        return len(self.world)


@dataclass(slots=True)
class Truth:
    """What no policy in the field could know (R15): for yardsticks, labels and training."""

    delay_ms: Floats  # [row, route] end-to-end delay on route 0 (local), 1..S (SN)
    feasible: Bools  # [row, route] the node has room and the delay is within the deadline
    sn_state: Floats  # [row, SN, field] the SNs' states at this very moment


@dataclass(slots=True)
class DispatchObservation:
    """Tasks that have just reached their EN, one a row."""

    world: Ints
    en: Ints
    ue: Ints
    task: Ints
    time_ms: Floats
    generated_ms: Floats
    input_bytes: Floats
    cycles: Floats
    deadline_ms: Floats  # from generation
    throughput_mbps: Floats
    throughput_trend_mbps: Floats
    residual_ms: Floats
    en_state: Floats  # [row, field]
    local_wait_ms: Floats  # the EN knows its own queue: how long the task would wait in it
    local_room: Bools  # the EN would accept the task now
    sn_state: Floats  # [row, SN, field] as cached; an idle SN while nothing is cached
    sn_source_ms: Floats  # [row, SN] when the SN sent that; -1 while nothing is cached
    up_link_mbps: Floats  # [row, SN, 3] mean rate, its deviation, trend
    up_backlog_ms: Floats  # [row, SN] until the link has sent what it holds
    truth: Truth | None = None

    def __len__(self) -> int:
        return len(self.world)

    @property
    def sns(self) -> int:
        """Number of SNs: actions are 0 local, 1..sns offload, sns + 1 reject."""
        return int(self.sn_state.shape[1])

    @property
    def reject(self) -> int:
        """The action that rejects."""
        return self.sns + 1

    @property
    def age_ms(self) -> Floats:
        """[row, SN] age of the cached state, or of the episode while there is none (R14)."""
        age: Floats = self.time_ms[:, None] - np.maximum(self.sn_source_ms, 0.0)
        return age


@dataclass(slots=True)
class UpdateObservation:
    """SNs that must decide whether to send their state and when to decide again, one a row."""

    world: Ints
    sn: Ints
    time_ms: Floats
    sn_state: Floats  # [row, field]
    acknowledged_state: Floats  # [row, EN, field]; an idle SN while nothing is acknowledged
    acknowledged_source_ms: Floats  # [row, EN]; -1 while nothing is acknowledged
    recent_delay_ms: Floats  # of offloaded tasks that became final lately (R19)
    recent_success: Floats
    recent_failure: Floats
    down_link_mbps: Floats  # [row, EN, 3] mean rate, its deviation, trend

    def __len__(self) -> int:
        return len(self.world)

    @property
    def age_ms(self) -> Floats:
        """[row, EN] age of what that EN has acknowledged (R14)."""
        age: Floats = self.time_ms[:, None] - np.maximum(self.acknowledged_source_ms, 0.0)
        return age
