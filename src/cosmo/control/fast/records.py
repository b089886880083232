"""What compiled rules know of a site, remember, and are told to do."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rules at the EN.
LOCAL, IN_TURN, UNTIL_FULL, TRUTH, ESTIMATE, STRICT, BOOKS, FRIENDS = range(8)
WITHOUT_MEMORY = (LOCAL, IN_TURN, UNTIL_FULL, ESTIMATE, STRICT)  # and without the truth
# Rules at the SN.
SILENT, BY_CLOCK, BY_AGE, BY_CONTENT, TO_FRIENDS, TO_FRIENDS_MOVED = range(6)


class Rules(NamedTuple):
    """Which rules, and their parameters."""

    en: int
    sn: int
    interval_ms: float  # by the clock, or between checks; by age, the threshold
    threshold: float  # by content; of friends, in ms
    timeout_ms: float
    warmup_ms: float  # tasks of before do not count for regret
    regret: bool  # whether that is measured


class Known(NamedTuple):
    """Of the site, as `cosmo.node.Site` has it."""

    en_speed: Floats  # [EN] cycles per ms of a slot
    sn_speed: Floats
    sn_full_rate: Floats
    sn_storage: Floats
    sn_queue: Ints
    sn_idle: Floats  # [SN, (N, W, B, M)]
    sn_scale: Floats
    hops: Ints  # [EN, k]
    hop_delay_ms: Floats
    result_ms: Floats
    packet_bytes: float
    reservation_floor: float


class Friends(NamedTuple):
    """What those who keep to a few SNs know and remember (`policy.friends`)."""

    d: int
    numbers: int  # that a status carries
    longest_ms: float  # deadline
    largest_reservation: float
    kept: NDArray[np.bool_]  # [EN, k]
    told: NDArray[np.bool_]  # [SN, k]
    draws: Floats  # [world, task, k]
    next_entry: Ints  # [world, EN, k]
    arrival: Floats  # [world, EN, k, entry] of own tasks
    cycles: Floats
    reserved: Floats
    told_ms: Floats  # [world, SN, k] the wait that was told last
    told_at: Floats


class Memory(NamedTuple):
    """What rules remember; arrays of others are empty."""

    slot_free: Floats  # [world, EN, k, slot]
    finish: Floats  # [world, EN, k, entry]
    reserved: Floats
    sent: Floats  # [world, SN, (N, W, B, M)] the last update
    sent_ms: Floats  # [world, SN]
    pending: NDArray[np.bool_]
    decisions: Ints  # [world] that count for regret
    regretted: Ints
    friends: Friends
