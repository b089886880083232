"""What a node needs from its machine: a clock, timers, and a worker that runs tasks.

Times are in ms of the node's own clock, which starts at 0 with the node. `kind` is R5's rank of
what happens at the time: a virtual clock keeps that order at equal instants, a real one need not.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cosmo.live.tasks import Item

# R5; a change is one of a node's speed, or that it fails or comes back.
FINISH, CHANGE, DELIVERY, DEADLINE, EN_DECISION, SN_DECISION, GENERATION, TENANT = range(8)

Call = Callable[[], None]
Finished = Callable[[bytes], None]  # is handed the output
Failed = Callable[[str], None]  # is handed the reason, in one line


class Timer(Protocol):
    """A call that has not been made yet."""

    def cancel(self) -> None:
        """Never make it; does nothing if it has been made."""
        ...


class Clock(Protocol):
    """A clock and its timers."""

    def now(self) -> float:
        """Ms since the node has started."""
        ...

    def at(self, time_ms: float, kind: int, call: Call) -> Timer:
        """Make a call at a time, or as soon as possible if that has passed."""
        ...

    def move(self, timer: Any, time_ms: float) -> Timer:
        """Make the call of one of its timers at another time; it keeps its place among equals."""
        ...


class Worker(Protocol):
    """Does the work of tasks, each in a slot of its own."""

    exact: bool  # it is done when it should be, even if that is noticed later

    def run(self, item: "Item", finish_ms: float, finished: Finished, failed: Failed) -> Timer:
        """Begin with a task that should be done at `finish_ms`; cancelling it ends the work."""
        ...

    def move(self, timer: Timer, finish_ms: float) -> Timer:
        """The node's speed has changed (R37): work that has begun should be done then."""
        ...

    def close(self) -> None:
        """End all work and free what the worker holds."""
        ...


class Emulated:
    """Holds the slot for as long as the task's cycles take, and returns nothing.

    Late timers do not add up: what comes next in the slot begins when this should have been done.
    """

    exact = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def run(self, item: "Item", finish_ms: float, finished: Finished, failed: Failed) -> Timer:
        """Be done at `finish_ms`."""
        return self._clock.at(finish_ms, FINISH, lambda: finished(b""))

    def move(self, timer: Timer, finish_ms: float) -> Timer:
        """Be done at `finish_ms` instead."""
        return self._clock.move(timer, finish_ms)

    def close(self) -> None:
        """Nothing is at work."""
