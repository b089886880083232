"""What the compiled turns of a training read and write: sizes, scales, weights, draws and notes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Links

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Ints = NDArray[np.int64]


class Sizes(NamedTuple):
    """Of the networks, and how they are used."""

    semantic: bool
    dimensions: int
    encoder_first: int
    encoder_second: int
    remotes: int  # features of one SN
    branch: int
    fusion: int
    gate_first: bool
    with_age: bool
    inputs: int
    projection: int
    hidden: int
    actions: int
    stale_loss_weight: float  # in units of utility
    price: float  # of sending a status, in units of utility
    discount_per_ms: float  # inside an interval (R33)
    window_ms: float


class Scales(NamedTuple):
    """What makes observations comparable (R18)."""

    en_state: Doubles
    sn_state: Doubles
    up_mbps: Doubles
    down_mbps: Doubles
    task: Doubles  # bytes, cycles, ms
    delay_ms: float
    throughput_mbps: float
    residual_ms: float
    age_ms: float
    most_age: float


class Networks(NamedTuple):
    """Every run's parameters, a row each."""

    encoder: Floats
    en: Floats
    sn: Floats


class Chance(NamedTuple):
    """ε-greedy exploration: ε for each run, and the episode's draws."""

    steps: Ints  # [run] decisions so far, of the whole training and all agents of a kind
    first: float
    last: float
    over: int
    chance: Doubles  # [run or stream, decision]
    choice: Ints


class Pairs(NamedTuple):
    """Numbers of the links, which tell the streams of a run apart; -1 where there is none."""

    of_en: Ints  # [EN, k] to the k-th SN that it reaches
    of_sn: Ints  # [SN, k] to the k-th EN that reaches it
    links: int

    @classmethod
    def at(cls, links: Links) -> "Pairs":
        """Return the pairs of ENs and SNs that `links` connects."""
        of_en = np.where(links.exist, np.cumsum(links.exist).reshape(links.exist.shape) - 1, -1)
        ens, columns = links.reached_by
        of_sn = np.where(ens >= 0, of_en[ens, columns], -1)
        return cls(of_en, of_sn, int(links.exist.sum()))


class Notes(NamedTuple):
    """What training keeps of an episode's decisions."""

    rows: Floats  # [run, task, column] EN transitions that wait for their outcome
    latest: Ints  # [run, EN] the task that the EN decided last, -1 before the first
    next_task: Ints  # [run, task] that it decided after this one, -1 as long as there is none
    interval: Ints  # [run, task, k] of the k-th SN that the task was decided in
    worth: Doubles  # [run, task, k] of a unit of its utility, at that interval's start (R33)
    pairs: Pairs
    decisions: Ints  # [stream] of SNs so far, and of each:
    seen: Floats
    before: Floats  # the hidden state
    action: Ints
    start_ms: Doubles
    length_ms: Doubles
    reward: Doubles
    pending: Ints  # tasks that are not final yet
    hidden: Floats  # [stream, unit] as it is now
    intervals_ms: Doubles
    scratch: Floats  # room for layers
