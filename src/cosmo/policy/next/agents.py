"""Trained agents of `cosmo-next`, and the method that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import Dispatcher, Hidden, Method, Site, Updater
from cosmo.node.calls import NOTHING_HIDDEN
from cosmo.policy.controller_fields import Fields, Shapes, size
from cosmo.policy.next.en import NextDispatcher
from cosmo.policy.next.met import met_by_ens, met_by_sns
from cosmo.policy.next.multi_node.scaling import ScaledParameters
from cosmo.policy.next.multi_node.trained import MultiNode, known_part, multi_node_from
from cosmo.policy.next.pair import PairDispatcher
from cosmo.policy.next.run_rows import RunRows
from cosmo.policy.next.settings import NextSettings, settings_from
from cosmo.policy.next.sn import CHANGE_SIZE, NextUpdater
from cosmo.policy.next.trained_range import TrainedRange, range_from
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.policy.rules import multi_node, multi_node_updates
from cosmo.policy.rules.multi_node_parameters import Parameters

Layers = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class NextAgents:
    """Networks of the ENs and weights of the SNs, one row per run, and where each of them acts."""

    en: Layers
    sn: Layers
    settings: NextSettings
    multi_node: MultiNode | None = None  # of a controller for all sites
    runs: tuple[int, ...] | None = None  # of each world; None: run k acts in world k
    # Where one EN has one SN, and elsewhere, of a controller for all sites.
    ranges: tuple[TrainedRange, TrainedRange] | None = None
    # Where one EN has one SN: whether large tasks are rejected at a high load, for success.
    prices: bool = True

    @property
    def dimensions(self) -> int:
        """The number of values in a status."""
        return self.settings.dimensions

    def of(self, runs: Sequence[int]) -> "NextAgents":
        """The agents of these runs, one run for each world of a batch."""
        used, place = np.unique(np.array(runs, np.int64), return_inverse=True)

        def chosen(layers: Layers) -> Layers:
            return {name: layer[used] for name, layer in layers.items()}

        return replace(self, en=chosen(self.en), sn=chosen(self.sn), runs=tuple(place.tolist()))

    def at_work(self) -> Method:
        """Return the trained agents as a method."""
        return LearnedNext(self)

    def shapes(self) -> Shapes:
        """The shape of each array by part and layer, without the axis of runs."""
        hidden, joint = size(self.en, "local.b"), size(self.en, "joint.b")
        chance = size(self.en, "chance1.b")
        en = value_shapes(hidden, joint) | chance_shapes(chance)
        sn: dict[str, tuple[int, ...]] = {
            "worth": (CHANGE_SIZE,),
            "doubt": (CHANGE_SIZE, CHANGE_SIZE),
        }
        found: dict[str, dict[str, tuple[int, ...]]] = {"en": en, "sn": sn}
        if self.multi_node is not None:
            found["multi_node"] = dict.fromkeys(
                Parameters._fields, (len(ScaledParameters._fields),)
            )
        return found

    def without(self, part: str) -> "NextAgents":
        """A copy without a part of the multi-node controller, for comparison."""
        if self.multi_node is None:
            raise InputError(f"off = {part!r}: only of a controller for all sites")
        return replace(self, multi_node=replace(self.multi_node, off=known_part(part)))

    def for_utility(self, failure_cost: float) -> "NextAgents":
        """A copy for net utility, with another cost of a failed task, in successful tasks."""
        several = self.multi_node and replace(self.multi_node, failure_cost=failure_cost)
        settings = replace(self.settings, failure=failure_cost)
        return replace(self, settings=settings, multi_node=several, prices=False)

    def alone(self, site: Site) -> bool:
        """Whether the networks act at a site: one EN with one SN, or no multi-node controller."""
        return self.multi_node is None or len(site.en) == len(site.sn) == 1

    def run_rows(self, worlds: int) -> RunRows:
        """Which run's networks act in which world."""
        count = len(self.sn["worth"])
        return RunRows(range(worlds) if self.runs is None else self.runs, count)


class LearnedNext(Method):
    """Trained agents of `cosmo-next`."""

    def __init__(self, agents: NextAgents) -> None:
        self.agents = agents
        self.carries = agents.dimensions

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the EN side of the controller that acts at `site`, without memory."""
        agents = self.agents
        if agents.multi_node is not None and not agents.alone(site):
            remark = agents.ranges and partial(met_by_ens, agents.ranges[1])
            return multi_node.dispatcher(site, agents.multi_node.parameters(site), remark)
        networks = NextDispatcher(site, agents.en, agents.run_rows(site.worlds), agents.settings)
        if agents.multi_node is None:
            return networks
        return PairDispatcher(site, networks, agents.prices)

    def updater(self, site: Site) -> Updater:
        """Return the SN side of the controller that acts at `site`, without memory."""
        agents = self.agents
        if agents.multi_node is not None and not agents.alone(site):
            remark = agents.ranges and partial(met_by_sns, agents.ranges[1], site)
            return multi_node_updates.updater(site, agents.multi_node.parameters(site), remark)
        return NextUpdater(site, agents.sn, agents.run_rows(site.worlds), agents.settings)

    def notice(self, site: Site, hidden: Hidden = NOTHING_HIDDEN) -> str:
        """One line that says what of a site the controller was not trained for; else empty."""
        agents = self.agents
        if agents.ranges is None:
            return ""
        pairs, others = agents.ranges
        return (pairs if agents.alone(site) else others).beyond(site, hidden)


def next_agents(layers: Mapping[str, Layers], training: Fields) -> NextAgents:
    """Build the agents from arrays by part and layer and from the configuration of training.

    Raises:
        ValueError: If a field or a parameter is missing or wrong.

    """
    settings, several, ranges = settings_from(training), None, None
    if training.has("multi_node"):
        if not settings.single:
            raise ValueError(
                "training.sn.single = false: must be true in a controller for all sites"
            )
        several = multi_node_from(layers.get("multi_node", {}))
        trained = range_from(training.group("multi_node").group("kinds"))
        ranges = trained.of_pairs(training), trained
    en, sn = layers.get("en", {}), layers.get("sn", {})
    return NextAgents(en, sn, settings, several, ranges=ranges)
