"""`prequal`, compiled: `policy.dispatchers.prequal`. Nodes are the EN, then the SNs it reaches."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import LATENCY, NOBODY, REQUESTS, Dispatcher
from cosmo.policy.dispatchers import PrequalDispatcher
from cosmo.policy.dispatchers.prequal import PROBED_LATENCY, PROBED_REQUESTS, REMEMBERED
from cosmo.world.compiled import compiled

Floats = NDArray[np.float64]


class Probes(NamedTuple):
    """Parameters, and what ENs remember of probes."""

    quantile: float
    oldest_ms: float
    most_uses: float
    probe_ms: Floats  # [world, EN, k]
    uses: Floats
    seen: Floats  # [world, EN, decision, node]
    decisions: NDArray[np.int64]  # [world, EN]


def probes_of(dispatcher: Dispatcher) -> Probes:
    """Of a dispatcher, as it begins; empty if it goes by something else."""
    if not isinstance(dispatcher, PrequalDispatcher):
        cells, none = np.zeros((0, 0, 0)), np.zeros((0, 0), np.int64)
        return Probes(0.0, 0.0, 0.0, cells, cells, np.zeros((0, 0, 0, 0)), none)
    return Probes(
        quantile=float(dispatcher.quantile),
        oldest_ms=float(dispatcher.oldest_ms),
        most_uses=float(dispatcher.most_uses),
        probe_ms=dispatcher.probe_ms,
        uses=dispatcher.uses,
        seen=dispatcher.seen,
        decisions=dispatcher.decisions,
    )


@compiled
def _made_ms(turn, row, column, fresh):
    """When the probe that is held was made; -inf while there is none."""
    if fresh:
        return turn.dispatch[row].time_ms
    source = turn.status_source[row, column]
    return source if source == source else -np.inf


@compiled
def _uses(probes, turn, row, column, fresh):
    """`PrequalDispatcher._uses_of`."""
    task = turn.dispatch[row]
    held = probes.probe_ms[task.world, task.en, column] == _made_ms(turn, row, column, fresh)
    return probes.uses[task.world, task.en, column] if held else 0.0


@compiled
def _requests(probes, turn, row, node, fresh):
    """`PrequalDispatcher._requests`."""
    if node == 0:
        return turn.dispatch[row].en_state[REQUESTS]
    column = node - 1
    if turn.reached[row, column] == NOBODY:
        return np.inf
    uses = _uses(probes, turn, row, column, fresh)
    if fresh:
        return turn.true_state[row, column, REQUESTS] + uses
    return turn.status[row, column, PROBED_REQUESTS] + uses


@compiled
def _latency(turn, row, node, fresh):
    if node == 0:
        return turn.dispatch[row].en_state[LATENCY]
    if fresh:
        return turn.true_state[row, node - 1, LATENCY]
    return turn.status[row, node - 1, PROBED_LATENCY]


@compiled
def _usable(probes, turn, row, node, fresh):
    if node == 0:
        return True
    if turn.reached[row, node - 1] == NOBODY:
        return False
    age = turn.dispatch[row].time_ms - _made_ms(turn, row, node - 1, fresh)  # inf: none is held
    uses = _uses(probes, turn, row, node - 1, fresh)
    return age < np.inf and age <= probes.oldest_ms and uses < probes.most_uses


@compiled
def _cold(seen, rank, requests):
    """Whether the rank-th of all that was seen is not less than these: without sorting."""
    less = 0
    for decision in range(seen.shape[0]):
        for node in range(seen.shape[1]):
            less += 1 if seen[decision, node] < requests else 0
    return less <= rank


@compiled
def best_probed(probes, turn, row, fresh):
    """`PrequalDispatcher._choose`."""
    task, nodes = turn.dispatch[row], 1
    for column in range(turn.reached.shape[1]):
        nodes += 1 if turn.reached[row, column] != NOBODY else 0
    known = min(probes.decisions[task.world, task.en], REMEMBERED) * nodes
    rank = max(math.ceil(probes.quantile * known) - 1, 0)
    cold, latency, hot, fewest = -1, np.inf, 0, np.inf
    for node in range(1 + turn.reached.shape[1]):
        if not _usable(probes, turn, row, node, fresh):
            continue
        requests = _requests(probes, turn, row, node, fresh)
        if requests < fewest:
            hot, fewest = node, requests
        told = _latency(turn, row, node, fresh)
        if told < latency and _cold(probes.seen[task.world, task.en], rank, requests):
            cold, latency = node, told
    return hot if cold < 0 else cold


@compiled
def note_requests(probes, turn, row):
    """`PrequalDispatcher.decide`, before the choice: what is seen shapes the quantile."""
    task = turn.dispatch[row]
    decision = probes.decisions[task.world, task.en] % REMEMBERED
    for node in range(1 + turn.reached.shape[1]):
        requests = _requests(probes, turn, row, node, False)
        probes.seen[task.world, task.en, decision, node] = requests
    probes.decisions[task.world, task.en] += 1


@compiled
def count_use(probes, turn, row, action):
    """The same after the choice: probes wear off with use."""
    task = turn.dispatch[row]
    for column in range(turn.reached.shape[1]):
        used = 1.0 if action == column + 1 else 0.0
        uses = _uses(probes, turn, row, column, False) + used
        probes.uses[task.world, task.en, column] = uses
        probes.probe_ms[task.world, task.en, column] = _made_ms(turn, row, column, False)
