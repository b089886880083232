"""Trained agents of `cosmo-next`, and the method that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosmo.control.method import Dispatcher, Method, Setting, Updater
from cosmo.control.next.en import NextDispatcher
from cosmo.control.next.rules import NextRules
from cosmo.control.next.seats import Seats
from cosmo.control.next.sn import NextUpdater

Layers = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class NextAgents:
    """Networks of the ENs and the weights of the SNs, a row a run, and who acts where."""

    en: Layers
    sn: Layers
    rules: NextRules
    runs: tuple[int, ...] | None = None  # of each world; None: run k acts in world k

    any_topology = True  # weights are shared by all nodes of a kind

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return self.rules.dimensions

    def of(self, runs: Sequence[int]) -> "NextAgents":
        """These runs' agents, one for each world of a batch."""
        return replace(self, runs=tuple(runs))

    def at_work(self) -> Method:
        """As a method."""
        return LearnedNext(self)

    def seats(self, worlds: int) -> Seats:
        """Who acts where."""
        count = len(self.sn["worth"])
        return Seats(range(worlds) if self.runs is None else self.runs, count)


class LearnedNext(Method):
    """Trained agents of `cosmo-next`."""

    def __init__(self, agents: NextAgents) -> None:
        self.agents = agents
        self.carries = agents.dimensions  # type: ignore[misc]

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The ENs."""
        agents = self.agents
        seats = agents.seats(len(setting.episodes))
        return NextDispatcher(setting.scenario, agents.en, seats, agents.rules)

    def updater(self, setting: Setting) -> Updater:
        """The SNs."""
        seats = self.agents.seats(len(setting.episodes))
        return NextUpdater(setting.scenario, self.agents.sn, seats, self.agents.dimensions)
