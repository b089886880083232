"""The throughput of UEs' uploads, smoothed (R8)."""

from cosmo.node.units import BYTES_PER_MS

_MOST_UES = 4096  # remembered at a time: an EN meets strangers without end


class Throughput:
    """One number a UE; those that have not been heard of for longest are forgotten."""

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
