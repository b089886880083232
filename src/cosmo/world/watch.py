"""Who looks on while worlds are played: to measure, to record, to learn."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cosmo.node import (
    Dispatcher,
    DispatchObservation,
    ResultObservation,
    Site,
    UpdateObservation,
    Updater,
)
from cosmo.world.outcome import Outcome
from cosmo.world.truth import Truth

AskTruth = Callable[[], Truth]


class Watcher:
    """Hears what happens in a batch of worlds, in order. Every call does nothing by default."""

    wants_journal = False  # of what happens inside of nodes, in `Outcome.journal`

    def begins(self, site: Site, dispatcher: Dispatcher, updater: Updater | None) -> None:
        """These decide from now on."""

    def asked(self, tasks: DispatchObservation, truth: AskTruth) -> None:
        """ENs are about to decide."""

    def dispatched(self, tasks: DispatchObservation, actions: NDArray[np.int64]) -> None:
        """Called after ENs have decided, with what they saw and their actions."""

    def updated(
        self, nodes: UpdateObservation, send: NDArray[np.bool_], interval_ms: NDArray[np.float64]
    ) -> None:
        """SNs have decided whom to tell, [row, k], and when to decide again."""

    def ridden(self, results: ResultObservation, ride: NDArray[np.bool_]) -> None:
        """SNs have decided which results a status rides on."""

    def ended(self, outcomes: list[Outcome]) -> list[Outcome]:
        """All is over; the outcomes, perhaps with something added."""
        return outcomes
