"""What both kinds of nodes have: a station, somebody who does the work, links to the others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from cosmo.live.clock import FINISH, Clock, Timer, Worker
from cosmo.live.link import Link
from cosmo.live.station import Station
from cosmo.live.tasks import Fate, Item
from cosmo.node import Nodes, Site


class Core(ABC):
    """The part of a node that runs tasks. All calls come from one thread; none of them blocks."""

    def __init__(
        self,
        site: Site,
        index: int,
        nodes: Nodes,
        clock: Clock,
        worker: Worker,
        links: Sequence[Link],
        latency_weight: float,
    ) -> None:
        """The node is the one with this index among `nodes`, which are all of its kind."""
        self.site, self.index, self.links = site, index, links
        self._clock, self._worker = clock, worker
        floor = site.reservation_floor_bytes
        self.station = Station(nodes, index, floor, latency_weight, self._begin)
        self._work: dict[int, Timer] = {}  # by slot
        self.on_end: Callable[[Item, Fate], None] | None = None

    def _begin(self, slot: int, item: Item, finish_ms: float) -> None:
        item.started_ms = self._clock.now()
        finished = partial(self._finish, slot, item)
        failed = partial(self._fail, slot, item)
        try:
            self._work[slot] = self._worker.run(item, finish_ms, finished, failed)
        except Exception as error:  # work that cannot begin has failed, and leaves its slot
            why = f"the work cannot begin ({type(error).__name__}: {error})"[:200]
            self._work[slot] = self._clock.at(item.started_ms, FINISH, partial(failed, why))

    @abstractmethod
    def _finish(self, slot: int, item: Item, output: bytes) -> None:
        """The work on a task is done."""

    @abstractmethod
    def _fail(self, slot: int, item: Item, reason: str) -> None:
        """The work on a task has failed."""

    def _complete(self, slot: int) -> float:
        """Let the queue move on; the time."""
        now = self._clock.now()
        self.station.complete(slot, self.station.finish_ms(slot) if self._worker.exact else now)
        return now

    def change_speed(self, factor: float) -> None:
        """The node runs at another factor of its nominal speed from now on (R37)."""
        for slot, finish_ms in self.station.change_speed(factor, self._clock.now()):
            self._work[slot] = self._worker.move(self._work[slot], finish_ms)

    def _take_out(self, item: Item, now: float) -> None:
        """Have a task leave the station, and end the work on it if that had begun."""
        before = dict(self._work)  # the slot may have gone to the next task by then
        slot = self.station.drop(item, now)
        if slot is not None:
            before[slot].cancel()
