"""Trained agents of `cosmo-next`, and the method that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, Method, Site, Updater
from cosmo.policy.described import Fields, Shapes, size
from cosmo.policy.next.en import NextDispatcher
from cosmo.policy.next.rules import NextRules, rules_from
from cosmo.policy.next.seats import Seats
from cosmo.policy.next.sn import NEWS, NextUpdater
from cosmo.policy.next.values import chance_shapes, value_shapes

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
        return len(self.rules.carried)

    def of(self, runs: Sequence[int]) -> "NextAgents":
        """These runs' agents, one for each world of a batch."""
        used, place = np.unique(np.array(runs, np.int64), return_inverse=True)

        def chosen(layers: Layers) -> Layers:
            return {name: layer[used] for name, layer in layers.items()}

        return replace(self, en=chosen(self.en), sn=chosen(self.sn), runs=tuple(place.tolist()))

    def at_work(self) -> Method:
        """As a method."""
        return LearnedNext(self)

    def shapes(self, sns: int) -> Shapes:
        """What its arrays must be, for any number of SNs, without the axis of runs."""
        hidden, joint = size(self.en, "local.b"), size(self.en, "joint.b")
        chance = size(self.en, "chance1.b")
        en = value_shapes(hidden, joint) | chance_shapes(chance)
        return {"en": en, "sn": {"worth": (NEWS,), "doubt": (NEWS, NEWS)}}

    def seats(self, worlds: int) -> Seats:
        """Who acts where."""
        count = len(self.sn["worth"])
        return Seats(range(worlds) if self.runs is None else self.runs, count)


class LearnedNext(Method):
    """Trained agents of `cosmo-next`."""

    def __init__(self, agents: NextAgents) -> None:
        self.agents = agents
        self.carries = agents.dimensions

    def dispatcher(self, site: Site) -> Dispatcher:
        """The ENs."""
        agents = self.agents
        return NextDispatcher(site, agents.en, agents.seats(site.worlds), agents.rules)

    def updater(self, site: Site) -> Updater:
        """The SNs."""
        agents = self.agents
        return NextUpdater(site, agents.sn, agents.seats(site.worlds), agents.rules)


def next_agents(layers: Mapping[str, Layers], training: Fields) -> NextAgents:
    """From arrays by part and layer, and the configuration of training."""
    return NextAgents(layers.get("en", {}), layers.get("sn", {}), rules_from(training))
