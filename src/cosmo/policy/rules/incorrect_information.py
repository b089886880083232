"""`aoii`: age of incorrect information. SNs report once an EN has been wrong about them too long.

After A. Maatouk, S. Kriouile, M. Assaad and A. Ephremides, "The Age of Incorrect Information: A New
Performance Metric for Status Updates" (2020). What matters is not how old a status is but for how
long it has been wrong. Here it is about one bit: whether a task would be in time at this SN, which
is so while the wait for a slot is at most `wait_ms`. An SN sends when the bit that an EN holds has
been wrong for `age_ms`: the paper's threshold policy, for a penalty that grows with time.

The paper has no decisions. ENs decide as those of `jbt`: at the EN if that is in time, else at a
random SN that says yes, else they reject.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive, PositiveInt
from cosmo.policy.rules import join_below_threshold as threshold
from cosmo.policy.rules.join_below_threshold import BIT, CHECK_MS, Bits, note_status, overdue
from cosmo.policy.rules.outstanding import CAUTION
from cosmo.policy.rules.power_of_d import wait_ms
from cosmo.policy.rules.run import RuleUpdater, SnRule

bit = threshold.encode
forget_bits = threshold.forget


class State(NamedTuple):
    """Memory and parameters of the SNs' rule."""

    age_ms: float
    bits: Bits  # whose upper threshold tells whether a task would be in time
    wrong_since_ms: NDArray[np.float64]  # [world, SN, k]; infinity while the EN is right


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """A status is 1 if a task would be in time, else 0."""
    bit(world, sn, own, state.bits, numbers)


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Look every ms, and tell an EN what is right once it has been wrong for `age_ms`."""
    node, bits = seen.update[row], state.bits
    world, sn = node.world, node.sn
    in_time = wait_ms(sn, node.sn_state, bits) <= bits.high_ms
    for column in range(seen.en.shape[1]):
        tell = False
        if bits.subset[sn, column]:
            since_ms = np.inf
            if bits.open[world, sn, column] != in_time:
                since_ms = min(state.wrong_since_ms[world, sn, column], node.time_ms)
            state.wrong_since_ms[world, sn, column] = since_ms
            tell = node.time_ms - since_ms >= state.age_ms or overdue(seen, bits, row, column)
            if tell:
                note_status(seen, bits, row, column, in_time)
        answers.send[row, column] = tell
    answers.interval_ms[row] = CHECK_MS


def forget(node: Any, state: Any) -> None:
    """As `jbt`: an SN that comes back tells all ENs (R38)."""
    forget_bits(node, state.bits)
    for column in range(state.wrong_since_ms.shape[2]):
        state.wrong_since_ms[node.world, node.sn, column] = np.inf


class AgeOfIncorrectInformation(Method):
    """SNs report once an EN was wrong for `age_ms` about whether a task would be in time there."""

    reference = "Maatouk et al., The age of incorrect information, 2020"
    carries = BIT

    def __init__(
        self,
        age_ms: Positive = 2.0,
        wait_ms: Positive = 25.0,
        keep: PositiveInt = 6,
        caution: Positive = CAUTION,
    ) -> None:
        self.age_ms, self.wait_ms = age_ms, wait_ms
        self.keep, self.caution = keep, caution

    def dispatcher(self, site: Site) -> Dispatcher:
        """A random SN that says yes."""
        return threshold.dispatcher(site, self.keep, self.caution)

    def updater(self, site: Site) -> Updater:
        """By the age of what is wrong."""
        bits = threshold.bits(site, self.wait_ms, self.wait_ms, self.keep)
        state = State(float(self.age_ms), bits, np.full(bits.sent_ms.shape, np.inf))
        return RuleUpdater(SnRule(send, encode, forget=forget), state, BIT)
