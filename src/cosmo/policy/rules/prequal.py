"""`prequal`: probes of requests in flight and latency, and the hot–cold rule of that load balancer.

Nodes report how many requests they hold and their recent latency. A node is *hot* if it holds more
requests than the given quantile of what was seen recently. Among cold nodes the one with the lowest
latency is taken; if all are hot, the one with the fewest requests. A probe is used several times
before the next one comes: each use adds a request to what it said. One that is too old or used up
no longer counts, nor does an SN that no probe has come from yet. The EN itself is one more replica,
which it knows without probing. Nothing is rejected.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import LATENCY, REQUESTS, Dispatcher, Method, Site, Updater
from cosmo.policy.parameters import Positive, PositiveInt, Share
from cosmo.policy.rules.periodic import Clock, send_always
from cosmo.policy.rules.run import EnRule, RuleDispatcher, RuleUpdater, SnRule
from cosmo.policy.rules.site import comes_first, reached, tie_draws

Floats = NDArray[np.float64]

PROBED_REQUESTS, PROBED_LATENCY, PROBE = 0, 1, 2  # what a probe carries
REMEMBERED = 64  # decisions whose requests make up the quantile
MOST_COUNTED = 4096  # requests; more are counted as so many


class State(NamedTuple):
    """Parameters, and what ENs remember of probes. Nodes are the EN, then the SNs it reaches."""

    quantile: float
    oldest_ms: float
    most_uses: float
    probe_ms: Floats  # [world, EN, k] which probe was held, by its time
    uses: Floats  # [world, EN, k] and how often it was used
    latest: NDArray[np.int64]  # [world, EN, decision, node] requests that were seen; -1: none yet
    often: NDArray[np.int64]  # [world, EN, requests] how often these were
    decisions: NDArray[np.int64]  # [world, EN]
    draws: Floats  # [world, EN, task, k], for ties


def uses_of(seen: Any, state: Any, row: Any, column: Any) -> Any:
    """How often the probe that is held has been used."""
    task = seen.dispatch[row]
    if state.probe_ms[task.world, task.en, column] == seen.status_ms[row, column]:
        return state.uses[task.world, task.en, column]
    return 0.0  # so it is while none is held: NaN equals nothing


def limit_of(seen: Any, state: Any, row: Any) -> Any:
    """The most requests of a node that is not hot: the quantile of what was seen recently."""
    task = seen.dispatch[row]
    known = min(state.decisions[task.world, task.en], REMEMBERED) * (1 + reached(seen, row))
    rank = max(math.ceil(state.quantile * known) - 1, 0)
    fewer = 0
    for requests in range(state.often.shape[2]):
        fewer += state.often[task.world, task.en, requests]
        if fewer > rank:
            return requests
    return state.often.shape[2]


def choose(seen: Any, state: Any, row: Any) -> Any:
    """The node with the lowest latency of those that are not hot, else the one with the fewest
    requests; of several SNs that are equal, one at random.
    """
    task, limit = seen.dispatch[row], limit_of(seen, state, row)
    hot, fewest = 0, task.en_state[REQUESTS]
    cold, least = -1, np.inf
    if fewest <= limit:
        cold, least = 0, task.en_state[LATENCY]
    for column in range(reached(seen, row)):
        # Not if there is none: NaN is less than nothing.
        if not task.time_ms - seen.status_ms[row, column] <= state.oldest_ms:
            continue
        uses = uses_of(seen, state, row, column)
        if uses >= state.most_uses:
            continue
        requests = seen.status[row, column, PROBED_REQUESTS] + uses
        if comes_first(seen, state, row, column, requests, hot, fewest):
            hot, fewest = column + 1, requests
        latency = seen.status[row, column, PROBED_LATENCY]
        is_cold = requests <= limit
        if is_cold and comes_first(seen, state, row, column, latency, cold, least):
            cold, least = column + 1, latency
    return hot if cold < 0 else cold


def remember(state: Any, world: Any, en: Any, node: Any, requests: Any) -> None:
    """Requests, which are whole numbers, in the place of what was seen so many decisions ago."""
    place, last = state.decisions[world, en] % REMEMBERED, state.often.shape[2] - 1
    before, now = state.latest[world, en, place, node], min(int(requests), last)
    if before >= 0:
        state.often[world, en, before] -= 1
    state.often[world, en, now] += 1
    state.latest[world, en, place, node] = now


def decide(seen: Any, state: Any, row: Any) -> Any:
    """The choice; probes wear off with use, and what was seen shapes the quantile."""
    task = seen.dispatch[row]
    world, en = task.world, task.en
    remember(state, world, en, 0, task.en_state[REQUESTS])
    for column in range(reached(seen, row)):
        uses = uses_of(seen, state, row, column)
        remember(state, world, en, column + 1, seen.status[row, column, PROBED_REQUESTS] + uses)
        state.uses[world, en, column] = uses
        state.probe_ms[world, en, column] = seen.status_ms[row, column]
    state.decisions[world, en] += 1
    action = choose(seen, state, row)
    if action > 0:
        state.uses[world, en, action - 1] += 1.0
    return action


def probe(world: Any, sn: Any, own: Any, state: Any, numbers: Any) -> None:
    """What load balancers ask for: requests in the node and its recent latency in ms."""
    numbers[PROBED_REQUESTS] = own[REQUESTS]
    numbers[PROBED_LATENCY] = own[LATENCY]


def dispatcher(site: Site, quantile: float, oldest_ms: float, most_uses: int) -> Dispatcher:
    """The rule at the ENs of a site."""
    cells, sns = (site.worlds, len(site.en)), site.links.reach.shape[1]
    held = max(site.en.queue_capacity.max(), site.sn.queue_capacity.max())
    most = min(int(held) + int(most_uses) + 2, MOST_COUNTED)
    state = State(
        quantile=float(quantile),
        oldest_ms=float(oldest_ms),
        most_uses=float(most_uses),
        probe_ms=np.full((*cells, sns), -np.inf),
        uses=np.zeros((*cells, sns)),
        latest=np.full((*cells, REMEMBERED, 1 + sns), -1),
        often=np.zeros((*cells, most), np.int64),
        decisions=np.zeros(cells, np.int64),
        draws=tie_draws(site),
    )
    return RuleDispatcher(site, EnRule(decide, choose), state)


class Prequal(Method):
    """Probes load and latency; takes the lowest latency among nodes that are not overloaded."""

    reference = "Wydrowski et al., Load is not what you should balance, NSDI 2024"
    carries = PROBE

    def __init__(
        self,
        quantile: Share = 0.84,
        probes_per_task: Positive = 1.0,
        oldest_ms: Positive = 1000.0,
        most_uses: PositiveInt = 8,
    ) -> None:
        self.quantile, self.probes_per_task = quantile, probes_per_task
        self.oldest_ms, self.most_uses = oldest_ms, most_uses

    def updater(self, site: Site) -> Updater:
        """Probes at a rate in proportion to the tasks."""
        state = Clock(1000.0 / (self.probes_per_task * site.tasks.rate))
        return RuleUpdater(SnRule(send_always, probe), state, PROBE)

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the rule that takes the lowest latency among SNs that are not overloaded."""
        return dispatcher(site, self.quantile, self.oldest_ms, self.most_uses)
