"""Trained agents at work, with NumPy alone: what a real node runs.

An `Agents` holds the parameters of one run for each world, so that many runs act side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosmo.control.features import STATE, Features
from cosmo.control.method import Dispatcher, Method, Setting, Updater
from cosmo.control.networks import (
    encode,
    flat_values,
    gate_and_route,
    gate_first,
    hierarchical_values,
    sn_step,
)
from cosmo.scenario import Scenario
from cosmo.world import DispatchObservation, UpdateObservation

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Layers = Mapping[str, Floats]  # with a leading axis, one a world


@dataclass(frozen=True)
class Agents:
    """Networks of the encoder, the EN and the SN agent, and how they are used."""

    encoder: Layers | None  # None: the state itself is sent
    en: Layers
    sn: Layers
    intervals_ms: tuple[float, ...]
    hierarchical: bool
    with_age: bool

    any_topology = False  # an input for each SN

    @property
    def worlds(self) -> int:
        """How many runs act side by side."""
        return len(self.sn["project.w"])

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return STATE if self.encoder is None else int(self.encoder["encode3.w"].shape[-1])

    @property
    def en_inputs(self) -> tuple[int, int]:
        """Of the EN's two branches."""
        return int(self.en["local1.w"].shape[-2]), int(self.en["remote1.w"].shape[-2])

    @property
    def sn_inputs(self) -> int:
        """Of the SN's network."""
        return int(self.sn["project.w"].shape[-2])

    def of(self, runs: Sequence[int]) -> "Agents":
        """These runs' agents, one for each world of another batch."""
        rows = np.array(runs)

        def chosen(layers: Layers) -> Layers:
            return {name: layer[rows] for name, layer in layers.items()}

        encoder = None if self.encoder is None else chosen(self.encoder)
        return replace(self, encoder=encoder, en=chosen(self.en), sn=chosen(self.sn))

    def at_work(self) -> Method:
        """As a method."""
        return Learned(self)

    @property
    def hidden(self) -> int:
        """Size of the SN's memory."""
        return int(self.sn["gru.h.w"].shape[-2])

    def semantics(self, worlds: Ints, state: Floats) -> Floats:
        """Z of normalised states [row, k, 4]."""
        encoder = self.encoder
        if encoder is None:
            return state
        return _each(lambda x: encode(encoder, x), self.worlds, worlds, state)

    def _en_scores(self, worlds: Ints, local: Floats, remote: Floats) -> Floats:
        """Gate and route scores side by side, or the flat head's values."""
        split = local.shape[1]

        def net(x: Floats) -> Floats:
            if not self.hierarchical:
                return np.asarray(flat_values(self.en, x[..., :split], x[..., split:]))
            gate, route = gate_and_route(self.en, x[..., :split], x[..., split:])
            return np.concatenate([gate, route], axis=-1)

        both = np.concatenate([local, remote], axis=1)[:, None, :]
        return _each(net, self.worlds, worlds, both)[:, 0]

    def en_actions(self, worlds: Ints, local: Floats, remote: Floats) -> Ints:
        """Greedy decisions of ENs."""
        scores = self._en_scores(worlds, local, remote)
        if not self.hierarchical:
            return np.asarray(scores.argmax(axis=1))
        return np.asarray(gate_first(scores[:, :2], scores[:, 2:]))

    def en_values(self, worlds: Ints, local: Floats, remote: Floats) -> Floats:
        """Q of [local, SN 1, …, reject]."""
        scores = self._en_scores(worlds, local, remote)
        if not self.hierarchical:
            return scores
        return np.asarray(hierarchical_values(scores[:, :2], scores[:, 2:]))

    def sn_values(self, worlds: Ints, seen: Floats, hidden: Floats) -> tuple[Floats, Floats]:
        """Q of SN decisions and the hidden states after them."""
        split = seen.shape[1]

        def net(x: Floats) -> Floats:
            values, state = sn_step(self.sn, x[..., :split], x[..., split:])
            return np.concatenate([values, state], axis=-1)

        both = np.concatenate([seen, hidden], axis=1)[:, None, :]
        out = _each(net, self.worlds, worlds, both)[:, 0]
        return out[:, : -self.hidden], out[:, -self.hidden :]

    def sn_answer(self, action: Ints) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """(send, interval) of an action: send × intervals come first, then no-send × intervals."""
        count = len(self.intervals_ms)
        return action < count, np.array(self.intervals_ms)[action % count]


