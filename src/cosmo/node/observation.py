"""What the two kinds of agent see, as plain arrays with one row a decision, and hear later.

A real node can fill in every field: nothing here tells the truth about another node. Times are in
ms of the node's own clock, which starts at 0 with the node; a time that has not come yet is NaN. In
the simulator the arrays are views that the next turn overwrites: copy what you want to keep.

`world` tells apart the worlds of a batch (always 0 on a real node). The columns of a node's own
state are `IDLE` to `LATENCY`.

An EN sees the SNs that it reaches (R30), and an SN the ENs that reach it, in order of their
numbers. Rows of a batch have as many columns as the node that has most of them; what is left over
is marked by a number of -1, and says nothing: no status, no age, a link that is never free.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# The fields of a node's own state: N, W, B, M of R12, then what load balancers ask for.
IDLE = 0  # N: idle slots
WAIT = 1  # W: ms that the head of the queue has waited
WORK = 2  # B: cycles of the waiting tasks plus what is left of the running ones
STORAGE = 3  # M: free bytes
REQUESTS = 4  # tasks in the node
LATENCY = 5  # ms from arrival to finish, smoothed
STATE_FIELDS = 6

RAW_FIELDS = 4  # N, W, B, M: what R18 has scales for, and what a raw status carries

# What has become of a task.
DONE = 1  # the result is there (of a local task: it has finished)
REFUSED = 2  # the node had no room; of an SN the EN learns it by a notice (R27)
GIVEN_UP = 3  # by the EN itself: rejected, or abandoned
EXPIRED = 4  # no answer by the deadline, where SNs may fail (R38); a later answer is not heard

NO_NODE = -1  # in place of a node's number: there is none
_NOMINAL = np.empty(0)


def _nominal() -> Floats:
    """Speeds that were not given: those of nodes that never change theirs."""
    return _NOMINAL


@dataclass(slots=True)
class DispatchObservation:
    """Tasks that have just reached their EN, one a row."""

    world: Ints
    en: Ints
    ue: Ints
    task: Ints  # counts the EN's own tasks (R41)
    time_ms: Floats
    generated_ms: Floats
    input_bytes: Floats
    cycles: Floats
    deadline_ms: Floats  # from generation
    throughput_mbps: Floats  # of the UE's uploads, smoothed (R8)
    throughput_trend_mbps: Floats
    residual_ms: Floats  # until the UE leaves the cell
    en_state: Floats  # [row, field]
    local_wait_ms: Floats  # the EN knows its own queue: how long the task would wait in it
    local_room: Bools  # the EN would accept the task now
    sn: Ints  # [row, k] the k-th SN that the EN reaches; -1: it reaches fewer
    status: Floats  # [row, k, d] the numbers of its last status; zeros while there is none (R14)
    status_ms: Floats  # [row, k] when the SN made them; NaN while there is none
    up_link_mbps: Floats  # [row, k, 3] mean rate, its deviation, trend; 1, 0, 0 of no link
    up_backlog_ms: Floats  # [row, k] until the link has sent what it holds; infinite of no link
    # [row] factor of the EN's nominal speed at present (R37)
    en_speed: Floats = field(default_factory=_nominal)

    def __post_init__(self) -> None:
        if self.en_speed is _NOMINAL:
            self.en_speed = np.ones(len(self.world))

    def __len__(self) -> int:
        return len(self.world)

    @property
    def sns(self) -> int:
        """K, columns of SNs: actions are 0 local, k offload to the k-th, K + 1 reject."""
        return int(self.status_ms.shape[1])

    @property
    def reject(self) -> int:
        """The action that rejects."""
        return self.sns + 1

    @property
    def reached(self) -> Bools:
        """[row, k] whether the EN reaches so many SNs: action k is allowed there alone."""
        return np.asarray(self.sn != NO_NODE)

    @property
    def heard(self) -> Bools:
        """[row, k] whether there has been a status of that SN."""
        return ~np.isnan(self.status_ms)

    @property
    def age_ms(self) -> Floats:
        """[row, k] age of the status; the time since the start while there is none (R14), infinite
        where there is no SN.
        """
        return np.where(self.reached, _age(self.time_ms, self.status_ms), np.inf)

    @property
    def elapsed_ms(self) -> Floats:
        """[row] since the task was generated."""
        return self.time_ms - self.generated_ms

    @property
    def slack_ms(self) -> Floats:
        """[row] what is left of the deadline."""
        return self.generated_ms + self.deadline_ms - self.time_ms


@dataclass(slots=True)
class SnStates:
    """States of SNs, one a row, as their own nodes know them: what a status is made of (R28)."""

    world: Ints
    sn: Ints
    time_ms: Floats
    state: Floats  # [row, field]

    def __len__(self) -> int:
        return len(self.world)


@dataclass(slots=True)
class _SnRows:
    """SNs that must decide, one a row."""

    world: Ints
    sn: Ints
    time_ms: Floats
    sn_state: Floats  # [row, field]
    # [row] factor of the SN's nominal speed at present (R37)
    sn_speed: Floats = field(default_factory=_nominal, kw_only=True)
    # [row] when the SN came back from its last outage with nothing (R38); 0: it never failed.
    up_since_ms: Floats = field(default_factory=_nominal, kw_only=True)

    def __post_init__(self) -> None:
        if self.sn_speed is _NOMINAL:
            self.sn_speed = np.ones(len(self.world))
        if self.up_since_ms is _NOMINAL:
            self.up_since_ms = np.zeros(len(self.world))

    def __len__(self) -> int:
        return len(self.world)

    @property
    def states(self) -> SnStates:
        """The SNs' own states alone."""
        return SnStates(self.world, self.sn, self.time_ms, self.sn_state)


