"""Units, and the one formula of transmission that every room uses (R13)."""

from typing import Any

import numpy as np

BYTES_PER_MS = 125.0  # in one Mbps


def path_ms(
    message_bytes: Any, last_packet_bytes: Any, bytes_per_ms: Any, hops: Any, hop_delay_ms: Any
) -> Any:
    """From the start of a transmission until its last bit is at the other end, in ms (R13).

    Store and forward by packets: the message passes the first hop, its last packet the others.
    Takes numbers or arrays that broadcast; compiled code uses the same function.
    """
    last_packet_ms = last_packet_bytes / bytes_per_ms
    return message_bytes / bytes_per_ms + hops * hop_delay_ms + (hops - 1) * last_packet_ms


def transfer_ms(
    message_bytes: Any, bytes_per_ms: Any, hops: Any, hop_delay_ms: Any, packet_bytes: Any
) -> Any:
    """The same of a message that is cut into packets of at most `packet_bytes`."""
    last = np.minimum(message_bytes, packet_bytes)
    return path_ms(message_bytes, last, bytes_per_ms, hops, hop_delay_ms)
