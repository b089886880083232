"""What `advance` hands over at a turn: who must decide, what they see, answer, and what is true."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node.observation import STATE_FIELDS
from cosmo.world.records import Floats, Ints, Records
from cosmo.world.truth import Truth

# Places in Turn.counts: rows of each kind, worlds that are not over, and what went wrong.
EN_ROWS, SN_ROWS, SETTLED_ROWS, FEEDBACK_ROWS, UNFINISHED, ERROR, STALLED, HOLDING = range(8)
RIDE_ROWS = 8
COUNTS = 9

# Fields have the names that they have in `cosmo.node`: `Batch` makes observations of them.
DISPATCH_ROW = np.dtype(
    [
        ("world", "i8"),
        ("en", "i8"),
        ("ue", "i8"),
        ("task", "i8"),  # counts the EN's own (R41)
        ("time_ms", "f8"),
        ("generated_ms", "f8"),
        ("input_bytes", "f8"),
        ("cycles", "f8"),
        ("deadline_ms", "f8"),
        ("throughput_mbps", "f8"),
        ("throughput_trend_mbps", "f8"),
        ("residual_ms", "f8"),
        ("en_state", "f8", (STATE_FIELDS,)),
        ("en_speed", "f8"),
        ("local_wait_ms", "f8"),
        ("local_room", "?"),
    ],
    align=True,
)

UPDATE_ROW = np.dtype(
    [
        ("world", "i8"),
        ("sn", "i8"),
        ("time_ms", "f8"),
        ("sn_state", "f8", (STATE_FIELDS,)),
        ("sn_speed", "f8"),
        ("up_since_ms", "f8"),
        ("recent_delay_ms", "f8"),
        ("recent_success", "f8"),
        ("recent_failure", "f8"),
    ],
    align=True,
)

RESULT_ROW = np.dtype(
    [
        ("world", "i8"),
        ("sn", "i8"),
        ("en", "i8"),
        ("time_ms", "f8"),
        ("sn_state", "f8", (STATE_FIELDS,)),
        ("sn_speed", "f8"),
        ("up_since_ms", "f8"),
        ("acknowledged_ms", "f8"),
    ],
    align=True,
)

SETTLED_ROW = np.dtype(
    [
        ("world", "i8"),
        ("task", "i8"),
        ("en", "i8"),
        ("action", "i8"),
        ("outcome", "i8"),
        ("time_ms", "f8"),
    ],
    align=True,
)

FEEDBACK_ROW = np.dtype(
    [
        ("world", "i8"),
        ("task", "i8"),  # counts the EN's own (R41)
        ("en", "i8"),
        ("action", "i8"),
        ("fate", "i8"),  # codes of `cosmo.node.observation`
        ("in_time", "?"),
        ("time_ms", "f8"),
    ],
    align=True,
)


class Seen(NamedTuple):
    """What nodes can observe at their decisions, and nothing else: all that a rule is handed."""

    dispatch: Records  # [row] tasks that have reached their EN
    sn: Ints  # [row, k] the k-th SN that the EN reaches, or -1
    status: Floats  # [row, k, d]
    status_ms: Floats  # [row, k]
    up_link_mbps: Floats  # [row, k, 3]: mean rate, its deviation, trend
    up_backlog_ms: Floats  # [row, k]: until the link is free
    update: Records  # [row] SNs that decide on an update
    en: Ints  # [row, k] the k-th EN that reaches the SN, or -1
    acknowledged: Floats  # [row, k, d]
    acknowledged_ms: Floats  # [row, k]
    down_link_mbps: Floats  # [row, k, 3]
    result: Records  # [row] results about to leave their SN (R31)
    result_acknowledged: Floats  # [row, d]
    feedback: Records  # what ENs have heard of their tasks in this turn


class Answers(NamedTuple):
    """What nodes decide at a turn: actions of ENs, statuses and intervals of SNs."""

    action: Ints  # [row] of an EN
    send: NDArray[np.bool_]  # [row, k] to whom an SN sends a status
    interval_ms: Floats  # [row] until the SN decides again
    numbers: Floats  # [row, d] what a status carries, where one is sent
    ride: NDArray[np.bool_]  # [row] whether a status rides on a result
    ride_numbers: Floats  # [row, d] of those that ride


class Turn(NamedTuple):
    """What `advance` writes and reads: who must decide, what they see, answer, and what is true."""

    counts: Ints  # how many rows of each kind, and what went wrong: see kernel
    seen: Seen
    answers: Answers
    truth: Truth  # behind the EN decisions; for yardsticks, measurement and training only
    settled: Records  # tasks whose outcome became final in this turn; not for nodes either
