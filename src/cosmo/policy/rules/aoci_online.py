"""Age of changed information with a threshold that is learned online.

AoCI at the receiver is the time since the newest delivered update *that brought something new* was
generated. A cycle runs from the generation of one such update to that of the next; it lasts X and
holds N updates. The average of X²/2 (the area under the age, up to a constant) plus a cost for each
update, per unit of time, is least for the root β of

    E[X²/2 + cost·N − β·X] = 0,

which a stochastic approximation finds from what is observed: after the k-th cycle

    β ← β + η_k·(X²/2 + cost·N − β·X),   η_k = 1 / ((k + 2)·E[Y]),

with Y the delay from sending to acknowledgement. If a delivery brings something new with
probability p, then (1 − p)/p updates on average fail to before one does, and the optimal policy
sends whenever the channel is idle and AoCI ≥ H = max(0, β − E[Y]·(1 − p)/p).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import RAW, Site, Updater
from cosmo.policy.parameters import Positive
from cosmo.policy.rules.pending import Pending, forget_sent, note_sent, nothing_sent, unconfirmed
from cosmo.policy.rules.periodic import OnRawStatus, answer
from cosmo.policy.rules.run import RuleUpdater, SnRule

Floats = NDArray[np.float64]

LARGEST_BETA_MS = 1000.0


class Learner(NamedTuple):
    """What has been learned of each SN's updates, [world, SN]; times in one unit, cost in its
    square.
    """

    cost: float
    largest_beta: float
    beta: Floats
    cycles: Floats
    deliveries: Floats
    changes: Floats
    delay_sum: Floats


class State(NamedTuple):
    """Parameters, the learner, and the cycle that each SN is in."""

    check_ms: float
    timeout_ms: float
    pending: Pending
    learner: Learner
    new_ms: Floats  # [world, SN] generation of the newest update that was new
    cycle_updates: Floats  # [world, SN]
    held: Floats  # [world, SN, (N, W, B, M)] that ENs hold; NaN at first: the first is new


def no_knowledge(channels: tuple[int, int], cost: float, beta: float, largest: float) -> Learner:
    """A learner of so many channels, as it begins."""
    return Learner(cost, largest, np.full(channels, beta), *np.zeros((4, *channels)))


def first_guess(cost: Any) -> Any:
    """Of β: right for p = 1 and no delay."""
    return math.sqrt(2.0 * cost)


def mean_delay(learner: Any, world: Any, sn: Any) -> Any:
    """E[Y] so far; 0 before the first delivery."""
    return learner.delay_sum[world, sn] / max(learner.deliveries[world, sn], 1.0)


def delivered(learner: Any, world: Any, sn: Any, delay: Any, changed: Any) -> None:
    """An update was acknowledged after `delay`, and was new to the receiver or not."""
    learner.deliveries[world, sn] += 1.0
    learner.delay_sum[world, sn] += delay
    if changed:
        learner.changes[world, sn] += 1.0


def end_cycle(learner: Any, world: Any, sn: Any, length: Any, updates: Any) -> None:
    """A cycle has ended: β takes a step."""
    beta = learner.beta[world, sn]
    error = 0.5 * (length * length) + learner.cost * updates - beta * length
    pace = (learner.cycles[world, sn] + 2.0) * mean_delay(learner, world, sn)
    if pace > 0.0:
        beta += 1.0 / pace * error
    elif error != 0.0:  # acknowledged at once: as far as it may go
        beta = learner.largest_beta if error > 0.0 else 0.0
    learner.beta[world, sn] = min(max(beta, 0.0), learner.largest_beta)
    learner.cycles[world, sn] += 1.0


def threshold(learner: Any, world: Any, sn: Any) -> Any:
    """H; p counts as 1 until there is a change."""
    share = learner.changes[world, sn] / max(learner.deliveries[world, sn], 1.0)
    if share <= 0.0:
        share = 1.0
    delay = mean_delay(learner, world, sn)
    return max(0.0, learner.beta[world, sn] - delay * (1.0 - share) / share)


def note_acknowledged(state: Any, node: Any) -> None:
    """The last update was acknowledged; if it was new, a cycle has ended."""
    world, sn, pending = node.world, node.sn, state.pending
    sent_ms, changed = pending.sent_ms[world, sn], False
    for field in range(RAW):
        if pending.sent[world, sn, field] != state.held[world, sn, field]:  # so is it from NaN
            changed = True
    delivered(state.learner, world, sn, node.time_ms - sent_ms, changed)
    if not changed:
        return
    length = sent_ms - state.new_ms[world, sn]
    end_cycle(state.learner, world, sn, length, state.cycle_updates[world, sn])
    state.new_ms[world, sn] = sent_ms
    state.cycle_updates[world, sn] = 0.0
    for field in range(RAW):
        state.held[world, sn, field] = pending.sent[world, sn, field]


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Send when nothing is on its way and AoCI has reached the learned threshold.

    Looks every `check_ms` while an update is on its way, else when AoCI will have got there.
    """
    node, pending = seen.update[row], state.pending
    world, sn, now = node.world, node.sn, node.time_ms
    if pending.open[world, sn] and not unconfirmed(seen, pending, row):
        pending.open[world, sn] = False
        note_acknowledged(state, node)
    elif now - pending.sent_ms[world, sn] >= state.timeout_ms:
        pending.open[world, sn] = False
    left = state.new_ms[world, sn] + threshold(state.learner, world, sn) - now
    if pending.open[world, sn]:
        answer(answers, row, False, state.check_ms)
    elif left > 0.0:
        checks = max(math.ceil(left / state.check_ms), 1.0)
        answer(answers, row, False, checks * state.check_ms)
    else:
        note_sent(pending, node)
        state.cycle_updates[world, sn] += 1.0
        answer(answers, row, True, state.check_ms)


