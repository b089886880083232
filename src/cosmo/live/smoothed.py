"""Smoothed numbers of the recent past: what is older counts for less and less."""

import math

from cosmo.node.units import BYTES_PER_MS

_MOST_UES = 4096  # remembered at a time: an EN meets strangers without end
_KIND_WEIGHT, _MOST_KINDS = 0.1, 1000


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
        """Count one event at time `now`, in ms."""
        self._rate = self.per_s(now) + 1000.0 / self._memory
        self._since = max(now, self._since)

    def per_s(self, now: float) -> float:
        """Return the smoothed number of events per second at time `now`, in ms."""
        return self._rate * math.exp(-max(now - self._since, 0.0) / self._memory)


class Throughput:
    """The throughput of UEs' uploads (R8); UEs not heard of for longest are forgotten."""

    def __init__(self, weight: float, nominal_mbps: float) -> None:
        self._weight, self._nominal = weight, nominal_mbps
        self._known: dict[int, float] = {}

    def sample(self, ue: int, size: float, delay_ms: float) -> tuple[float, float]:
        """Fold in an upload; the smoothed throughput and its trend, in Mbps."""
        sample = size / delay_ms / BYTES_PER_MS if delay_ms > 0.0 else self._nominal
        before = self._known.pop(ue, None)
        if before is None:
            if len(self._known) >= _MOST_UES:
                del self._known[next(iter(self._known))]
            self._known[ue] = sample
            return sample, 0.0
        after = self._weight * sample + (1.0 - self._weight) * before
        self._known[ue] = after
        return after, after - before


class Estimates:
    """Cycles that a kind of task takes, learned from those that ran here; `start` while unknown."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._known: dict[str, float] = {}

    def of(self, kind: str) -> float:
        """Cycles of a task of this kind."""
        return self._known.get(kind, self._start)

    def learn(self, kind: str, cycles: float) -> None:
        """A task of this kind took so many."""
        if cycles > 0.0:
            before = self._known.pop(kind, None)
            if len(self._known) >= _MOST_KINDS:  # the one that was learned of longest ago
                del self._known[next(iter(self._known))]
            self._known[kind] = (
                cycles if before is None else before + _KIND_WEIGHT * (cycles - before)
            )
