"""Numbers of the recent past that need no memory of it: what is older counts for less and less."""

import math


class SmoothedLevel:
    """The mean of a level over time, where a moment `memory_ms` ago counts for 1/e of now."""

    def __init__(self, memory_ms: float) -> None:
        self._memory, self._mean, self._since = memory_ms, 0.0, 0.0

    def hold(self, level: float, now: float) -> float:
        """The level was this since the last call; the mean until now."""
        if now > self._since:
            kept = math.exp((self._since - now) / self._memory)
            self._mean, self._since = level + kept * (self._mean - level), now
        return self._mean


class SmoothedRate:
    """How many events there are in a second, with the same memory."""

    def __init__(self, memory_ms: float) -> None:
        self._memory, self._rate, self._since = memory_ms, 0.0, 0.0

    def count(self, now: float) -> None:
        """One more."""
        self._rate = self.per_s(now) + 1000.0 / self._memory
        self._since = max(now, self._since)

    def per_s(self, now: float) -> float:
        """Until now."""
        return self._rate * math.exp(-max(now - self._since, 0.0) / self._memory)
