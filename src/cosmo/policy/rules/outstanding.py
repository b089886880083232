"""Own tasks that SNs have not answered yet, and SNs that have fallen silent.

An answer ends a task: its result, a refusal, or the end of its deadline where SNs may fail (R38).
The clock alone never does, because a task may take longer than it declared.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DONE, GIVEN_UP, REFUSED, Site
from cosmo.policy.rules.site import remote_delay_ms, upload_ms

Floats = NDArray[np.float64]

CAUTION = 3.0  # times that the expected wait at the EN counts: demands may be larger than declared
SILENCE_MS = 200.0  # after an unanswered task, before the SN is tried again


class Outstanding(NamedTuple):
    """What ENs know of their own tasks at the SNs that they reach."""

    unanswered: NDArray[np.int64]  # [world, EN, k] tasks without an answer
    silent_ms: Floats  # [world, EN, k] when one last stayed unanswered; -inf once the SN answers
    mean_cycles: float  # of a task


def none_outstanding(site: Site) -> Outstanding:
    """Nothing has been sent yet."""
    cells = (site.worlds, *site.links.reach.shape)
    mean_cycles = float(site.tasks.mean_cycles)
    return Outstanding(np.zeros(cells, np.int64), np.full(cells, -np.inf), mean_cycles)


def note_sent(seen: Any, own: Any, row: Any, action: Any) -> None:
    """A task was decided on: it is outstanding if it goes to an SN."""
    task = seen.dispatch[row]
    if action >= 1 and action <= own.unanswered.shape[2]:
        own.unanswered[task.world, task.en, action - 1] += 1


def note_answer(fact: Any, own: Any) -> None:
    """A task has ended. An SN that left it unanswered is silent until it answers another one."""
    if fact.action < 1 or fact.action > own.unanswered.shape[2]:
        return
    world, en, column = fact.world, fact.en, fact.action - 1
    own.unanswered[world, en, column] = max(own.unanswered[world, en, column] - 1, 0)
    if fact.fate == DONE or fact.fate == REFUSED:
        own.silent_ms[world, en, column] = -np.inf
    elif fact.fate != GIVEN_UP:
        own.silent_ms[world, en, column] = fact.time_ms


def hear(fact: Any, state: Any) -> None:
    """The same for a rule whose state has them as `own`."""
    note_answer(fact, state.own)


def may_try(seen: Any, own: Any, row: Any, column: Any) -> Any:
    """Whether an SN may be sent a task: a silent one gets a single task at a time, now and then."""
    task = seen.dispatch[row]
    silent_ms = own.silent_ms[task.world, task.en, column]
    if silent_ms == -np.inf:
        return True
    alone = own.unanswered[task.world, task.en, column] == 0
    return alone and task.time_ms - silent_ms >= SILENCE_MS


def queue_wait_ms(known: Any, own: Any, sn: Any, ahead: Any) -> Any:
    """How long a task waits for a slot of an SN behind so many others of mean demand, in ms."""
    slots = known.sn_slots[sn]
    return max(ahead + 1 - slots, 0) * own.mean_cycles / known.sn_full_rate[sn]


def in_time(seen: Any, known: Any, row: Any, column: Any, wait_ms: Any) -> Any:
    """Whether a task is in time at an SN if it waits that long there."""
    upload = upload_ms(seen, known, row, column)
    delay = remote_delay_ms(seen, known, row, column, upload, wait_ms)
    return delay <= seen.dispatch[row].deadline_ms
