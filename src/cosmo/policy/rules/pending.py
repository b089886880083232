"""What SNs have sent and not yet seen acknowledged.

With several ENs, an update is acknowledged when all of them have done so. What is not acknowledged
within a timeout counts as lost.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, RAW, Site

Floats = NDArray[np.float64]


class Pending(NamedTuple):
    """The last update of each SN."""

    sent_ms: Floats  # [world, SN]
    open: NDArray[np.bool_]  # [world, SN] whether it is on its way
    sent: Floats  # [world, SN, (N, W, B, M)]


def nothing_sent(site: Site) -> Pending:
    """Return the record of SNs that have sent no status yet, for each world and SN."""
    channels = site.worlds, len(site.sn)
    return Pending(
        np.full(channels, -np.inf), np.zeros(channels, np.bool_), np.zeros((*channels, RAW))
    )


def forget_sent(pending: Any, node: Any) -> None:
    """As the SN began: it has failed."""
    pending.sent_ms[node.world, node.sn] = -np.inf
    pending.open[node.world, node.sn] = False


def unconfirmed(seen: Any, pending: Any, row: Any) -> Any:
    """Whether something was sent that not all ENs have acknowledged."""
    node = seen.update[row]
    sent_ms = pending.sent_ms[node.world, node.sn]
    for column in range(seen.en.shape[1]):
        if seen.en[row, column] == NO_NODE:
            break
        source = seen.acknowledged_ms[row, column]
        if (source if source == source else -np.inf) < sent_ms:
            return True
    return False


def note_sent(pending: Any, node: Any) -> None:
    """Record that an SN sends a status now."""
    pending.open[node.world, node.sn] = True
    pending.sent_ms[node.world, node.sn] = node.time_ms
    for field in range(RAW):
        pending.sent[node.world, node.sn, field] = node.sn_state[field]
