"""The formulas that the ENs and SNs of the multi-node controller share.

They use sums, products, quotients and roots only, whose bits are the same on every processor. `p`
are its parameters (`cosmo.policy.rules.multi_node_parameters`).
"""

import math
from typing import Any

CLOSED_FOR = 10.0  # longest deadlines


def squash(x: Any) -> Any:
    """A number from 0 to 1, 1/2 at 0: a probability, from a margin in units of its error."""
    return 0.5 + 0.5 * x / math.sqrt(1.0 + x * x)


def settled(age_ms: Any, settle_ms: Any) -> Any:
    """An age that counts for at most `settle_ms`, however old."""
    return age_ms * settle_ms / (settle_ms + age_ms)


def later(work_ms: Any, elapsed_ms: Any, gain: Any, p: Any) -> Any:
    """Work in ms that is left after a while, if others send `gain` ms of work per ms."""
    net = p.drain_rate - gain
    grown = max(-net, 0.0) * settled(elapsed_ms, p.saturation_ms)
    return max(work_ms + grown - max(net, 0.0) * elapsed_ms, 0.0)


def still_full(full_age_ms: Any, p: Any) -> Any:
    """The probability that an SN that was full so long ago is still full; 0 after infinite time."""
    return p.full_memory_ms / (p.full_memory_ms + full_age_ms)


def still_down(silent_for_ms: Any, p: Any) -> Any:
    """The probability that an SN that was found silent so long ago is down; likewise."""
    return p.silent_memory_ms / (p.silent_memory_ms + silent_for_ms)


def faded(value: Any, elapsed_ms: Any, span_ms: Any) -> Any:
    """What is left of a value that counts for about `span_ms`."""
    return value * span_ms / (span_ms + elapsed_ms)


def smoothed(value: Any, more: Any, elapsed_ms: Any, span_ms: Any) -> Any:
    """A rate over about a span, after `more` came, so long after the last: of equal amounts at
    equal gaps it is amount over gap.
    """
    return (value * span_ms + more) / (span_ms + elapsed_ms)


def chance(
    slack_ms: Any, age_ms: Any, gain: Any, full: Any, late_results: Any, unsure_ms: Any, p: Any
) -> Any:
    """The probability that a task is in time at an SN: the expected slack against the error of the
    estimate, `unsure_ms` of it because demands are not known; less if the SN may be full or if
    results were late.
    """
    old_ms = settled(age_ms, p.saturation_ms)
    error_ms = p.wait_error_ms + (p.wait_error_growth + p.wait_error_rivals * gain) * old_ms
    return (
        squash(slack_ms / (error_ms + unsure_ms))
        * (1.0 - full)
        / (1.0 + p.late_penalty * late_results)
    )


def usefulness(work_ms: Any, full: Any, p: Any) -> Any:
    """How useful an SN with this backlog is, from 0 to 1."""
    return squash((p.useful_work_ms - work_ms) / p.useful_work_width_ms) * (1.0 - full)


def change_value(now: Any, expected: Any, full: Any, still: Any, p: Any) -> Any:
    """The value of a status to a task that it concerns: the difference between the SN's present and
    expected usefulness, more if whether it is full differs as well.
    """
    gap = now - expected
    bad, good = max(-gap, 0.0), max(gap, 0.0)
    return (p.deterioration_weight * bad + good) * (1.0 + p.full_change_boost * abs(full - still))


def status_worth(change: Any, unreported_ms: Any, age_ms: Any, p: Any) -> Any:
    """The value of a status to all later tasks, at one task per ms: the change for as long as a
    status makes a difference, unreported change of the past, and a little for confirmation.
    """
    certain = p.confirmation_value * settled(age_ms, p.saturation_ms) / p.saturation_ms
    changed = change * p.status_lifetime_ms + p.unreported_weight * unreported_ms
    return p.status_value * changed + certain * p.status_lifetime_ms


def read_number(told: Any, longest_ms: Any) -> Any:
    """Decode the number of a status: (ms of work, whether no task fits in, whether closed)."""
    closed = told >= 2.0 * longest_ms
    told = told - 2.0 * longest_ms * closed
    full = told >= longest_ms
    return told - longest_ms * full, full, closed


def number(work_ms: Any, full: Any, closed: Any, longest_ms: Any) -> Any:
    """Encode a status: ms of work, plus the longest deadline if no task fits in, plus twice that if
    the SN is closed: it stays as it is until it says otherwise.
    """
    return min(work_ms, 0.999 * longest_ms) + longest_ms * (full + 2.0 * closed)


def still_closed(closed_age_ms: Any, longest_ms: Any) -> Any:
    """Whether an SN that has said so long ago that it is closed is taken at its word. It repeats it
    before that ends; one that has failed cannot take it back.
    """
    return closed_age_ms < CLOSED_FOR * longest_ms
