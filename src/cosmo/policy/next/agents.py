"""Trained agents of `cosmo-next`, and the method that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import Dispatcher, Method, Site, Updater
from cosmo.policy.described import Fields, Shapes, size
from cosmo.policy.next.crowd.en import CrowdDispatcher
from cosmo.policy.next.crowd.fit import Fit
from cosmo.policy.next.crowd.numbers import Numbers
from cosmo.policy.next.crowd.parts import known_part
from cosmo.policy.next.crowd.sn import CrowdUpdater
from cosmo.policy.next.crowd.trained import Crowd, crowd_from
from cosmo.policy.next.en import NextDispatcher
from cosmo.policy.next.pair import PairDispatcher
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
    crowd: Crowd | None = None  # of a controller for all sites
    runs: tuple[int, ...] | None = None  # of each world; None: run k acts in world k

    any_topology = True  # weights are shared by all nodes of a kind

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return self.rules.dimensions

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
        sn: dict[str, tuple[int, ...]] = {"worth": (NEWS,), "doubt": (NEWS, NEWS)}
        found: dict[str, dict[str, tuple[int, ...]]] = {"en": en, "sn": sn}
        if self.crowd is not None:
            found["crowd"] = dict.fromkeys(Numbers._fields, (len(Fit._fields),))
        return found

    def without(self, part: str) -> "NextAgents":
        """The same without a part of the crowd, for comparison."""
        if self.crowd is None:
            raise InputError(f"off = {part!r}: only of a controller for all sites")
        return replace(self, crowd=replace(self.crowd, off=known_part(part)))

    def alone(self, site: Site) -> bool:
        """Whether the networks act there: one EN with one SN, unless there is nothing else."""
        return self.crowd is None or len(site.en) == len(site.sn) == 1

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
        if agents.crowd is not None and not agents.alone(site):
            return CrowdDispatcher(site, agents.crowd.numbers(site))
        networks = NextDispatcher(site, agents.en, agents.seats(site.worlds), agents.rules)
        return networks if agents.crowd is None else PairDispatcher(site, networks)

    def updater(self, site: Site) -> Updater:
        """The SNs."""
        agents = self.agents
        if agents.crowd is not None and not agents.alone(site):
            return CrowdUpdater(site, agents.crowd.numbers(site))
        return NextUpdater(site, agents.sn, agents.seats(site.worlds), agents.rules)

    def notice(self, site: Site) -> str:
        """What about a site the crowd has not been trained for."""
        agents = self.agents
        if agents.crowd is None or agents.alone(site):
            return ""
        return agents.crowd.trained.beyond(site)


def next_agents(layers: Mapping[str, Layers], training: Fields) -> NextAgents:
    """From arrays by part and layer, and the configuration of training."""
    rules, crowd = rules_from(training), None
    if training.has("crowd"):
        if not rules.single:
            raise ValueError("training.sn.single = false: must be true where a crowd is trained")
        crowd = crowd_from(layers.get("crowd", {}), training.group("crowd"))
    return NextAgents(layers.get("en", {}), layers.get("sn", {}), rules, crowd)
