"""`prequal`: probes of requests in flight and latency, and the hot–cold rule of that load balancer.

Nodes report how many requests they hold and their recent latency. A node is *hot* if it holds more
requests than the given quantile of what was seen lately. Among cold nodes the one with the lowest
latency is taken; if all are hot, the one with the fewest requests. A probe is used several times
before the next one comes: each use adds a request to what it said. One that is too old or used up
no longer counts, nor does an SN that no probe has come from yet. The EN itself is one more replica,
which it knows without probing. Nothing is rejected.
"""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import LATENCY, REQUESTS, Dispatcher, DispatchObservation, Site

PROBED_REQUESTS, PROBED_LATENCY, PROBE = 0, 1, 2  # what a probe carries
REMEMBERED = 64  # decisions whose requests make up the quantile


class PrequalDispatcher(Dispatcher):
    """Hot–cold lexicographic choice between the EN and the SNs."""

    def __init__(self, site: Site, quantile: float, oldest_ms: float, most_uses: int) -> None:
        self.quantile, self.oldest_ms, self.most_uses = quantile, oldest_ms, most_uses
        cells, sns = (site.worlds, len(site.en)), site.links.reach.shape[1]
        self.probe_ms = np.full((*cells, sns), -np.inf)
        self.uses = np.zeros((*cells, sns))
        self.seen = np.full((*cells, REMEMBERED, 1 + sns), np.inf)
        self.decisions = np.zeros(cells, np.int64)

    def would_decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The choice, without counting it as a use."""
        uses = self._uses_of(tasks)
        return self._choose(tasks, uses, self._requests(tasks, uses))

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The choice; probes wear off with use, and what was seen shapes the quantile."""
        place = tasks.world, tasks.en
        uses = self._uses_of(tasks)
        requests = self._requests(tasks, uses)
        self.seen[(*place, self.decisions[place] % REMEMBERED)] = requests
        self.decisions[place] += 1
        actions = self._choose(tasks, uses, requests)
        self.probe_ms[place] = _probe_ms(tasks)
        self.uses[place] = uses + (actions[:, None] == np.arange(1, 1 + tasks.sns))
        return actions

    def _uses_of(self, tasks: DispatchObservation) -> NDArray[np.float64]:
        """[row, SN] how often the probe that is held has been used."""
        place = tasks.world, tasks.en
        return np.where(self.probe_ms[place] == _probe_ms(tasks), self.uses[place], 0.0)

    def _requests(
        self, tasks: DispatchObservation, uses: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        local = tasks.en_state[:, REQUESTS, None]
        probed = np.where(tasks.reached, tasks.status[:, :, PROBED_REQUESTS] + uses, np.inf)
        return np.concatenate([local, probed], axis=1)

    def _choose(
        self,
        tasks: DispatchObservation,
        uses: NDArray[np.float64],
        requests: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        place = tasks.world, tasks.en
        seen = np.sort(self.seen[place].reshape(len(tasks), -1), axis=1)
        nodes = 1 + tasks.reached.sum(axis=1)
        known = np.minimum(self.decisions[place], REMEMBERED) * nodes
        rank = np.maximum(np.ceil(self.quantile * known).astype(np.int64) - 1, 0)
        limit = seen[np.arange(len(tasks)), rank]
        fresh = tasks.heard & (tasks.age_ms <= self.oldest_ms) & (uses < self.most_uses)
        usable = np.concatenate([np.ones((len(tasks), 1), np.bool_), fresh], axis=1)
        latency = np.concatenate(
            [tasks.en_state[:, LATENCY, None], tasks.status[:, :, PROBED_LATENCY]], axis=1
        )
        cold = usable & (requests <= limit[:, None])
        by_latency = np.where(cold, latency, np.inf).argmin(axis=1)
        by_requests = np.where(usable, requests, np.inf).argmin(axis=1)
        return np.asarray(np.where(cold.any(axis=1), by_latency, by_requests))


def _probe_ms(tasks: DispatchObservation) -> NDArray[np.float64]:
    """[row, SN] which probe is held, by its time; -inf while there is none."""
    return np.where(tasks.heard, tasks.status_ms, -np.inf)
