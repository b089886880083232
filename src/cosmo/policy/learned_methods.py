"""The one table of methods that learn: adding one touches this file and brings a room in `learn`.

What a node needs is named directly; what only a laboratory has (trainers, configurations) is named
by where it is and fetched when somebody trains, so that a node needs NumPy alone.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError, did_you_mean
from cosmo.node import Method
from cosmo.policy.controller_fields import Fields, Shapes
from cosmo.policy.learned import paper_agents
from cosmo.policy.next.agents import next_agents

Layers = Mapping[str, Mapping[str, NDArray[np.float32]]]  # by part, then by layer

_PAPER = "the paper: Update for Decisions, Not Freshness"


class Agents(Protocol):
    """Trained networks of one or several runs, a row each."""

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        ...

    def of(self, runs: Sequence[int]) -> "Agents":
        """These runs' agents, one for each world of a batch."""
        ...

    def at_work(self) -> Method:
        """Return the trained agents as a method."""
        ...

    def without(self, part: str) -> "Agents":
        """The same without a part, for comparison; InputError if there is none such."""
        ...

    def for_utility(self, failure_cost: float) -> "Agents":
        """The same for net utility, with another cost of a failed task; InputError if it has no
        choice.
        """
        ...

    def shapes(self) -> Shapes:
        """What its arrays must be, without the axis of runs.

        Raises ValueError if the sizes of its layers cannot be derived from them.
        """
        ...


@dataclass(frozen=True)
class LearnedMethod:
    """How a method learns and acts."""

    name: str
    summary: str
    reference: str  # as `Method.reference` and `Method.plain`
    plain: str
    scope: Literal["load", "scenario"]  # trained anew at each load, or once for all of a scenario
    agents: Callable[[Layers, Fields], Agents]  # from arrays and the configuration
    configuration: str  # module:name of its `Documents`
    trainer: str  # module:name of what makes its trainer of runs and a configuration
    settings: Mapping[str, Any]  # fields of the configuration that make it this method
    shipped: str = ""  # the folder of the controller that comes with the package, if one does
    ablation_of: str = ""  # the method that it is a lesser form of, if any: they are shown together

    def fetched(self, what: Literal["configuration", "trainer"]) -> Any:
        """What only a laboratory has."""
        module, _, name = getattr(self, what).partition(":")
        return getattr(importlib.import_module(module), name)


LEARNED = {
    each.name: each
    for each in (
        LearnedMethod(
            name="cosmo",
            summary="Two agents that learn from utility: a semantic status, a gate, then a route.",
            reference=_PAPER,
            plain="Two trained controllers: the service node learns what to put into a status and"
            " when to send it; the edge node learns whether to accept a task, then where to run"
            " it.",
            scope="load",
            agents=paper_agents,
            configuration="cosmo.learn.config:CONFIGS",
            trainer="cosmo.learn.trainer:Trainer",
            settings={"en.hierarchical": True},
        ),
        LearnedMethod(
            name="cosmo-flat",
            summary="The ablation of `cosmo`: one flat head over the same three actions.",
            reference=_PAPER,
            plain="As cosmo, but the edge node chooses among run, offload and reject in one step.",
            scope="load",
            agents=paper_agents,
            configuration="cosmo.learn.config:CONFIGS",
            trainer="cosmo.learn.trainer:Trainer",
            settings={"en.hierarchical": False},
            ablation_of="cosmo",
        ),
        LearnedMethod(
            name="cosmo-next",
            summary="One controller for all sites: backlog estimate, prices, updates if worth it.",
            reference="the controller that comes with the CoSMO package",
            plain="The edge node works out the queues of service nodes from its own traffic and"
            " keeps room for later tasks; a status is sent when it is likely to change a decision.",
            scope="scenario",
            agents=next_agents,
            configuration="cosmo.learn.next.config:CONFIGS",
            trainer="cosmo.learn.next.universal:trainer_of",
            settings={},
            shipped="universal",
        ),
    )
}


def learned_method(name: str) -> LearnedMethod:
    """By name; InputError if no such method learns."""
    if name not in LEARNED:
        known = ", ".join(LEARNED)
        close = did_you_mean(name, LEARNED)
        raise InputError(f"method = {name!r}: cannot be trained; must be one of {known}{close}")
    return LEARNED[name]
