"""Tasks inside a node, and what can become of them."""

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from cosmo.live.clock import Timer


class Fate(IntEnum):
    """How a task ended, as its UE learns it; the numbers are those of the wire."""

    DONE = 1  # the result is there, within the deadline
    LATE = 2  # the result is there, after the deadline
    REFUSED = 3  # the node that was chosen had no room (R10)
    REJECTED = 4  # the EN's method did not take it
    EXPIRED = 5  # the budget was gone before there was a result
    FAILED = 6  # the handler failed, or the SN vanished and there was no time to try again


@dataclass(slots=True, eq=False)
class Item:
    """A task at a node, with times of the node's own clock."""

    number: int
    generated_ms: float
    deadline_ms: float  # from generation
    input_bytes: float
    cycles: float  # that nodes see
    ue: int = 0
    residual_ms: float = math.inf  # until the UE leaves the cell, if anybody knows
    kind: str = ""
    input: bytes = b""
    arrived_ms: float = math.nan  # when it was accepted at the node that runs it
    true_cycles: float = math.nan  # that an emulation takes, if not those (R35)
    started_ms: float = math.nan  # when a slot began with it
    decided_ms: float = math.nan
    action: int = -1  # what the method chose: 0 local, 1..S offload, S+1 reject
    counted: bool = False  # among the open requests of the endpoint that a picker has chosen
    rerun: bool = False  # its SN vanished, and the EN took it up itself
    answered: bool = False  # the UE has heard
    expired: bool = False  # the EN has stopped waiting for its SN, and hears no more of it (R38)
    lost: bool = False  # with its SN, which by R38 nobody notices before the deadline
    remote: bool = False  # a request that only the HTTP service of an SN can answer
    ended: bool = False  # the node has nothing more to do with it
    known: Any = field(default=None, repr=False)  # what was known at the decision, for the log
    expiry: Timer | None = None  # when its UE hears that the budget is gone
    patience: Timer | None = None  # when its EN stops waiting for its SN (R38)
    context: Any = field(default=None, repr=False)  # what the transport keeps of it

    @property
    def work_cycles(self) -> float:
        """Cycles that an emulation takes: the true ones, if they are known (R35)."""
        return self.cycles if math.isnan(self.true_cycles) else self.true_cycles

    @property
    def expires_ms(self) -> float:
        """When its budget is gone."""
        return self.generated_ms + self.deadline_ms
