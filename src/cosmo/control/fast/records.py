"""What compiled rules know of a site, remember, and are told to do."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.control.fast.admission import Admission
from cosmo.control.fast.books import Books
from cosmo.control.fast.changes import Changes
from cosmo.control.fast.prices import Prices
from cosmo.control.fast.probes import Probes
from cosmo.policy.next.crowd.numbers import START, Numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Rules at the EN.
LOCAL, IN_TURN, UNTIL_FULL, TRUTH, ESTIMATE, STRICT, BOOKS, FRIENDS, CROWD = range(9)
BACK_OFF, PRICED, ADAPTIVE, PREQUAL, ADMISSION, RANDOM = range(9, 15)
OWN_BOOKS = (BOOKS, BACK_OFF, PRICED, ADAPTIVE)
WITHOUT_MEMORY = (LOCAL, IN_TURN, UNTIL_FULL, ESTIMATE, STRICT)  # and without the truth
# Rules at the SN.
SILENT, BY_CLOCK, BY_AGE, BY_CONTENT, TO_FRIENDS, TO_FRIENDS_MOVED, BY_NEWS, PROBES, BY_CHANGE = (
    range(9)
)


class Rules(NamedTuple):
    """Which rules, and their parameters."""

    en: int
    sn: int
    interval_ms: float  # by the clock, or between checks or rides; by age, the threshold
    threshold: float  # by content; of friends, in ms
    timeout_ms: float
    warmup_ms: float  # tasks of before do not count for regret
    regret: bool  # whether that is measured
    rides: bool  # whether SNs are asked about results


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
    next_entry: Ints  # [world, EN, k]
    arrival: Floats  # [world, EN, k, entry] of own tasks
    cycles: Floats
    reserved: Floats
    told_ms: Floats  # [world, SN, k] the wait that was told last
    told_at: Floats
    ridden_at: Floats  # [world, SN, EN] the last status that rode on a result


class Crowd(NamedTuple):
    """What a crowd (`policy.next.crowd`) knows of its ground, and remembers."""

    numbers: Numbers
    longest_ms: float
    largest_bytes: float
    price: float
    mean_cycles: float
    reach: Ints  # [EN, k]
    kept: NDArray[np.bool_]
    rivals: Floats
    capacity: Floats  # [EN]
    ease_ms: Floats  # [SN]
    told: NDArray[np.bool_]  # [SN, k]
    usage: Floats
    gain: Floats
    phase: Floats
    draws: Floats  # [world, task, k]
    load: Floats  # [world, EN]
    load_at: Floats
    work: Floats  # [world, EN, k]
    work_at: Floats
    full_at: Floats
    source: Floats
    flow: Floats
    flow_at: Floats
    blame: Floats
    blame_at: Floats
    next_entry: Ints
    task: Ints  # [world, EN, k, entry]
    arrival: Floats
    own_work: Floats
    told_work: Floats  # [world, SN, k]
    told_at: Floats
    told_full_at: Floats
    untold: Floats
    looked_at: Floats
    pressure: Floats  # [world, SN]
    pressed_at: Floats


_NONE, _NO_TABLE, _NO_CELLS = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0))
_NO_ENTRIES = np.zeros((0, 0, 0, 0))
NO_CROWD = Crowd(
    numbers=START,
    longest_ms=0.0,
    largest_bytes=0.0,
    price=0.0,
    mean_cycles=0.0,
    reach=np.zeros((0, 0), np.int64),
    kept=np.zeros((0, 0), np.bool_),
    rivals=_NO_TABLE,
    capacity=_NONE,
    ease_ms=_NONE,
    told=np.zeros((0, 0), np.bool_),
    usage=_NO_TABLE,
    gain=_NO_TABLE,
    phase=_NO_TABLE,
    draws=_NO_CELLS,
    load=_NO_TABLE,
    load_at=_NO_TABLE,
    work=_NO_CELLS,
    work_at=_NO_CELLS,
    full_at=_NO_CELLS,
    source=_NO_CELLS,
    flow=_NO_CELLS,
    flow_at=_NO_CELLS,
    blame=_NO_CELLS,
    blame_at=_NO_CELLS,
    next_entry=np.zeros((0, 0, 0), np.int64),
    task=np.zeros((0, 0, 0, 0), np.int64),
    arrival=_NO_ENTRIES,
    own_work=_NO_ENTRIES,
    told_work=_NO_CELLS,
    told_at=_NO_CELLS,
    told_full_at=_NO_CELLS,
    untold=_NO_CELLS,
    looked_at=_NO_CELLS,
    pressure=_NO_TABLE,
    pressed_at=_NO_TABLE,
)


class Memory(NamedTuple):
    """What rules remember; arrays of others are empty."""

    books: Books
    prices: Prices
    probes: Probes
    admission: Admission
    draws: Floats  # [world, task, draw] of rules that draw for each task
    sent: Floats  # [world, SN, (N, W, B, M)] the last update
    sent_ms: Floats  # [world, SN]
    pending: NDArray[np.bool_]
    decisions: Ints  # [world] that count for regret
    regretted: Ints
    changes: Changes
    friends: Friends
    crowd: Crowd