def forget(node: Any, state: Any) -> None:
    """Nothing was sent, and nothing learned."""
    world, sn, learner = node.world, node.sn, state.learner
    forget_sent(state.pending, node)
    learner.beta[world, sn] = first_guess(learner.cost)
    learner.cycles[world, sn] = 0.0
    learner.deliveries[world, sn] = 0.0
    learner.changes[world, sn] = 0.0
    learner.delay_sum[world, sn] = 0.0
    state.new_ms[world, sn] = node.up_since_ms
    state.cycle_updates[world, sn] = 0.0
    for field in range(RAW):
        state.held[world, sn, field] = np.nan


class AociOnline(OnRawStatus):
    """Sends the raw state when the age of changed information reaches a learned threshold."""

    reference = (
        "a baseline of the paper; Peng et al., age of changed information, 2024, as it cites it"
    )
    plain = (
        "The service node sends its state when the last one has been out of date for a time that it"
        " learns."
    )

    def __init__(
        self,
        cost_ms2: Positive = 660.0,
        check_ms: Positive = 1.0,
        timeout_ms: Positive = 50.0,
    ) -> None:
        self.cost_ms2, self.check_ms, self.timeout_ms = cost_ms2, check_ms, timeout_ms

    def updater(self, site: Site) -> Updater:
        """Return the updater that sends when changed information reaches its threshold of age."""
        channels = site.worlds, len(site.sn)
        cost = float(self.cost_ms2)
        learner = no_knowledge(channels, cost, first_guess(cost), LARGEST_BETA_MS)
        state = State(
            check_ms=float(self.check_ms),
            timeout_ms=float(self.timeout_ms),
            pending=nothing_sent(site),
            learner=learner,
            new_ms=np.zeros(channels),
            cycle_updates=np.zeros(channels),
            held=np.full((*channels, RAW), np.nan),
        )
        return RuleUpdater(SnRule(send, forget=forget), state)