def _each(net: Callable[[Floats], Floats], count: int, worlds: Ints, x: Floats) -> Floats:
    """Evaluate every world's network once, on the rows that it has."""
    spread = np.zeros((count, *x.shape[1:]), np.float32)
    spread[worlds] = x
    return np.asarray(net(spread)[worlds])


class LearnedDispatcher:
    """Greedy EN agents."""

    def __init__(self, scenario: Scenario, agents: Agents) -> None:
        self._features, self.agents = Features(scenario), agents

    def observe_inputs(self, tasks: DispatchObservation) -> tuple[Floats, Floats]:
        """What the networks see of these tasks."""
        state = self._features.sn_state(tasks.sn_state, slice(None))
        status = self.agents.semantics(tasks.world, state)
        remote = self._features.en_remote(tasks, status, self.agents.with_age)
        return self._features.en_local(tasks), remote

    def decide(self, tasks: DispatchObservation) -> Ints:
        """Gate first, then route."""
        return self.agents.en_actions(tasks.world, *self.observe_inputs(tasks))

    would_decide = decide

    def status(self, tasks: DispatchObservation) -> Floats:
        """[row, SN, d]: what the cached statuses say, zeros while there are none."""
        remote = self.observe_inputs(tasks)[1].reshape(len(tasks), tasks.sns, -1)
        return remote[:, :, : self.agents.dimensions]

    def values(self, tasks: DispatchObservation) -> Floats:
        """Q of [local, SN 1, …, reject], for people who want to look."""
        return self.agents.en_values(tasks.world, *self.observe_inputs(tasks))


class LearnedUpdater:
    """Greedy SN agents, each with its memory."""

    def __init__(self, scenario: Scenario, agents: Agents) -> None:
        self._features, self.agents = Features(scenario), agents
        shape = agents.worlds, scenario.sn.count, agents.hidden
        self.hidden = np.zeros(shape, np.float32)

    def observe_inputs(self, nodes: UpdateObservation) -> Floats:
        """What the networks see of these SNs."""
        own = self._features.sn_state(nodes.sn_state, nodes.sn)[:, None]
        held = nodes.acknowledged_state
        scaled = np.stack(
            [self._features.sn_state(held[:, en], nodes.sn) for en in range(held.shape[1])], axis=1
        )
        states = np.concatenate([own, scaled], axis=1)
        status = self.agents.semantics(nodes.world, states)
        return self._features.sn(nodes, status[:, 0], status[:, 1:])

    def values(self, nodes: UpdateObservation) -> tuple[Floats, Floats]:
        """(inputs, Q); the memory moves on."""
        seen = self.observe_inputs(nodes)
        place = nodes.world, nodes.sn
        values, self.hidden[place] = self.agents.sn_values(nodes.world, seen, self.hidden[place])
        return seen, values

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The best of send and intervals."""
        return self.agents.sn_answer(self.values(nodes)[1].argmax(axis=1))


class Learned(Method):
    """Trained agents of CoSMO."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self.carries = agents.dimensions  # type: ignore[misc]

    def dispatcher(self, setting: Setting) -> Dispatcher:
        """The EN agents."""
        return LearnedDispatcher(setting.scenario, self.agents)

    def updater(self, setting: Setting) -> Updater:
        """The SN agents."""
        return LearnedUpdater(setting.scenario, self.agents)
