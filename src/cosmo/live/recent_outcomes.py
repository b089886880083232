"""Outcomes of tasks that ended recently at an SN, as the SN itself can judge them (R19, R29)."""

from collections import deque

_MOST = 65_536  # notes that are kept between two calls of `numbers`


class RecentOutcomes:
    """Counts tasks that ended within the last `history_ms`: those in time, and their delays."""

    def __init__(self, history_ms: float) -> None:
        self._history = history_ms
        self._notes: deque[tuple[float, float | None, bool]] = deque()
        self._in_time, self._timed, self._delays = 0, 0, 0.0

    def note(self, now: float, delay_ms: float | None, in_time: bool) -> None:
        """A task has ended; one that was refused or dropped has no delay."""
        self._notes.append((now, delay_ms, in_time))
        self._in_time += in_time
        if delay_ms is not None:
            self._timed += 1
            self._delays += delay_ms
        if len(self._notes) > _MOST:  # `numbers` may never be called
            self._forget(now)

    def numbers(self, now: float) -> tuple[float, float, float]:
        """Mean delay in ms, share in time, share not in time; zeros if there is none."""
        self._forget(now)
        success = self._in_time / len(self._notes) if self._notes else 0.0
        failure = 1.0 - success if self._notes else 0.0
        if self._timed == 0:
            self._delays = 0.0  # forgets rounding errors
            return 0.0, success, failure
        return self._delays / self._timed, success, failure

    def _forget(self, now: float) -> None:
        while self._notes and not self._notes[0][0] >= now - self._history:
            _, delay, in_time = self._notes.popleft()
            self._in_time -= in_time
            if delay is not None:
                self._timed -= 1
                self._delays -= delay
