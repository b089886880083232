"""An EN that takes HTTP requests beside tasks: one method decides on both."""

from typing import Any

from cosmo.live.core_en import FAR_MS, EnCore
from cosmo.live.picker.core_picker import PickerCore
from cosmo.live.sight import Sight
from cosmo.live.tasks import Fate, Item
from cosmo.node import REFUSED


class HttpEnCore(PickerCore):
    """Treats requests as a picker does, with peers as its endpoints, and tasks as any EN does.

    A request cannot run at the EN. An SN without an HTTP service is a vacant place for requests;
    one without a daemon is silent for tasks.
    """

    # Its peers are SNs, whose silence matters, and not a picker's agents.
    status, silence, restarted = EnCore.status, EnCore.silence, EnCore.restarted

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._remote = False  # what is decided on is a request
        self.daemons: frozenset[int] = frozenset()  # SNs that would be heard of

    def arrive(self, item: Item) -> None:
        """A task, or a request, has reached the EN."""
        self._remote = item.remote
        super().arrive(item)

    def sight(self, item: Item, now: float) -> Sight:
        """What the EN sees; for a request there is no room at the EN itself."""
        seen = super().sight(item, now)
        if not item.remote:
            return seen
        return seen._replace(task=seen.task._replace(local_room=False, local_wait_ms=FAR_MS))

    def is_open(self, column: int) -> bool:
        """Whether the request that is decided on may go there."""
        heard = column not in self.daemons or not self.caches[column].silent
        return heard and super().is_open(column)

    def _is_silent(self, sn: int) -> bool:
        return False if self._remote else super()._is_silent(sn)

    def _backlog_ms(self, sn: int, now: float) -> float:
        if self._remote and not self.is_open(sn):
            return FAR_MS
        return EnCore._backlog_ms(self, sn, now)

    def _obeyed(self, item: Item, action: int, now: float) -> int:
        return super()._obeyed(item, action, now) if item.remote else action

    def try_another(self, item: Item) -> bool:
        """The SN of a request cannot be connected to: take the least busy other one, if any.

        The method hears that its choice was refused, and no more of the request.
        """
        before = item.action - 1
        found = self.least_busy(1, but=before)
        if not found or item.ended:
            return False
        self._tell(item, REFUSED, False, self._clock.now())
        item.expired = True
        self.open[before] -= 1
        self.open[found[0]] += 1
        item.action = found[0] + 1
        return True

    def begun(self, item: Item) -> None:
        """The answer to a request has begun to come: it is passed on however long it takes."""
        if item.expiry is not None:
            item.expiry.cancel()

    def _expire(self, item: Item) -> None:
        if not item.remote:
            super()._expire(item)
            return
        self._answer(item, Fate.EXPIRED, b"")
        self._give_up(item)
