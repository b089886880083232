"""What goes into the reference world and what comes out of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

State = tuple[int, float, float, float]  # N, W, B, M of R12
Reading = tuple[float | None, State]  # source time (None: nothing received yet), values


@dataclass
class Node:
    slots: int
    rate: float  # cycles/ms of one slot
    storage: float
    queue: int


@dataclass
class Link:
    """Both directions between an EN and an SN; schedules hold (start_ms, mbps) in time order."""

    up_mbps: float
    down_mbps: float
    hops: int = 2
    hop_delay_ms: float = 1.0
    packet_bytes: float = 1500
    up_schedule: list[tuple[float, float]] = field(default_factory=list)
    down_schedule: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Ue:
    distance_m: float
    heading_deg: float = 0.0  # between the motion and the direction to the EN


@dataclass
class Parameters:
    ens: list[Node]
    sns: list[Node]
    links: list[list[Link | None]]  # [en][sn]; None: the EN does not reach the SN (R30)
    ues: list[Ue]  # the same in every cell
    access_rate_mbps: float = 128.6
    access_overhead_ms: float = 0.043
    contention_ms: float = 0.40
    speed_m_per_s: float = 1.0
    radius_m: float = 8.0
    result_bytes: float = 1000
    reservation_floor_bytes: float = 50000
    status_dims: int = 4
    ack_bytes: float = 64
    notice_bytes: float = 64
    history_ms: float = 500
    undecided_after_ms: float = 5000
    window_ms: float = 10000
    # R35: the cycles that nodes see of every task, None if they see what is declared.
    undeclared_cycles: float | None = None
    # R37, R38: time; speed, down or up; en or sn; number; factor.
    events: list[tuple[float, str, str, int, float]] = field(default_factory=list)
    outages: bool = False  # SNs may fail (R38)

    def reach(self, en: int) -> list[int]:
        """R30: the SNs that an EN reaches; its action k is the k-th of them."""
        return [sn for sn, link in enumerate(self.links[en]) if link is not None]

    @property
    def reject(self) -> int:
        """The action that rejects, the same at all ENs."""
        return 1 + max(len(self.reach(en)) for en in range(len(self.ens)))

    @property
    def status_bytes(self) -> float:
        return 64 + 4 * self.status_dims


@dataclass
class Task:
    time: float
    en: int
    ue: int
    input_bytes: float
    cycles: float  # declared
    deadline: float  # relative to time
    true_cycles: float | None = None  # R35; None: as declared


@dataclass
class Background:
    time: float
    sn: int
    input_bytes: float
    cycles: float
    true_cycles: float | None = None


@dataclass
class Result:
    action: int | None = None
    outcome: str = "none"  # or TP, FP, TN, FN
    decided: float | None = None
    finished: float = math.nan
    delay: float | None = None
    feasible: list[bool] | None = None


@dataclass
class CacheChange:
    time: float
    en: int
    sn: int
    source_time: float
    values: State


@dataclass
class Heard:
    """What an EN hears of a task (R29)."""

    time: float
    index: int
    fate: str  # done, refused, given up or expired
    in_time: bool


@dataclass
class TaskView:
    index: int
    en: int
    now: float
    local_room: bool
    estimates: list[float]  # end-to-end delay of the routes, local and the SNs reached (R15)
    feasible: list[bool]
    en_state: State
    cache: list[Reading]  # over SNs reached
    cycles: float  # that the EN sees (R35)
    local_wait: float  # until a slot of the EN would be free, by what it sees
    speed: float  # the EN's present factor (R37)


@dataclass
class UpdateView:
    sn: int
    now: float
    state: State
    acknowledged: list[Reading]  # over ENs that reach the SN
    recent: tuple[float, float, float] = (0.0, 0.0, 0.0)  # delay, success, failure (R19)
    speed: float = 1.0  # the SN's present factor (R37)
    up_since: float = 0.0  # its last return (R38)
