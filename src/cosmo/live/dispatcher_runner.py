"""Runs a method's dispatcher at an EN: feedback on earlier tasks first (R29), then a decision."""

import re
from collections.abc import Callable
from types import MethodType

import numpy as np

from cosmo.live.sight import Sight
from cosmo.node import Dispatcher, DispatchObservation, Feedback, Method, Site
from cosmo.node.guard import ask, checked_actions, made_dispatcher
from cosmo.policy.rules.run import Fact, RuleDispatcher

Observed = Sight | DispatchObservation  # one task
KnownFate = tuple[int, int, int, bool, float]  # task, action, fate, in time, time in ms
LOOK_EVERY = 256  # decisions, after which a method is asked
_MOST = 32  # lines that a method may say in the life of a node


class Remarks:
    """What the method of one node says of what it meets (`Dispatcher.remark`), passed on to people
    once.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = lambda line: None
        self._told: set[str] = set()
        self._decisions = 0

    def decided(self, remark: Callable[[], str]) -> None:
        """A decision was taken; now and then `remark` is asked. Never raises."""
        self._decisions += 1
        if self._decisions % LOOK_EVERY or len(self._told) >= _MOST:
            return
        try:
            line = str(remark())
        except Exception as error:  # a method of others; a warning must not stop a node
            line = f"its remark failed: {error}"
        about = re.sub(r"[0-9.]+", "", line)  # numbers in a line change, what it is about does not
        if line and about not in self._told:
            self._told.add(about)
            self.tell(line)


class DispatcherRunner:
    """Asks the dispatcher of one method; its mistakes become InputErrors that name the method."""

    def __init__(self, method: Method, site: Site, index: int) -> None:
        self.method, self.site, self.index = method, site, index
        self._dispatcher = made_dispatcher(method, site)
        self._fates: list[KnownFate] = []
        self.remarks = Remarks()

    @property
    def name(self) -> str:
        """The name of the method that decides at the moment."""
        return type(self.method).__name__

    def note_fate(self, task: int, action: int, fate: int, in_time: bool, now: float) -> None:
        """Keep what is known of a task's fate for the dispatcher's next call of `observe`."""
        self._fates.append((task, action, fate, in_time, now))

    def deliver_feedback(self) -> None:
        """Hand all fates that were noted to the dispatcher."""
        if self._fates:
            fates, self._fates = self._fates, []
            dispatcher = self._dispatcher
            if type(dispatcher) is RuleDispatcher:  # a subclass may do something else
                ask(self.method, dispatcher.hear, [Fact(0, self.index, *each) for each in fates])
            elif dispatcher.observe != MethodType(Dispatcher.observe, dispatcher):
                ask(self.method, dispatcher.observe, feedback_of(fates, self.index))

    def choose(self, seen: Observed) -> int:
        """Return the action on one task: 0 local, 1..S offload, S + 1 reject."""
        self.deliver_feedback()
        return checked_action(self.method, self._dispatcher, seen)

    def start_over(self) -> None:
        """Make a new dispatcher, without memory: its estimates are out of date."""
        self._dispatcher = made_dispatcher(self.method, self.site)
        self._fates = []

    def resize(self, site: Site, same: bool) -> bool:
        """The site has other columns: further ones at its end (`same`), or all others.

        Returns whether the dispatcher keeps what it knows of those that stay; if not, it is the
        old one, of the old site, and must start over.
        """
        self.site = site
        if not same:
            return False
        before, made = self._dispatcher, made_dispatcher(self.method, site)
        kept = made.take_over(before)
        if kept:
            self._dispatcher = made
        return kept


def checked_action(method: Method, dispatcher: Dispatcher, seen: Observed) -> int:
    """Ask a dispatcher about one task; InputError if the answer is not an allowed action."""
    if type(dispatcher) is RuleDispatcher and isinstance(seen, Sight):  # without any array
        action = ask(method, dispatcher.decide_one, seen.tasks)
        if 0 <= action <= seen.reject and seen.links.all_reached:
            return action
        return int(checked_actions(method, [action], seen.arrays())[0])
    arrays = seen.arrays() if isinstance(seen, Sight) else seen
    return int(checked_actions(method, ask(method, dispatcher.decide, arrays), arrays)[0])


def feedback_of(fates: list[KnownFate], en: int) -> Feedback:
    """Return the fates of an EN's tasks as columns, one row a task."""
    count = len(fates)
    task, action, fate, in_time, time_ms = zip(*fates, strict=True)
    return Feedback(
        world=np.zeros(count, np.int64),
        en=np.full(count, en, np.int64),
        task=np.array(task, np.int64),
        action=np.array(action, np.int64),
        fate=np.array(fate, np.int64),
        in_time=np.array(in_time, np.bool_),
        time_ms=np.array(time_ms, np.float64),
    )
