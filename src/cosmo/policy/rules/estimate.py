"""`estimate`: the faster route that should be in time, else reject.

Local delay from the EN's true state; remote delay from the cached one. The wait at an SN is 0 if it
had an idle slot, else its outstanding work over its full rate; it has room if its free storage
covers the task.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import IDLE, STORAGE, WORK, Dispatcher, Site
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import (
    Known,
    best_so_far,
    comes_first,
    known_of,
    needed_bytes,
    raw_status,
    reached,
    remote_delay_ms,
    tie_draws,
    upload_ms,
)


class State(NamedTuple):
    """What the rule knows of the site, and random draws for ties; no decision is remembered."""

    known: Known
    draws: NDArray[np.float64]  # [world, EN, task, k], for ties


def choose(seen: Any, state: Any, row: Any) -> Any:
    """The fastest route with room and within the deadline; of several SNs that are equally fast,
    one at random.
    """
    known, task = state.known, seen.dispatch[row]
    best, least = best_so_far(seen, known, row)
    needed = needed_bytes(known, task)
    for column in range(reached(seen, row)):
        if raw_status(seen, known, row, column, STORAGE) < needed:
            continue
        wait = 0.0
        if not raw_status(seen, known, row, column, IDLE) > 0:
            rate = known.sn_full_rate[seen.sn[row, column]]
            wait = raw_status(seen, known, row, column, WORK) / rate
        upload = upload_ms(seen, known, row, column)
        delay = remote_delay_ms(seen, known, row, column, upload, wait)
        in_time = delay <= task.deadline_ms
        if in_time and comes_first(seen, state, row, column, delay, best, least):
            best, least = column + 1, delay
    return best


def dispatcher(site: Site) -> Dispatcher:
    """The rule at the ENs of a site."""
    return RuleDispatcher(site, EnRule(choose, choose), State(known_of(site), tie_draws(site)))
