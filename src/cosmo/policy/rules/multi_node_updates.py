"""The multi-node controller of `cosmo-next` at an SN: it sends a status if its value exceeds its
cost.

The SN compares its backlog with the one that each EN expects, which it computes by the EN's
formula.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import STORAGE, WORK, Site
from cosmo.policy.rules.multi_node_closing import Closing, all_open, look, reopen
from cosmo.policy.rules.multi_node_formulas import (
    change_value,
    faded,
    later,
    number,
    read_number,
    smoothed,
    status_worth,
    still_closed,
    still_full,
    usefulness,
)
from cosmo.policy.rules.multi_node_parameters import Parameters
from cosmo.policy.rules.multi_node_site import profile_of
from cosmo.policy.rules.run import Remark, RuleUpdater, SnRule

Floats = NDArray[np.float64]

SAME_MS = 1e-6  # times of the same status differ by no more
NEAR = 0.3  # share of its price from which on a status is nearly worth it


class State(NamedTuple):
    """Parameters, constants of the site, and what SNs remember of the ENs that reach them."""

    p: Parameters
    longest_ms: float  # deadline
    largest_bytes: float  # that a task may reserve
    price: float  # cost of a status, in successful tasks
    sn_full_rate: Floats  # [SN]
    subset: NDArray[np.bool_]  # [SN, k] the ENs that use an SN, …
    reserve_of: NDArray[np.bool_]  # … and those that only would while another is closed
    tasks_per_ms: Floats  # [SN, k] planned tasks per ms from the EN
    work_per_ms: Floats  # [SN, k] traffic that the EN expects in all, in ms of work per ms
    phase: Floats  # [SN, k] from -1 to 1: statuses to ENs with more are sent a little sooner
    reported_work: Floats  # [world, SN, k] backlog in the last status to the EN, in ms, …
    reported_at: Floats  # … and when that was sent
    reported_full_at: Floats  # when the SN was reported to be full; -inf: it was reported not to be
    closed_at: Floats  # when it was reported to be closed; -inf: not, or open again, …
    closed_full: Floats  # … and whether it was full then
    unreported: Floats  # change worth reporting that has built up
    looked_at: Floats
    full_share: Floats  # [world, SN] share of recent time that the SN was full
    full_share_at: Floats
    closing: Closing


def encode(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """Encode a status as one number: the backlog in ms, whether a task fits in, and whether the SN
    is closed.
    """
    full = 1.0 if own[STORAGE] < state.largest_bytes else 0.0
    closed = state.closing.closed[world, sn]
    numbers[0] = number(own[WORK] / state.sn_full_rate[sn], full, closed, state.longest_ms)


def time_full(state: Any, node: Any, full: Any) -> Any:
    """The share of recent time that an SN was full; other users may fill it."""
    world, sn = node.world, node.sn
    passed = node.time_ms - state.full_share_at[world, sn]
    before = state.full_share[world, sn]
    state.full_share[world, sn] = smoothed(before, full * passed, passed, state.p.full_window_ms)
    state.full_share_at[world, sn] = node.time_ms
    return state.full_share[world, sn]


def forget_lost(seen: Any, state: Any, row: Any, column: Any) -> None:
    """Assume that a status without acknowledgement was lost, so that the EN has the one before."""
    node = seen.update[row]
    world, sn, made = node.world, node.sn, seen.acknowledged_ms[row, column]
    reported_at = state.reported_at[world, sn, column]
    overdue = node.time_ms - reported_at > state.p.ack_timeout_ms
    if not overdue or made >= reported_at - SAME_MS:
        return
    heard = made == made
    work, full, closed = read_number(seen.acknowledged[row, column, 0], state.longest_ms)
    state.reported_work[world, sn, column] = work if heard else 0.0
    state.reported_full_at[world, sn, column] = made if heard and full else -np.inf
    state.reported_at[world, sn, column] = made if heard else node.up_since_ms
    state.closed_at[world, sn, column] = made if heard and closed else -np.inf


def send(seen: Any, answers: Any, state: Any, row: Any) -> None:
    """Decide to which ENs to send a status, and when to decide again."""
    p, node = state.p, seen.update[row]
    world, sn, now = node.world, node.sn, node.time_ms
    no_room = 1.0 if node.sn_state[STORAGE] < state.largest_bytes else 0.0
    backlog_ms = node.sn_state[WORK] / state.sn_full_rate[sn]
    # As the EN will read it.
    work, full, _ = read_number(
        number(backlog_ms, no_room, 0.0, state.longest_ms), state.longest_ms
    )
    is_full = 1.0 if full else 0.0
    of_use = usefulness(work, is_full, p)
    boost = 1.0 + p.full_boost * time_full(state, node, is_full)
    stays_ms = look(state.closing, world, sn, work, full, now, p)
    closed = state.closing.closed[world, sn]
    near = False
    for column in range(seen.en.shape[1]):
        answers.send[row, column] = False
        if not state.subset[sn, column] and not state.reserve_of[sn, column]:
            continue
        forget_lost(seen, state, row, column)
        age = now - state.reported_at[world, sn, column]
        left = later(state.reported_work[world, sn, column], age, state.work_per_ms[sn, column], p)
        still = still_full(now - state.reported_full_at[world, sn, column], p)
        held = still_closed(now - state.closed_at[world, sn, column], state.longest_ms)
        if held:  # then the EN takes the report as current
            left = max(left, state.reported_work[world, sn, column])
            still = max(still, p.closed_doubt * state.closed_full[world, sn, column])
        fresh = change_value(of_use, usefulness(left, still, p), is_full, still, p)
        passed = now - state.looked_at[world, sn, column]
        unreported = state.unreported[world, sn, column]
        unreported = faded(unreported, passed, p.status_lifetime_ms) + fresh * passed
        value = status_worth(fresh, unreported, age, p)
        value = value * (1.0 + p.stagger * state.phase[sn, column]) * boost
        if state.reserve_of[sn, column]:
            value = 0.0
        if (closed > 0.0 and not held) or (held and state.closing.busy[world, sn] == 0):
            value = max(value, p.closing_value * stays_ms)
        value = value * state.tasks_per_ms[sn, column]
        state.unreported[world, sn, column] = unreported
        state.looked_at[world, sn, column] = now
        near = near or value > NEAR * state.price
        if value > state.price:
            answers.send[row, column] = True
            state.reported_work[world, sn, column] = work
            state.reported_at[world, sn, column] = now
            state.unreported[world, sn, column] = 0.0
            state.reported_full_at[world, sn, column] = now if full else -np.inf
            state.closed_at[world, sn, column] = now if closed > 0.0 else -np.inf
            state.closed_full[world, sn, column] = is_full
    answers.interval_ms[row] = p.recheck_soon_ms if near else p.recheck_later_ms


def forget(node: Any, state: Any) -> None:
    """Forget all reports when an SN comes back. ENs may take it to be down, which has the same
    effect as a full SN.
    """
    world, sn, now = node.world, node.sn, node.up_since_ms
    for column in range(state.reported_work.shape[2]):
        state.reported_work[world, sn, column] = 0.0
        state.reported_at[world, sn, column] = now
        state.reported_full_at[world, sn, column] = now
        state.unreported[world, sn, column] = 0.0
        state.looked_at[world, sn, column] = now
        state.closed_at[world, sn, column] = -np.inf
    reopen(state.closing, world, sn, now)
    state.full_share[world, sn] = 0.0
    state.full_share_at[world, sn] = now


def updater(site: Site, p: Parameters, remark: Remark | None = None) -> RuleUpdater:
    """The controller at the SNs of a site."""
    profile = profile_of(site, p)
    cells, nodes = (site.worlds, *profile.used_by.shape), (site.worlds, len(site.sn))
    state = State(
        p=p,
        longest_ms=profile.longest_ms,
        largest_bytes=profile.largest_bytes,
        price=float(profile.price),
        sn_full_rate=site.sn.full_rate,
        subset=profile.used_by,
        reserve_of=profile.reserve_of,
        tasks_per_ms=profile.tasks_per_ms,
        work_per_ms=profile.work_per_ms,
        phase=profile.phase,
        reported_work=np.zeros(cells),
        reported_at=np.zeros(cells),
        reported_full_at=np.full(cells, -np.inf),
        closed_at=np.full(cells, -np.inf),
        closed_full=np.zeros(cells),
        unreported=np.zeros(cells),
        looked_at=np.zeros(cells),
        full_share=np.zeros(nodes),
        full_share_at=np.zeros(nodes),
        closing=all_open(nodes),
    )
    return RuleUpdater(SnRule(send, encode, forget=forget), state, 1, remark)
