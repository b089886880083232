"""What strangers can ask for: a token bucket for each client, and what a task must look like.

Quantities have the bounds that those of scenarios and traces have: what passes here is a task that
the simulator could have played, and no sum or timer of a node overflows.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from cosmo.scenario.fields import MOST_AMOUNT, MOST_MS

_MOST_CLIENTS = 1024
_MOST_US = int(MOST_MS * 1000.0)  # no budget is longer
_MOST_BEATS_PER_S, _MOST_GATHERED = 1000.0, 4096  # heartbeats, messages
_MOST_RESIDUAL_US = int(MOST_AMOUNT * 1000.0)


class Buckets:
    """So many calls a second from each client, with bursts; the oldest clients are forgotten."""

    def __init__(
        self, per_s: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s, self._burst, self._clock = per_s, float(burst), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Whether a call of this client is within its bounds."""
        now = self._clock()
        left, since = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_s)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left), now
        if len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return allowed


def limit_of_stream(updates_per_s: float, scale: float) -> Buckets:
    """Messages of a peer on a stream: a few times what one that keeps to its limits sends, which
    need not be those of this node's file.

    The burst is what may have gathered while this node itself was held up.
    """
    return Buckets(4.0 * (updates_per_s / scale + _MOST_BEATS_PER_S), _MOST_GATHERED)


def span_of(task: Any, longest_ms: float) -> tuple[float, float]:
    """(ms since a task's generation, its deadline) of a task of the wire that has no fault.

    No method has met a task that was in flight for longer than deadlines are: what arrivals seem to
    ask for would follow one caller's word. Its generation is moved, and what is left stays.
    """
    elapsed_ms = task.elapsed_us / 1000.0
    beyond_ms = max(elapsed_ms - longest_ms, 0.0)
    return elapsed_ms - beyond_ms, task.deadline_us / 1000.0 - beyond_ms


def fault_of(task: Any, most_bytes: int, cycles_needed: bool) -> str:
    """What is wrong with a task of the wire, in one line; empty if nothing."""
    if task is None:
        return "the message is not a Task"
    if not 0.0 <= task.cycles <= MOST_AMOUNT:  # nor is NaN
        return f"cycles = {task.cycles}: must be a number from 0 to {MOST_AMOUNT:g}"
    if cycles_needed and task.cycles == 0.0:
        return "cycles = 0: must be greater than 0"
    if not 0 < task.deadline_us <= _MOST_US:
        return f"deadline_us = {task.deadline_us}: must be from 1 to {_MOST_US}"
    if task.elapsed_us > _MOST_US:
        return f"elapsed_us = {task.elapsed_us}: must be at most {_MOST_US}"
    if task.residual_us > _MOST_RESIDUAL_US:
        return f"residual_us = {task.residual_us}: must be at most {_MOST_RESIDUAL_US}"
    if len(task.kind) > 100:
        return f"kind: {len(task.kind)} characters, must be at most 100"
    if not task.kind.isprintable():  # handlers and logs get it as it is
        return f"kind = {task.kind!r}: must be printable"
    if len(task.input) > most_bytes:
        return f"input: {len(task.input)} bytes, must be at most {most_bytes}"
    return ""
