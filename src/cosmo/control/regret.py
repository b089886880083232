"""Decision regret: the share of decisions that a perfectly fresh status would have changed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cosmo.control.guard import ask, checked_actions
from cosmo.control.method import Dispatcher, Method, Setting
from cosmo.world import DispatchObservation, Outcome, Truth


class Regret:
    """Asks the same dispatcher what it would do with the true state of the SNs, sent just now."""

    def __init__(
        self,
        method: Method,
        would_decide: Callable[[DispatchObservation], ArrayLike],
        setting: Setting,
    ) -> None:
        self._method, self._would_decide = method, would_decide
        self._sns = setting.scenario.sn.count
        self._warmup_ms = setting.scenario.episode.warmup_ms
        self._decisions = np.zeros(len(setting.episodes))
        self._regretted = np.zeros(len(setting.episodes))
        self._fresh: NDArray[np.int64] = np.empty(0, np.int64)

    @classmethod
    def of(cls, method: Method, dispatcher: Dispatcher, setting: Setting) -> Self | None:
        """None if the method's dispatcher cannot be asked without effect."""
        would_decide = getattr(dispatcher, "would_decide", None)
        return None if would_decide is None else cls(method, would_decide, setting)

    def foresee(self, tasks: DispatchObservation, truth: Truth) -> None:
        """Before the decision, which may change what the dispatcher remembers."""
        now = np.repeat(tasks.time_ms[:, None], tasks.sns, axis=1)
        fresh = replace(tasks, sn_state=truth.sn_state, sn_source_ms=now)
        answer = ask(self._method, self._would_decide, fresh)
        self._fresh = checked_actions(self._method, answer, len(tasks), self._sns)

    def compare(self, tasks: DispatchObservation, action: NDArray[np.int64]) -> None:
        """After it; a batch has at most one decision of each world."""
        measured = tasks.generated_ms >= self._warmup_ms
        worlds = tasks.world[measured]
        self._decisions[worlds] += 1
        self._regretted[worlds] += (action != self._fresh)[measured]

    def added_to(self, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes with the regret in their status record."""
        with np.errstate(invalid="ignore"):
            share = self._regretted / self._decisions
        return [
            outcome
            if outcome.status is None
            else replace(outcome, status=replace(outcome.status, decision_regret=float(value)))
            for outcome, value in zip(outcomes, share, strict=True)
        ]
