"""The tables that an episode feeds into the world: plain columns, checked once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of an episode in order of generation. `deadline_ms` counts from generation."""

    time_ms: Floats
    en: Ints
    ue: Ints  # within its EN's cell
    input_bytes: Floats
    cycles: Floats
    deadline_ms: Floats

    def __len__(self) -> int:
        return len(self.time_ms)


@dataclass(frozen=True, slots=True)
class BackgroundTasks:
    """Tasks that come to an SN from elsewhere; they take room but are not measured."""

    time_ms: Floats
    sn: Ints
    input_bytes: Floats
    cycles: Floats

    def __len__(self) -> int:
        return len(self.time_ms)


@dataclass(frozen=True, slots=True)
class Episode:
    """All that is random about the world in one episode, the same for every method."""

    tasks: Tasks
    background: BackgroundTasks
    rate_factor: Floats  # [up and down, link, step]; no steps if the rates are constant
    window_ms: float
    message_seed: int  # of the generator of losses and jitter (64 bits)
    network_seed: int  # of a packet-level network (63 bits)
    rate: float  # mean arrivals a second, all cells together
