"""The EN rules `estimate` and `strict`, compiled together with the world's event loop.

An SN decides some fifteen times a second, its ENs on hundreds of tasks meanwhile. Asking Python for
each of these is most of what a step of `cosmo/Update-v0` would cost; here they are decided without
leaving compiled code, to the same bits as `policy.dispatchers` decides them (tests check that).
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo import node as node_room
from cosmo.node import IDLE, STORAGE, WORK, Dispatcher, Site
from cosmo.node.units import BYTES_PER_MS, transfer_ms
from cosmo.policy.dispatchers.estimate import EstimateDispatcher
from cosmo.policy.dispatchers.strict import StrictDispatcher
from cosmo.world import kernel
from cosmo.world.compiled import compiled, entry_point, fingerprint_of
from cosmo.world.records import EN_ROWS, ERROR, HOLDING, SN_TURN, STALLED

Floats = NDArray[np.float64]
_KINDS = {EstimateDispatcher: 0, StrictDispatcher: 1}
_transfer_ms = compiled(transfer_ms)
_advance = kernel.advance


class Rule(NamedTuple):
    """A rule, and what its nodes are told of their site."""

    strict: int
    en_rate: Floats  # [EN] cycles per ms of one slot
    sn_rate: Floats  # [SN]
    sn_full_rate: Floats  # [SN] of all slots
    sn_idle: Floats  # [SN, (N, W, B, M)]
    result_ms: Floats  # [EN, k] of the k-th SN that it reaches (R30)
    hops: NDArray[np.int64]  # [EN, k]
    hop_delay_ms: Floats  # [EN, k]
    reservation_floor: float
    packet_bytes: float


def compiled_play(dispatcher: Dispatcher, site: Site) -> Callable[..., None] | None:
    """What `Worlds.advance_playing` wants, if there is a compiled form of this dispatcher."""
    kind = _KINDS.get(type(dispatcher))
    if kind is None:
        return None
    links = site.links
    rule = Rule(
        strict=kind,
        en_rate=site.en.cycles_per_ms,
        sn_rate=site.sn.cycles_per_ms,
        sn_full_rate=site.sn.full_rate,
        sn_idle=site.sn.idle_state,
        result_ms=links.result_ms,
        hops=links.hops,
        hop_delay_ms=links.hop_delay_ms,
        reservation_floor=float(site.reservation_floor_bytes),
        packet_bytes=float(links.packet_bytes),
    )
    return lambda constants, state, turn: play(constants, state, turn, rule)


@compiled
def _seen(rule, turn, n, k, field):
    """A number of an SN's state as the EN knows it: an idle SN while nothing was heard (R14)."""
    if math.isnan(turn.status_source[n, k]):
        return rule.sn_idle[turn.reached[n, k], field]
    return turn.status[n, k, field]


@compiled
def _upload_ms(rule, turn, n, k):
    rate, task = turn.up_link[n, k, 0] * BYTES_PER_MS, turn.dispatch[n]
    hops, delay = rule.hops[task.en, k], rule.hop_delay_ms[task.en, k]
    way = _transfer_ms(task.input_bytes, rate, hops, delay, rule.packet_bytes)
    return turn.up_backlog[n, k] + way


@compiled
def _estimate(rule, turn, n):
    task = turn.dispatch[n]
    most = turn.reached.shape[1]
    elapsed = task.time_ms - task.generated_ms
    needed = max(task.input_bytes, rule.reservation_floor)
    action, best = most + 1, np.inf
    local = elapsed + task.local_wait_ms + task.cycles / rule.en_rate[task.en]
    if task.local_room and local <= task.deadline_ms:
        action, best = 0, local
    for k in range(most):
        sn = turn.reached[n, k]
        if sn < 0:
            continue
        wait = 0.0
        if not _seen(rule, turn, n, k, IDLE) > 0:
            wait = _seen(rule, turn, n, k, WORK) / rule.sn_full_rate[sn]
        delay = elapsed + _upload_ms(rule, turn, n, k) + wait
        delay = delay + task.cycles / rule.sn_rate[sn] + rule.result_ms[task.en, k]
        room = _seen(rule, turn, n, k, STORAGE) >= needed
        if room and delay <= task.deadline_ms and delay < best:
            action, best = 1 + k, delay
    return action


@compiled
def _strict(rule, turn, n):
    task = turn.dispatch[n]
    most = turn.reached.shape[1]
    elapsed = task.time_ms - task.generated_ms
    local = (task.en_state[WORK] + task.cycles) / rule.en_rate[task.en]
    if task.local_room and elapsed + local <= task.deadline_ms:
        return 0
    best = -1
    for k in range(most):
        if turn.reached[n, k] >= 0 and (
            best < 0 or _seen(rule, turn, n, k, WORK) < _seen(rule, turn, n, best, WORK)
        ):
            best = k
    if best < 0:
        return most + 1
    rate = rule.sn_rate[turn.reached[n, best]]
    served = (_seen(rule, turn, n, best, WORK) + task.cycles) / rate
    way = _upload_ms(rule, turn, n, best) + rule.result_ms[task.en, best]
    room = _seen(rule, turn, n, best, STORAGE) >= max(task.input_bytes, rule.reservation_floor)
    if room and elapsed + way + served <= task.deadline_ms:
        return 1 + best
    return most + 1


def _entry_point(fingerprint: str) -> Any:
    @entry_point
    def play(constants, state, turn, rule):
        """Run every world on, and answer all ENs by the rule, until only SNs are asked.

        Returns early if a world has no room left (counts[STALLED]); the next call goes on.
        """
        _ = fingerprint  # part of the cache key
        while True:
            _advance(constants, state, turn)
            if turn.counts[STALLED] > 0 or turn.counts[ERROR] != 0 or turn.counts[EN_ROWS] == 0:
                return
            for n in range(turn.counts[EN_ROWS]):
                if rule.strict == 1:
                    turn.action[n] = _strict(rule, turn, n)
                else:
                    turn.action[n] = _estimate(rule, turn, n)
            turn.counts[HOLDING] = SN_TURN  # SNs that have been asked wait for their answer

    return play


def _fingerprint() -> str:
    """Of everything that is compiled in; Numba looks at this file itself."""
    return fingerprint_of(*(Path(str(room.__file__)).parent for room in (kernel, node_room)))


play = _entry_point(_fingerprint())
