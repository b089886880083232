"""What rules know of their site, as flat arrays, and what all of them ask of a task and its SNs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import NO_NODE, Site
from cosmo.node.units import BYTES_PER_MS, path_ms
from cosmo.policy.draws import no_draws

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Known(NamedTuple):
    """Of the site, as `cosmo.node.Site` has it."""

    en_speed: Floats  # [EN] cycles per ms of a slot
    sn_speed: Floats
    sn_slots: Ints  # [SN]
    sn_full_rate: Floats  # [SN] cycles per ms of all slots
    sn_storage_bytes: Floats
    sn_queue: Ints
    sn_idle: Floats  # [SN, (N, W, B, M)] of an SN with nothing to do
    hops: Ints  # [EN, k]
    hop_delay_ms: Floats
    result_ms: Floats  # [EN, k] from the finish at the SN until the result is back
    packet_bytes: float
    reservation_floor_bytes: float


def first_slots(slots: Ints, before: Sequence[int] = ()) -> Floats:
    """[*before, *node, slot] when each slot of nodes will be free: at once; missing ones never."""
    free = np.zeros((*before, *slots.shape, int(slots.max())))
    free[..., np.arange(free.shape[-1]) >= slots[..., None]] = np.inf
    return free


def given(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that cannot be written: properties of the site, or fitted parameters. All other arrays
    of a state are memory, which a dispatcher of a larger site copies from one of a smaller site.
    """
    kept = values.copy()
    kept.setflags(write=False)
    return kept


def draw_of(state: Any, task: Any, place: Any) -> Any:
    """A uniform draw of a task, by the low bits of its number (`cosmo.policy.draws`)."""
    return state.draws[task.world, task.en, task.task & (state.draws.shape[2] - 1), place]


def tie_draws(site: Site, more: int = 0) -> Floats:
    """[world, EN, task, k] room for draws, which the dispatcher fills in: one for each SN, which
    decide ties, and `more` after them. None decide ties where ENs reach one SN: there are none.
    """
    sns = int(site.links.reach.shape[1])
    return no_draws(site, (sns if sns > 1 else 0) + more)


def comes_first(
    seen: Any, state: Any, row: Any, column: Any, value: Any, best: Any, least: Any
) -> Any:
    """Whether the SN of a column is to be taken instead of the best action so far: its value is
    less, or equal to that of another SN and drawn before it. Equals of the EN come after it.
    """
    if value < least:
        return True
    if value != least or best < 1 or best > seen.sn.shape[1]:
        return False
    task = seen.dispatch[row]
    return draw_of(state, task, column) < draw_of(state, task, best - 1)


def known_of(site: Site) -> Known:
    """What every rule knows of a site."""
    links = site.links
    return Known(
        en_speed=site.en.cycles_per_ms,
        sn_speed=site.sn.cycles_per_ms,
        sn_slots=site.sn.slots,
        sn_full_rate=site.sn.full_rate,
        sn_storage_bytes=site.sn.storage_bytes,
        sn_queue=site.sn.queue_capacity,
        sn_idle=site.sn.idle_state,
        hops=links.hops,
        hop_delay_ms=links.hop_delay_ms,
        result_ms=links.result_ms,
        packet_bytes=float(links.packet_bytes),
        reservation_floor_bytes=float(site.reservation_floor_bytes),
    )


def reject(seen: Any) -> Any:
    """The action that rejects."""
    return seen.sn.shape[1] + 1


def reached(seen: Any, row: Any) -> Any:
    """How many SNs the EN of a row reaches: they are in the first columns."""
    count = seen.sn.shape[1]
    while count > 0 and seen.sn[row, count - 1] == NO_NODE:
        count -= 1
    return count


def needed_bytes(known: Any, task: Any) -> Any:
    """Storage that a task takes at a node (R9)."""
    return max(task.input_bytes, known.reservation_floor_bytes)


def upload_ms(seen: Any, known: Any, row: Any, column: Any) -> Any:
    """From now until the input of a task is at an SN, behind what the link holds (R13)."""
    task = seen.dispatch[row]
    return seen.up_backlog_ms[row, column] + path_ms(
        task.input_bytes,
        min(task.input_bytes, known.packet_bytes),
        seen.up_link_mbps[row, column, 0] * BYTES_PER_MS,
        known.hops[task.en, column],
        known.hop_delay_ms[task.en, column],
    )


def raw_status(seen: Any, known: Any, row: Any, column: Any, field: Any) -> Any:
    """N, W, B or M of an SN by the last status; of an idle SN before the first (R14)."""
    source = seen.status_ms[row, column]
    if source == source:  # not NaN
        return seen.status[row, column, field]
    return known.sn_idle[seen.sn[row, column], field]


def local_delay_ms(seen: Any, known: Any, row: Any) -> Any:
    """From the generation of a task to its end at the EN."""
    task = seen.dispatch[row]
    elapsed = task.time_ms - task.generated_ms
    return elapsed + task.local_wait_ms + task.cycles / known.en_speed[task.en]


def remote_delay_ms(seen: Any, known: Any, row: Any, column: Any, upload: Any, wait: Any) -> Any:
    """From the generation of a task to its result, if it waits that long at an SN, in ms."""
    task, sn = seen.dispatch[row], seen.sn[row, column]
    elapsed = task.time_ms - task.generated_ms
    back = known.result_ms[task.en, column]
    return elapsed + upload + wait + task.cycles / known.sn_speed[sn] + back


def surely_local(seen: Any, known: Any, row: Any, caution: Any) -> Any:
    """Whether a task can be done at the EN in time even if it waits `caution` times as long there
    as the demands that nodes see say (R35).
    """
    task = seen.dispatch[row]
    delay = local_delay_ms(seen, known, row) + (caution - 1.0) * task.local_wait_ms
    return task.local_room and delay <= task.deadline_ms


def or_local(seen: Any, known: Any, row: Any, action: Any) -> Any:
    """An action, or 0 instead of a rejection if a task can be done at the EN in time."""
    if action != reject(seen):
        return action
    best, _ = best_so_far(seen, known, row)
    return best


def best_so_far(seen: Any, known: Any, row: Any) -> Any:
    """(0, its delay) if a task can be done at the EN in time, else (reject, infinity): what the
    SNs have to beat.
    """
    task = seen.dispatch[row]
    delay = local_delay_ms(seen, known, row)
    if task.local_room and delay <= task.deadline_ms:
        return 0, delay
    return reject(seen), np.inf
