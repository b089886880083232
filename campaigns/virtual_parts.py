"""Parts of live nodes that only a laboratory has: links that fade, SNs that fail and come back.

On real machines a process is really killed, and its successor knows nothing anyway.
"""

import math
from collections.abc import Callable

import numpy as np

from cosmo.live.core_sn import Peer, SnCore
from cosmo.live.link import Link
from cosmo.live.recent_outcomes import RecentOutcomes
from cosmo.live.tasks import Item
from cosmo.node import Links
from cosmo.node.units import BYTES_PER_MS

Factor = Callable[[float], float]  # of the nominal rate, at a time


class FadingLink(Link):
    """A link whose rate changes in steps of `period_ms`."""

    def __init__(
        self,
        links: Links,
        en: int,
        column: int,
        up: bool,
        factor: Factor,
        period_ms: float,
        history_ms: float = 500.0,
    ) -> None:
        """`factor` says how the rate changes; `history_ms` is how far statistics look back."""
        super().__init__(links, en, column, up)
        self._history, self._factor, self._period = history_ms, factor, period_ms

    def _rate(self, time: float) -> float:
        return self._nominal * self._factor(time)

    def statistics(self, now: float) -> tuple[float, float, float]:
        """Mean rate over the history, its deviation, and the rate now minus the mean, in Mbps."""
        rate = self._rate(now) / BYTES_PER_MS
        start = max(0.0, now - self._history)
        if now <= start:
            return rate, 0.0, 0.0
        first, second, left = 0.0, 0.0, start
        while left < now:
            right = min(now, (math.floor(left / self._period) + 1.0) * self._period)
            if right <= left:
                right = now
            value = self._rate(0.5 * (left + right)) / BYTES_PER_MS
            first += value * (right - left)
            second += value * value * (right - left)
            left = right
        mean = first / (now - start)
        deviation = math.sqrt(max(0.0, second / (now - start) - mean * mean))
        return mean, deviation, rate - mean


class FallibleSn(SnCore):
    """An SN that can fail (R38)."""

    def fail(self) -> list[Item]:
        """Lose all that the SN has and knows (R38); the tasks that are lost.

        Links go on with what they were handed before. Nothing may be asked of it until it returns.
        """
        lost = self.station.clear()
        for timer in (*self._work.values(), self._next):
            if timer is not None:
                timer.cancel()
        self._work.clear()
        self.recent = RecentOutcomes(self.rules.history_ms)
        self._sent.clear()
        self.peers = [Peer(np.zeros(self._carries), here=peer.here) for peer in self.peers]
        return lost

    def come_back(self) -> None:
        """Be there again, with nothing; the updater is asked as at the start."""
        self.up_since_ms = self._clock.now()
        if self.up_since_ms <= self.rules.until_ms:
            self.begin()
