"""The formulas that ENs and SNs of a crowd share, of numbers or of arrays alike.

Compiled code (`control.fast.crowd`) uses the same functions, so they are made of sums, products,
quotients and roots, which have the same bits everywhere.
"""

from typing import Any

import numpy as np


def squash(x: Any) -> Any:
    """From 0 to 1, 1/2 at 0: a chance, from how many doubts a margin is wide."""
    return 0.5 + 0.5 * x / np.sqrt(1.0 + x * x)


def settled(age_ms: Any, settle_ms: Any) -> Any:
    """An age that counts for no more than `settle_ms`, however old."""
    return age_ms * settle_ms / (settle_ms + age_ms)


def later(work_ms: Any, elapsed_ms: Any, gain: Any, p: Any) -> Any:
    """Work that is left after a while, where an SN gains so many ms of work a ms from others."""
    net = p.drain - gain
    grown = np.maximum(-net, 0.0) * settled(elapsed_ms, p.settle_ms)
    return np.maximum(work_ms + grown - np.maximum(net, 0.0) * elapsed_ms, 0.0)


def still_full(full_age_ms: Any, p: Any) -> Any:
    """How likely an SN that was full so long ago is still full; 0 after an infinite time."""
    return p.hold_ms / (p.hold_ms + full_age_ms)


def faded(value: Any, elapsed_ms: Any, span_ms: Any) -> Any:
    """What is left of something that counts for about a span."""
    return value * span_ms / (span_ms + elapsed_ms)


def smoothed(value: Any, more: Any, elapsed_ms: Any, span_ms: Any) -> Any:
    """A rate over about a span, after `more` came, so long after the last: of equal amounts at
    equal gaps it is amount over gap.
    """
    return (value * span_ms + more) / (span_ms + elapsed_ms)


def chance(slack_ms: Any, age_ms: Any, gain: Any, full: Any, blame: Any, p: Any) -> Any:
    """That a task is in time at an SN: the slack that is left by the books, against how far they
    may be off; unless the SN is full; less where results were late.
    """
    old_ms = settled(age_ms, p.settle_ms)
    doubt_ms = p.doubt_ms + (p.doubt_age + p.doubt_rivals * gain) * old_ms
    return squash(slack_ms / doubt_ms) * (1.0 - full) / (1.0 + p.blame * blame)


def use(work_ms: Any, full: Any, p: Any) -> Any:
    """Of what use an SN with so much to do is: from 0 to 1."""
    return squash((p.center_ms - work_ms) / p.width_ms) * (1.0 - full)


def news(now: Any, expected: Any, full: Any, still: Any, p: Any) -> Any:
    """What being told is worth to a task that it concerns: of what use the SN is and should be, and
    how surely it is full and should be.
    """
    gap = now - expected
    bad, good = np.maximum(-gap, 0.0), np.maximum(gap, 0.0)
    return (p.worse * bad + good) * (1.0 + p.firm * np.abs(full - still))


def worth(news_now: Any, untold_ms: Any, age_ms: Any, p: Any) -> Any:
    """The same to all tasks of the time to come, if one a ms is concerned: for as long as a status
    makes a difference, more if it has been news for long, and a little for certainty.
    """
    certain = p.confirm * settled(age_ms, p.settle_ms) / p.settle_ms
    return p.worth * (news_now * p.usage_ms + p.insist * untold_ms) + certain * p.usage_ms


def read_number(told: Any, longest_ms: Any) -> Any:
    """The ms of work and whether nothing fitted in, of what a status says."""
    full = told >= longest_ms
    return told - longest_ms * full, full


def number(work_ms: Any, full: Any, longest_ms: Any) -> Any:
    """What a status says: the ms of work, the longest deadline more where nothing fits in."""
    return np.minimum(work_ms, 0.999 * longest_ms) + longest_ms * full
