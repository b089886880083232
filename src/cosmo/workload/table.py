"""The tables that an episode feeds into the world: plain columns, checked once."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPEED, FAILS, RETURNS = 0, 1, 2  # what happens to a node: `NodeEvents.what`


class _Work:
    """Tasks in order of time, whose true cycles may differ from the declared ones (R35)."""

    __slots__ = ()
    time_ms: Floats
    cycles: Floats
    true_cycles: Floats | None

    def __len__(self) -> int:
        return len(self.time_ms)

    @property
    def as_declared(self) -> bool:
        """Whether tasks take the cycles that are declared."""
        return self.true_cycles is None

    @property
    def work_cycles(self) -> Floats:
        """What the tasks take: the true cycles, or the declared ones if these are true."""
        return self.cycles if self.true_cycles is None else self.true_cycles


@dataclass(frozen=True, slots=True)
class Tasks(_Work):
    """The tasks of an episode in order of generation. `deadline_ms` counts from generation.

    `cycles` are the declared ones; `true_cycles` are given where tasks take others (R35).
    """

    time_ms: Floats
    en: Ints
    ue: Ints  # within its EN's cell
    input_bytes: Floats
    cycles: Floats
    deadline_ms: Floats
    true_cycles: Floats | None = None

    @property
    def most_of_an_en(self) -> int:
        """How many tasks the EN has that has most of them."""
        return int(np.bincount(self.en, minlength=1).max())

    @property
    def columns(self) -> tuple[NDArray[Any], ...]:
        """All columns in order; without the true cycles if these are as declared."""
        six = self.time_ms, self.en, self.ue, self.input_bytes, self.cycles, self.deadline_ms
        return six if self.true_cycles is None else (*six, self.true_cycles)

    def taken(self, rows: ArrayLike | slice) -> "Tasks":
        """Some of the tasks: a slice, a mask or numbers of rows."""
        chosen = rows if isinstance(rows, slice) else np.asarray(rows)
        return Tasks(*(column[chosen] for column in self.columns))


@dataclass(frozen=True, slots=True)
class BackgroundTasks(_Work):
    """Tasks that come to an SN from elsewhere; they take room but are not measured."""

    time_ms: Floats
    sn: Ints
    input_bytes: Floats
    cycles: Floats
    true_cycles: Floats | None = None


@dataclass(frozen=True, slots=True)
class NodeEvents:
    """When nodes change their speed (R37), fail and come back (R38), in order of time; all begin
    up, at factor 1.
    """

    time_ms: Floats = field(default_factory=lambda: np.empty(0))
    node: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # ENs, then SNs
    what: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # SPEED, FAILS, RETURNS
    factor: Floats = field(default_factory=lambda: np.empty(0))  # of SPEED; NaN of the others

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
    events: NodeEvents = field(default_factory=NodeEvents)
    expires: bool = False  # ENs stop waiting for an offloaded task at its deadline (R38)
