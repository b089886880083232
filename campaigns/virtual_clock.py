"""A clock that jumps from event to event in R5's order, for live nodes without waiting."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

_KIND_SHIFT = 48


@dataclass(slots=True)
class Scheduled:
    """A call at a time; cancelling it takes its content away."""

    call: Callable[[], None] | None
    order: int

    @property
    def kind(self) -> int:
        """Of R5."""
        return self.order >> _KIND_SHIFT

    def cancel(self) -> None:
        """Never make it."""
        self.call = None


class VirtualClock:
    """The time and the timers of all nodes: whatever comes first happens first (R5)."""

    def __init__(self) -> None:
        self._now = 0.0
        self._events: list[tuple[float, int, int, Scheduled]] = []
        self._scheduled = self._pushed = 0

    def now(self) -> float:
        """Ms since the start."""
        return self._now

    def at(self, time_ms: float, kind: int, call: Callable[[], None]) -> Scheduled:
        """Schedule a call behind all of its kind at the same instant."""
        event = Scheduled(call, (kind << _KIND_SHIFT) | self._scheduled)
        self._scheduled += 1
        self._push(time_ms, event)
        return event

    def move(self, timer: Scheduled, time_ms: float) -> Scheduled:
        """Make its call at another time; it keeps its place among equals (R5, R37)."""
        moved = Scheduled(timer.call, timer.order)
        timer.cancel()
        self._push(time_ms, moved)
        return moved

    def _push(self, time_ms: float, event: Scheduled) -> None:
        # The third number is there for one that is moved away and back.
        heapq.heappush(self._events, (time_ms, event.order, self._pushed, event))
        self._pushed += 1

    def run(self, before: Callable[[int], None] | None = None) -> None:
        """Make every call in order; `before` is told the kind of each."""
        while self._events:
            time, _, _, event = heapq.heappop(self._events)
            if event.call is not None:
                self._now = time
                if before is not None:
                    before(event.kind)
                event.call()
