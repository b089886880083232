"""Decision regret: the share of decisions that a perfectly fresh status would have changed."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Method, Site, SnStates, Updater
from cosmo.node.guard import ask, checked_actions, checked_numbers
from cosmo.scenario import Scenario
from cosmo.world import Outcome, Truth, Watcher
from cosmo.world.watch import AskTruth


def with_regret(
    outcomes: list[Outcome], regretted: NDArray[np.int64], decisions: NDArray[np.int64]
) -> list[Outcome]:
    """The outcomes with the share of regretted decisions in their status record, [world] each; NaN
    where none was measured.
    """
    with np.errstate(invalid="ignore"):
        share = regretted / np.asarray(decisions, np.float64)
    return [
        outcome
        if outcome.status is None or np.isnan(value)
        else replace(outcome, status=replace(outcome.status, decision_regret=float(value)))
        for outcome, value in zip(outcomes, share, strict=True)
    ]


class Regret(Watcher):
    """Asks the same dispatcher what it would do with a status that each SN made just now.

    Where the method sends no status, or its dispatcher cannot be asked without effect, nothing is
    measured.
    """

    def __init__(self, scenario: Scenario, method: Method) -> None:
        self._method, self._warmup_ms = method, scenario.episode.warmup_ms

    def begins(self, site: Site, dispatcher: Dispatcher, updater: Updater | None) -> None:
        """Note whom to ask."""
        self._dispatcher, self._updater = dispatcher, updater
        self._can_tell = type(dispatcher).would_decide is not Dispatcher.would_decide
        self._decisions, self._regretted = np.zeros((2, site.worlds), np.int64)
        self._fresh: NDArray[np.int64] | None = None

    def asked(self, tasks: DispatchObservation, truth: AskTruth) -> None:
        """Before the decision, which may change what the dispatcher remembers."""
        self._fresh = None
        if self._updater is None or not self._can_tell:
            return
        self._due = tasks.generated_ms >= self._warmup_ms
        if not self._due.any():
            return
        answer = ask(self._method, self._dispatcher.would_decide, self._refreshed(tasks, truth()))
        if answer is not None:
            self._fresh = checked_actions(self._method, answer, tasks)

    def _refreshed(self, tasks: DispatchObservation, truth: Truth) -> DispatchObservation:
        """The same with statuses of this very moment, as the SNs' own updater makes them."""
        assert self._updater is not None
        reached = tasks.reached & truth.sn_up  # of an SN that is down the last status stays
        row, _ = np.nonzero(reached)
        states = SnStates(
            world=tasks.world[row],
            sn=tasks.sn[reached],
            time_ms=tasks.time_ms[row],
            state=truth.sn_state[reached],
        )
        answer = ask(self._method, self._updater.encode, states)
        numbers = checked_numbers(self._method, answer, len(states), self._method.carries)
        status = np.where(reached[:, :, None], 0.0, tasks.status)
        status[reached] = numbers
        now = np.where(reached, tasks.time_ms[:, None], tasks.status_ms)
        return replace(tasks, status=status, status_ms=now)

    def dispatched(self, tasks: DispatchObservation, actions: NDArray[np.int64]) -> None:
        """After it; a batch has at most one decision of each world."""
        if self._fresh is None:
            return
        worlds = tasks.world[self._due]
        self._decisions[worlds] += 1
        self._regretted[worlds] += (actions != self._fresh)[self._due]

    def ended(self, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes with the regret in their status record; NaN where none was measured."""
        return with_regret(outcomes, self._regretted, self._decisions)
