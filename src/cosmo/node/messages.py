"""What passes between nodes, as plain data. Durations, never wall clocks, cross from node to node.

EN to SN: a task, an acknowledgement. SN to EN: a result, a notice of refusal, a status.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """Work for a node; its deadline is `deadline_ms` after generation, `elapsed_ms` of it gone."""

    id: int
    kind: str
    cycles: float
    deadline_ms: float
    elapsed_ms: float
    input: bytes

    @property
    def budget_ms(self) -> float:
        """What is left of the deadline when the message is made."""
        return self.deadline_ms - self.elapsed_ms


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a task."""

    id: int
    output: bytes


@dataclass(frozen=True, slots=True)
class Notice:
    """An SN has refused a task (R27)."""

    id: int


@dataclass(frozen=True, slots=True)
class Status:
    """The d numbers that an SN's updater made of its state (R28), and their number in order."""

    sequence: int
    numbers: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ack:
    """An EN has taken a status into its cache."""

    sequence: int
