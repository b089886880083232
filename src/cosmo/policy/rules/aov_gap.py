"""Age of version by content: send when the state has moved away from what the EN holds.

The gap is between the SN's state and the one that an EN holds, component by component on the scales
of R18, at the EN where it is largest. While an update is on its way the EN is taken to hold it
already: comparing with what is acknowledged would repeat it at every check, waiting for the
acknowledgement would cap the cost below the paper's. What is not acknowledged within `timeout_ms`
may be lost, and then it is not known which of the two states the EN holds: moving away from either
is a reason to send.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, RAW, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.pending import Pending, forget_sent, note_sent, nothing_sent, unconfirmed
from cosmo.policy.rules.periodic import OnRawStatus, answer
from cosmo.policy.rules.run import RuleUpdater, SnRule


class State(NamedTuple):
    """Parameters, scales, and the last update."""

    threshold: float
    check_ms: float
    timeout_ms: float
    scale: NDArray[np.float64]  # [SN, (N, W, B, M)]
    idle: NDArray[np.float64]
    pending: Pending


def gap_to_held(seen: Any, state: Any, row: Any) -> Any:
    """The largest normalised gap between the state and what ENs have acknowledged."""
    node = seen.update[row]
    worst = 0.0
    for column in range(seen.en.shape[1]):
        if seen.en[row, column] == NO_NODE:
            break
        source = seen.acknowledged_ms[row, column]
        for field in range(RAW):
            # R14: an EN that has heard nothing takes the SN to be idle.
            held = state.idle[node.sn, field]
            if source == source:
                held = seen.acknowledged[row, column, field]
            worst = max(worst, abs(node.sn_state[field] - held) / state.scale[node.sn, field])
    return worst


def gap_to_sent(seen: Any, state: Any, row: Any) -> Any:
    """The same to what was last sent."""
    node = seen.update[row]
    worst = 0.0
    for field in range(RAW):
        sent = state.pending.sent[node.world, node.sn, field]
        worst = max(worst, abs(node.sn_state[field] - sent) / state.scale[node.sn, field])
    return worst


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Compare the state with the last one sent, every `check_ms`, and send if it has moved."""
    node, pending = seen.update[row], state.pending
    unsure = unconfirmed(seen, pending, row)
    overdue = node.time_ms - pending.sent_ms[node.world, node.sn] >= state.timeout_ms
    if not unsure or overdue:
        pending.open[node.world, node.sn] = False
    gap = 0.0
    if unsure:
        gap = gap_to_sent(seen, state, row)
    if not pending.open[node.world, node.sn]:
        gap = max(gap, gap_to_held(seen, state, row))
    send = gap > state.threshold
    if send:
        note_sent(pending, node)
    answer(answers, row, send, state.check_ms)


def forget(node: Any, state: Any) -> None:
    """Forget the last status, as if none had been sent."""
    forget_sent(state.pending, node)


class AovGap(OnRawStatus):
    """Sends the raw state when it has moved by `threshold` from the status sent last."""

    reference = "a baseline of the paper"
    plain = (
        "The service node sends its state when it has moved far enough from the one that it sent"
        " last."
    )

    def __init__(
        self,
        threshold: Positive = 0.048,
        check_ms: Positive = 1.0,
        timeout_ms: Positive = 50.0,
    ) -> None:
        self.threshold, self.check_ms, self.timeout_ms = threshold, check_ms, timeout_ms

    def updater(self, site: Site) -> Updater:
        """Return the updater that sends when the state differs enough from what ENs hold."""
        state = State(
            threshold=float(self.threshold),
            check_ms=float(self.check_ms),
            timeout_ms=float(self.timeout_ms),
            scale=site.state_scale(site.sn),
            idle=site.sn.idle_state,
            pending=nothing_sent(site),
        )
        return RuleUpdater(SnRule(send, forget=forget), state)
