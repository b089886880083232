"""The node that is Envoy plus a picker: an EN that runs nothing itself, whose SNs are endpoints."""

import math
import random
from collections.abc import Sequence
from heapq import nsmallest
from typing import Any

import numpy as np

from cosmo.live.core_en import FAR_MS, Cache, EnCore
from cosmo.live.link import Link
from cosmo.live.picker.endpoints import Place
from cosmo.live.tasks import Fate, Item
from cosmo.node import GIVEN_UP, Site

_ERRORS = 5  # answers in a row that say that an endpoint is broken, before it is left alone
_FEW = 50  # endpoints, up to which sorting all of them is faster than looking for the first
_FIRST_MS, _LONGEST_MS = 200.0, 5000.0  # that it is left alone


class PickerCore(EnCore):
    """Asks the method, and sees to it that a request goes where one can go."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.places: list[Place] = []
        self.shed = False
        self.open: list[int] = []  # [column] requests that have been sent there and not ended
        self._faults: list[int] = []  # [column] answers in a row that were errors
        self._away_until: dict[int, float] = {}  # columns that are left alone, until when
        self._allowed: frozenset[int] | None = None  # columns that the proxy allows; None: all
        self._shut: frozenset[int] = frozenset()  # columns that nothing is sent to at the moment
        self._vacant: set[int] = set()
        self._of_agents: set[int] = set()  # columns whose status came from an agent
        self._random = random.Random(self.site.draws[0].run)
        self.redirected = 0

    def settle(self, places: Sequence[Place]) -> None:
        """Who has which column; those that stay keep what is known of them."""
        if len(self.open) < len(places):
            more = len(places) - len(self.open)
            self.open += [0] * more
            self._faults += [0] * more
        for column, place in enumerate(places):
            known = self.places[column].endpoint if column < len(self.places) else None
            if known != place.endpoint:
                self._faults[column] = 0
                self._away_until.pop(column, None)
                self.forget(column)
        self.places = list(places)
        self._shut_again()

    def resize(self, site: Site, links: Sequence[Link], same: bool) -> None:
        """The site has other columns: further ones at its end (`same`), or all others."""
        self.site = site
        kept = len(self.links) if same else 0
        self.links = [*self.links[:kept], *links[kept:]]
        numbers = len(self.caches[0].numbers)
        self.caches = self.caches[:kept]
        self.caches += [Cache(np.zeros(numbers)) for _ in range(len(links) - kept)]
        if not same:
            for item in list(self._away.values()):  # nobody can say any more whose they are
                self.cancel(item)
            self.places, self.open, self._faults = [], [], []
            self._away_until.clear()
        self._look_around()
        if not self.runner.resize(site, same):
            self.start_over()

    def _shut_again(self) -> None:
        self._vacant = {k for k, place in enumerate(self.places) if not place.present}
        self._shut = frozenset(self._vacant | self._away_until.keys())

    def expect(self, carries: int) -> None:
        """Statuses have so many numbers from now on; none has come before."""
        for cache in self.caches:
            cache.numbers = np.zeros(carries)
        self._look_around()

    # Requests.

    def pick(self, item: Item, allowed: frozenset[int] | None) -> None:
        """Decide on a request; the transport hears of it before this returns."""
        if self._away_until:
            self._let_back()
        self._allowed = allowed
        self.arrive(item)

    def is_reachable(self, column: int) -> bool:
        """Whether requests may go there at all."""
        return column not in self._shut

    def is_open(self, column: int) -> bool:
        """Whether the request that is decided on may go there."""
        return column not in self._shut and (self._allowed is None or column in self._allowed)

    def _backlog_ms(self, sn: int, now: float) -> float:
        if (self._shut or self._allowed is not None) and not self.is_open(sn):
            return FAR_MS
        return max(0.0, self.caches[sn].unknown_work_ms - now)  # links of a picker hold nothing

    def _obeyed(self, item: Item, action: int, now: float) -> int:
        """The method's choice; the least busy endpoint if that is none that the request can go to.

        The method then hears that its own choice came to nothing, and no more of the request.
        """
        if 0 < action <= self.sns and self.is_open(action - 1):
            return action
        reject = self.sns + 1
        if action == reject and self.shed and self.least_busy(1):
            return action
        item.action = action
        self._tell(item, GIVEN_UP, False, now)
        item.expired = True
        found = self.least_busy(1)
        self.redirected += bool(found)
        return found[0] + 1 if found else reject

    def least_busy(self, count: int, but: int = -1) -> list[int]:
        """Up to so many open columns with the fewest requests for each slot; ties at random."""
        found = [k for k in range(self.sns) if k != but and self.is_open(k)]
        if not found and but < 0:  # if all have failed, none is worse than the others
            allowed = self._allowed
            found = [
                k
                for k in range(self.sns)
                if k not in self._vacant and (allowed is None or k in allowed)
            ]
        if not found or count < 1:
            return []
        busy, places, draw = self.open, self.places, self._random.random
        keys = [((busy[k] + 1) / places[k].endpoint.node.slots, draw(), k) for k in found]
        chosen = nsmallest(count, keys) if len(keys) > _FEW else sorted(keys)[:count]
        return [k for _, _, k in chosen]

    def _send(self, item: Item, sn: int, now: float) -> None:
        self.open[sn] += 1
        item.counted = True
        super()._send(item, sn, now)

    def _end(self, item: Item, fate: Fate, output: bytes) -> None:
        if item.counted:
            item.counted = False
            self.open[item.action - 1] -= 1
        super()._end(item, fate, output)

    # What is heard of endpoints. An endpoint that is only heard of no more is still sent requests.

    def status(self, sn: int, sequence: int, source_ms: float, numbers: Sequence[float]) -> None:
        """A status of an agent has come; it is acknowledged even if a later one is known."""
        cache = self.caches[sn]
        if sequence > cache.sequence:
            cache.sequence = sequence
            self.heard(sn, source_ms, numbers, agent=True)
            self._transport.acknowledge(sn, sequence, self._clock.now())

    def heard(
        self, sn: int, source_ms: float, numbers: Sequence[float], agent: bool = False
    ) -> None:
        """A status that was made then, of an agent or not; the cache takes it if it is newer."""
        cache = self.caches[sn]
        if not source_ms <= cache.source_ms:
            cache.source_ms, cache.numbers = source_ms, np.array(numbers, np.float64)
            (self._of_agents.add if agent else self._of_agents.discard)(sn)

    def forget(self, sn: int) -> None:
        """The method knows of this endpoint what it knew before the first status."""
        cache = self.caches[sn]
        cache.source_ms, cache.numbers = math.nan, np.zeros_like(cache.numbers)

    def unheard(self, sn: int, agent: bool) -> None:
        """Its agent, or its page, says nothing more: a status that came from there is worthless."""
        if (sn in self._of_agents) == agent:
            self.forget(sn)

    def silence(self, sn: int, silent: bool) -> None:
        """An agent is heard of no more, or is again."""
        if silent:
            self.unheard(sn, True)

    def restarted(self, sn: int, work_cycles: float) -> None:
        """An agent is new; the service beside it need not be, and requests go on."""
        self.caches[sn].sequence = -1

    # What is seen of endpoints.

    def worked(self, sn: int) -> None:
        """It has given an answer that was no error."""
        if self._faults[sn]:
            self._faults[sn] = 0
            if self._away_until.pop(sn, None) is not None:
                self._shut_again()

    def broke(self, sn: int, unreachable: bool) -> None:
        """It has given an error, or could not be reached: it is left alone for a while, each time
        twice as long.
        """
        self._faults[sn] += _ERRORS if unreachable else 1
        if self._faults[sn] >= _ERRORS and sn not in self._away_until:
            times = min(self._faults[sn] // _ERRORS - 1, 10)
            pause_ms = min(_FIRST_MS * 2.0**times, _LONGEST_MS)
            self._away_until[sn] = self._clock.now() + pause_ms
            self._shut_again()

    def _let_back(self) -> None:
        now = self._clock.now()
        back = [sn for sn, until in self._away_until.items() if until <= now]
        for sn in back:
            del self._away_until[sn]
        if back:
            self._shut_again()
