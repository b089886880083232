"""Who is asked at an EN: a method's dispatcher, told of its tasks before it decides (R29)."""

import numpy as np

from cosmo.node import Dispatcher, DispatchObservation, Feedback, Method, Site
from cosmo.node.guard import ask, checked_actions, made_dispatcher

Told = tuple[int, int, int, bool, float]  # task, action, fate, in time, when


class Chooser:
    """Asks one method; a mistake of it is an InputError that names it."""

    def __init__(self, method: Method, site: Site, index: int) -> None:
        self.method, self.site, self.index = method, site, index
        self._dispatcher = made_dispatcher(method, site)
        self._told: list[Told] = []

    @property
    def name(self) -> str:
        """Of who decides at the moment."""
        return type(self.method).__name__

    def tell(self, task: int, action: int, fate: int, in_time: bool, now: float) -> None:
        """Something is known of a task; the dispatcher hears of it before it decides again."""
        self._told.append((task, action, fate, in_time, now))

    def pass_on(self) -> None:
        """Have the dispatcher hear what is known."""
        if self._told:
            told, self._told = self._told, []
            if getattr(self._dispatcher.observe, "__func__", None) is Dispatcher.observe:
                return  # it does not listen
            ask(self.method, self._dispatcher.observe, feedback_of(told, self.index))

    def choose(self, seen: DispatchObservation) -> int:
        """The action on one task."""
        self.pass_on()
        return chosen(self.method, self._dispatcher, seen)

    def start_over(self) -> None:
        """Books of before mean nothing any more: a fresh dispatcher."""
        self._dispatcher = made_dispatcher(self.method, self.site)
        self._told = []


def chosen(method: Method, dispatcher: Dispatcher, seen: DispatchObservation) -> int:
    """What a dispatcher says about one task, checked."""
    answer = ask(method, dispatcher.decide, seen)
    return int(checked_actions(method, answer, seen)[0])


def feedback_of(told: list[Told], en: int) -> Feedback:
    """The same as columns."""
    count = len(told)
    task, action, fate, in_time, time_ms = zip(*told, strict=True)
    return Feedback(
        world=np.zeros(count, np.int64),
        en=np.full(count, en, np.int64),
        task=np.array(task, np.int64),
        action=np.array(action, np.int64),
        fate=np.array(fate, np.int64),
        in_time=np.array(in_time, np.bool_),
        time_ms=np.array(time_ms, np.float64),
    )
