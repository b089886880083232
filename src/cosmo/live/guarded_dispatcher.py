"""A dispatcher runner with a fallback, for methods that raise, return invalid answers or are slow.

The fallback decides for a while, one second after the first fault and twice as long after each
further one, up to a minute; then the method is tried again. A slow answer is one that takes longer
than the limit of processor time, or of real time three times in a row: on a busy machine a single
late answer is not counted. The fallback has a backlog estimate of its own, so both start without
memory at each change; the EN counts tasks in flight as work that this estimate lacks.
"""

import time
from collections.abc import Callable

import numpy as np

from cosmo.errors import InputError
from cosmo.live.dispatcher_runner import DispatcherRunner, Observed, checked_action
from cosmo.live.samples import Window
from cosmo.node import Method, Site
from cosmo.node.guard import made_dispatcher

_FIRST_S, _LONGEST_S = 1.0, 60.0
_GOOD_ANSWERS = 50  # in a row, after which earlier faults are forgotten
_LATE_IN_A_ROW = 3
NO_METHOD = "none"  # decides: the fallback has failed, too, and the task is rejected

Report = Callable[[str, str], None]  # the method that decides now, or NO_METHOD, and why


class GuardedDispatcherRunner(DispatcherRunner):
    """Asks the method, or the fallback after a fault; never raises."""

    def __init__(
        self,
        method: Method,
        fallback: Method,
        site: Site,
        index: int,
        slow_ms: float = 5.0,
        names: tuple[str, str] = ("", ""),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(method, site, index)
        self._main, self._fallback, self._slow_s = method, fallback, slow_ms / 1000.0
        self._names = names if all(names) else (type(method).__name__, type(fallback).__name__)
        self._clock = clock
        self._faults = self._good = self._late = 0
        self._retry_s = 0.0
        self._on_fallback = False
        self.faults = 0
        self.decision_ms = Window(4096)
        self.report: Report = lambda who, why: None
        self.changed: Callable[[], None] = self.start_over  # the EN does more than that

    @property
    def name(self) -> str:
        """The name of the method that decides at the moment."""
        return self._names[self._on_fallback]

    @property
    def on_fallback(self) -> bool:
        """Whether the fallback decides at the moment."""
        return self._on_fallback

    def deliver_feedback(self) -> None:
        """Hand all noted fates to the dispatcher; a fault counts like one of a decision."""
        try:
            super().deliver_feedback()
        except InputError as error:
            self._fault(str(error))

    def choose(self, seen: Observed) -> int:
        """Return the action on one task, of the method or of the fallback."""
        if self._on_fallback and self._clock() >= self._retry_s:
            self._switch(False, "tried again")
        self.deliver_feedback()
        if self._on_fallback:
            return self._ask(seen)
        began, worked = time.perf_counter(), time.thread_time()
        try:
            action = self._ask(seen)
        except InputError as error:
            self._fault(str(error))
            return self._ask(seen)
        took = time.perf_counter() - began
        # Processor time is at most real time, so it is only needed for slow answers.
        worked = time.thread_time() - worked if took > self._slow_s else 0.0
        self.decision_ms.add(took * 1000.0)
        self._late = self._late + 1 if took > self._slow_s else 0
        if worked > self._slow_s or self._late >= _LATE_IN_A_ROW:
            self._fault(f"took {1000 * max(took, worked):.1f} ms, limit {1000 * self._slow_s:g}")
        else:
            self._good += 1
            self.remarks.decided(self._dispatcher.remark)
            if self._good >= _GOOD_ANSWERS:
                self._faults = 0
        return action

    def _ask(self, seen: Observed) -> int:
        if not self._on_fallback:
            return checked_action(self._main, self._dispatcher, seen)
        try:
            with np.errstate(all="ignore"):
                return checked_action(self._fallback, self._dispatcher, seen)
        except InputError as error:  # there is no third method: reject the task
            self.report(NO_METHOD, str(error))
            return seen.reject

    def _fault(self, why: str) -> None:
        if self._on_fallback:
            self.report(self.name, why)
            return
        self.faults += 1
        self._faults += 1
        self._retry_s = self._clock() + min(_FIRST_S * 2.0 ** (self._faults - 1), _LONGEST_S)
        self._switch(True, why)

    def _switch(self, to_fallback: bool, why: str) -> None:
        self._on_fallback, self._good, self._late = to_fallback, 0, 0
        self.changed()
        self.report(self.name, why)

    def start_over(self) -> None:
        """Make a new dispatcher, without memory, of the method that decides now."""
        self._fates = []
        if not self._on_fallback:
            try:
                self.method = self._main
                self._dispatcher = made_dispatcher(self._main, self.site)
                return
            except InputError as error:
                self._fault(str(error))
                return
        self.method = self._fallback
        self._dispatcher = made_dispatcher(self._fallback, self.site)
