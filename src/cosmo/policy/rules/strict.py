"""`strict`: local if that is surely in time, else the SN if that is, else reject.

The rule behind the paper's freshness baselines. It counts on one slot only: the wait at a node is
its outstanding work over *one* slot's rate, so that it errs on the side of caution.
"""

from typing import Any

from cosmo.node import NO_NODE, STORAGE, WORK, Dispatcher, Site
from cosmo.policy.rules.estimate import State
from cosmo.policy.rules.run import EnRule, RuleDispatcher
from cosmo.policy.rules.site import (
    comes_first,
    known_of,
    needed_bytes,
    raw_status,
    reject,
    tie_draws,
    upload_ms,
)


def choose(seen: Any, state: Any, row: Any) -> Any:
    """By the EN's own state first, then by the cached state of the SN with the least work; of
    several that have as little, one at random.
    """
    known, task = state.known, seen.dispatch[row]
    elapsed = task.time_ms - task.generated_ms
    local_ms = (task.en_state[WORK] + task.cycles) / known.en_speed[task.en]
    if task.local_room and elapsed + local_ms <= task.deadline_ms:
        return 0
    best, work = 0, raw_status(seen, known, row, 0, WORK)
    for column in range(1, seen.sn.shape[1]):
        if seen.sn[row, column] == NO_NODE:
            break
        other = raw_status(seen, known, row, column, WORK)
        if comes_first(seen, state, row, column, other, best + 1, work):
            best, work = column, other
    served_ms = (work + task.cycles) / known.sn_speed[seen.sn[row, best]]
    path = upload_ms(seen, known, row, best) + known.result_ms[task.en, best]
    room = raw_status(seen, known, row, best, STORAGE) >= needed_bytes(known, task)
    if room and elapsed + path + served_ms <= task.deadline_ms:
        return 1 + best
    return reject(seen)


def dispatcher(site: Site) -> Dispatcher:
    """The rule at the ENs of a site."""
    return RuleDispatcher(site, EnRule(choose, choose), State(known_of(site), tie_draws(site)))
