"""What compiled rules know of a site, remember, and are told to do."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rules at the EN.
LOCAL, IN_TURN, UNTIL_FULL, TRUTH, ESTIMATE, STRICT, BOOKS = range(7)
WITHOUT_MEMORY = (LOCAL, IN_TURN, UNTIL_FULL, ESTIMATE, STRICT)  # and without the truth
# Rules at the SN.
SILENT, BY_CLOCK, BY_AGE, BY_CONTENT = range(4)


class Rules(NamedTuple):
    """Which rules, and their parameters."""

    en: int
    sn: int
    interval_ms: float  # by the clock, or between checks; by age, the threshold
    threshold: float  # by content
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