@dataclass(slots=True)
class UpdateObservation(_SnRows):
    """SNs that must decide whether to send a status and when to decide again, one a row."""

    en: Ints  # [row, k] the k-th EN that reaches the SN; -1: fewer do
    acknowledged: Floats  # [row, k, d] the last status that the EN has acknowledged, or zeros
    acknowledged_ms: Floats  # [row, k] when that was made; NaN while none is acknowledged
    recent_delay_ms: Floats  # mean over offloaded tasks that ended recently, as the SN knows (R19)
    recent_success: Floats  # the share of them that will have been in time
    recent_failure: Floats  # the share that will not, or was refused
    down_link_mbps: Floats  # [row, k, 3] mean rate, its deviation, trend; 1, 0, 0 of no link

    @property
    def returned(self) -> Bools:
        """[row] whether the SN has come back at this moment: it is asked as at the start, and what
        its updater remembers is of before (R38).
        """
        return np.asarray((self.up_since_ms > 0.0) & (self.up_since_ms == self.time_ms))

    @property
    def ens(self) -> int:
        """Number of columns k: the most ENs that any SN of the batch serves."""
        return int(self.acknowledged_ms.shape[1])

    @property
    def reached(self) -> Bools:
        """[row, k] whether there is such an EN; every row has one at least."""
        return np.asarray(self.en != NO_NODE)

    @property
    def heard(self) -> Bools:
        """[row, k] whether that EN has acknowledged any status."""
        return ~np.isnan(self.acknowledged_ms)

    @property
    def age_ms(self) -> Floats:
        """[row, k] age of what that EN has acknowledged; the time since the start, or the SN's
        return, if nothing; 0 where there is no EN.
        """
        age = _age(self.time_ms, self.acknowledged_ms, self.up_since_ms)
        return np.where(self.reached, age, 0.0)


@dataclass(slots=True)
class ResultObservation(_SnRows):
    """Results that are about to leave their SN, one a row: a status may ride on each (R31). The
    task has left the SN's state, and the next one has begun.
    """

    en: Ints  # [row] whom the result is for
    acknowledged: Floats  # [row, d] the last status that this EN has acknowledged, or zeros
    acknowledged_ms: Floats  # [row] when that was made; NaN while none is acknowledged

    @property
    def heard(self) -> Bools:
        """[row] whether the EN has acknowledged any status."""
        return ~np.isnan(self.acknowledged_ms)

    @property
    def age_ms(self) -> Floats:
        """[row] age of what the EN has acknowledged; the time since the start, or the SN's return,
        if nothing.
        """
        return _age(self.time_ms, self.acknowledged_ms[:, None], self.up_since_ms)[:, 0]


def _age(now_ms: Floats, since_ms: Floats, start_ms: Floats | None = None) -> Floats:
    start = 0.0 if start_ms is None else start_ms[:, None]
    age: Floats = now_ms[:, None] - np.where(np.isnan(since_ms), start, since_ms)
    return age


@dataclass(slots=True)
class Feedback:
    """What ENs hear of their own tasks when they can know it (R29): tasks that have ended, one a
    row; those of one world in order of time.

    Whether a rejection was right is not here: no node can know it.
    """

    world: Ints
    en: Ints
    task: Ints  # counts the EN's own tasks, as in `DispatchObservation`
    action: Ints
    fate: Ints  # DONE, REFUSED, GIVEN_UP or EXPIRED
    in_time: Bools  # DONE within the deadline
    time_ms: Floats  # when the EN learned of it

    def __len__(self) -> int:
        return len(self.world)

    def rows(self, chosen: Bools) -> "Feedback":
        """Some of the rows."""
        return Feedback(*(getattr(self, name)[chosen] for name in self.__slots__))
