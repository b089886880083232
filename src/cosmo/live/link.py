"""A node's own account of one direction of a link (R13): when it is free, and how fast it was."""

from cosmo.node import Links
from cosmo.node.units import BYTES_PER_MS


class Link:
    """A FIFO of messages that leave one after another at the link's rate."""

    def __init__(self, links: Links, en: int, column: int, up: bool, carried: bool = False) -> None:
        """Between an EN and the SN in that column of its reach, from the EN (`up`) or to it.

        Of a link that is `carried` by a network as slow as itself, only the delay of its hops is
        left to add.
        """
        place = en, column
        mbps = links.up_mbps[place] if up else links.down_mbps[place]
        self._nominal = float(mbps) * BYTES_PER_MS
        self._hops, self._hop_ms = int(links.hops[place]), float(links.hop_delay_ms[place])
        self._packet = links.packet_bytes
        self._carried = carried
        self._free = 0.0
        self._steady = self._nominal / BYTES_PER_MS, 0.0, 0.0

    def _rate(self, time: float) -> float:
        return self._nominal

    def _arrival(self, size: float, start: float, rate: float) -> float:
        last_packet_ms = min(size, self._packet) / rate
        return start + (size / rate + self._hops * self._hop_ms + (self._hops - 1) * last_packet_ms)

    def send(self, size: float, now: float) -> float:
        """A message of so many bytes joins the FIFO; when its last bit is at the other end."""
        if self._carried:
            return now + self.hops_ms(size)
        start = max(now, self._free)
        rate = self._rate(start)
        self._free = start + size / rate
        return self._arrival(size, start, rate)

    def hops_ms(self, size: float) -> float:
        """How much later than it has left a message is there: the delay of hops (R13)."""
        last_packet_ms = min(size, self._packet) / self._nominal
        return self._hops * self._hop_ms + (self._hops - 1) * last_packet_ms

    def idle_arrival(self, size: float, now: float) -> float:
        """When a message would be there if the link held nothing else."""
        return self._arrival(size, now, self._rate(now))

    def backlog_ms(self, now: float) -> float:
        """Until the link has sent what it holds."""
        return max(0.0, self._free - now)

    def forget(self) -> None:
        """The other end is new: messages in flight are lost."""
        self._free = 0.0

    def statistics(self, now: float) -> tuple[float, float, float]:
        """Mean rate of the recent past, its deviation, and the rate now minus the mean, in Mbps."""
        return self._steady
