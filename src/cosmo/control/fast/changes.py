"""`aoci-online`, compiled: `policy.updaters.aoci_online`, by the same formulas."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import RAW, Updater
from cosmo.policy.updaters import AociOnlineUpdater, aoci_formulas
from cosmo.world.compiled import compiled, compiled_module

Floats = NDArray[np.float64]
_of = compiled_module(aoci_formulas)
_mean, _next_beta, _threshold = _of.mean, _of.next_beta, _of.threshold


class Changes(NamedTuple):
    """What SNs have learned of changes of their state, [channel] as `Pending` counts them."""

    cost: float
    largest_beta: float
    beta: Floats
    cycles: Floats
    deliveries: Floats
    changes: Floats
    delay_sum: Floats
    new_ms: Floats
    cycle_updates: Floats
    held: Floats  # [channel, (N, W, B, M)]


def changes_of(updater: Updater | None) -> Changes:
    """Of an updater, as it begins; empty if it goes by something else."""
    if not isinstance(updater, AociOnlineUpdater):
        none = np.zeros(0)
        return Changes(0.0, 0.0, none, none, none, none, none, none, none, np.zeros((0, 0)))
    learner = updater.learner
    return Changes(
        cost=float(learner.cost),
        largest_beta=float(learner.largest_beta),
        beta=learner.beta,
        cycles=learner.cycles,
        deliveries=learner.deliveries,
        changes=learner.changes,
        delay_sum=learner.delay_sum,
        new_ms=updater.new_ms,
        cycle_updates=updater.cycle_updates,
        held=updater.held,
    )


@compiled
def _note(changes, channel, sent, sent_ms, now):
    """`AociOnlineUpdater._note`: an update was acknowledged."""
    changed = False
    for k in range(RAW):
        changed = changed or sent[k] != changes.held[channel, k]  # so is it from NaN
    changes.deliveries[channel] += 1.0
    changes.delay_sum[channel] += now - sent_ms
    if not changed:
        return
    changes.changes[channel] += 1.0
    changes.beta[channel] = _next_beta(
        changes.beta[channel],
        changes.cycles[channel],
        _mean(changes.delay_sum[channel], changes.deliveries[channel]),
        sent_ms - changes.new_ms[channel],
        changes.cycle_updates[channel],
        changes.cost,
        changes.largest_beta,
    )
    changes.cycles[channel] += 1.0
    changes.new_ms[channel] = sent_ms
    changes.cycle_updates[channel] = 0.0
    for k in range(RAW):
        changes.held[channel, k] = sent[k]


@compiled
def by_changed_age(rules, memory, turn, row, unsure):
    """`AociOnlineUpdater.decide`: whether to send, and when to look again; `unsure` if the last
    update is not acknowledged.
    """
    node, changes = turn.update[row], memory.changes
    world, sn, now = node.world, node.sn, node.time_ms
    channel = world * memory.sent_ms.shape[1] + sn
    sent_ms = memory.sent_ms[world, sn]
    if memory.pending[world, sn] and not unsure:
        memory.pending[world, sn] = False
        _note(changes, channel, memory.sent[world, sn], sent_ms, now)
    elif now - sent_ms >= rules.timeout_ms:
        memory.pending[world, sn] = False
    mean = _mean(changes.delay_sum[channel], changes.deliveries[channel])
    share = _mean(changes.changes[channel], changes.deliveries[channel])
    left = changes.new_ms[channel] + _threshold(changes.beta[channel], mean, share) - now
    if memory.pending[world, sn]:
        return False, rules.interval_ms
    if left > 0.0:
        return False, max(math.ceil(left / rules.interval_ms), 1.0) * rules.interval_ms
    memory.pending[world, sn] = True
    memory.sent_ms[world, sn] = now
    for k in range(RAW):
        memory.sent[world, sn, k] = node.sn_state[k]
    changes.cycle_updates[channel] += 1.0
    return True, rules.interval_ms
