"""Trained agents at work, with NumPy alone: what a real node runs.

An `Agents` holds the parameters of one run for each world, so that many runs act side by side.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.node import (
    RAW,
    Dispatcher,
    DispatchObservation,
    Method,
    Site,
    SnStates,
    UpdateObservation,
    Updater,
)
from cosmo.policy.controller_fields import Fields, Shapes, size
from cosmo.policy.features import EN_LINK, EN_LOCAL, SN_OTHERS, Features
from cosmo.policy.networks import (
    encode,
    encoder_shapes,
    flat_values,
    gate_and_route,
    gate_first,
    hierarchical_values,
    shapes,
    sn_shapes,
    sn_step,
)

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
LEAST_INTERVAL_MS = 0.1  # between two decisions of an SN: less would never end
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
        return RAW if self.encoder is None else int(self.encoder["encode3.w"].shape[-1])

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

    def without(self, part: str) -> "Agents":
        """Has no parts to leave out."""
        raise InputError(f"off = {part!r}: has no such part")

    def at_work(self) -> Method:
        """As a method."""
        return Learned(self)

    def shapes(self, sns: int) -> Shapes:
        """What its arrays must be for this many SNs, without the axis of runs."""
        found, remote = {}, EN_LINK + int(self.with_age)
        dimensions = RAW if self.encoder is None else size(self.encoder, "encode3.b")
        if self.encoder is not None:
            hidden = size(self.encoder, "encode1.b"), size(self.encoder, "encode2.b")
            found["encoder"] = encoder_shapes(hidden, dimensions)
        branch, fusion = size(self.en, "local1.b"), size(self.en, "fusion.b")
        inputs = EN_LOCAL, sns * (dimensions + remote)
        found["en"] = shapes(*inputs, sns + 1, self.hierarchical, branch, fusion)
        choices, memory = len(self.intervals_ms), size(self.sn, "gru.h.b") // 3
        actions = choices if size(self.sn, "update.advantage.b") == choices else 2 * choices
        projection = size(self.sn, "project.b")
        found["sn"] = sn_shapes(2 * dimensions + SN_OTHERS, projection, memory, actions)
        return found

    @property
    def hidden(self) -> int:
        """Size of the SN's memory."""
        return int(self.sn["gru.h.w"].shape[-2])

    def semantics(self, worlds: Ints, state: Floats) -> Floats:
        """[row, d] of normalised states [row, 4], each of a world of its own."""
        encoder = self.encoder
        if encoder is None:
            return state
        return _each(lambda x: encode(encoder, x), self.worlds, worlds, state[:, None])[:, 0]

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


class LearnedDispatcher(Dispatcher):
    """Greedy EN agents."""

    def __init__(self, site: Site, agents: Agents) -> None:
        if not site.links.all_alike:
            raise InputError(
                "backhaul.reach: ENs reach different numbers of SNs, but these networks have an"
                " output for each SN"
            )
        self._features, self.agents = Features(site), agents

    def observe_inputs(self, tasks: DispatchObservation) -> tuple[Floats, Floats]:
        """What the networks see of these tasks: ([row, 10], [row, 5 for each SN])."""
        remote = self._features.en_remote(tasks, self.agents.with_age)
        return self._features.en_local(tasks), remote

    def decide(self, tasks: DispatchObservation) -> Ints:
        """Gate first, then route."""
        return self.agents.en_actions(tasks.world, *self.observe_inputs(tasks))

    would_decide = decide

    def explain(self, tasks: DispatchObservation) -> Floats:
        """[row, action] Q of [local, SN 1, …, reject]."""
        return self.agents.en_values(tasks.world, *self.observe_inputs(tasks))


class LearnedUpdater(Updater):
    """Greedy SN agents, each with its memory; their encoders run here, at the SN (R28)."""

    def __init__(self, site: Site, agents: Agents) -> None:
        self._features, self.agents = Features(site), agents
        self.hidden = np.zeros((agents.worlds, len(site.sn), agents.hidden), np.float32)

    def encode(self, states: SnStates) -> Floats:
        """[row, d] the semantic of these states; worlds may have several rows."""
        state = self._features.sn_state(states.state, states.sn)
        found = np.empty((len(states), self.agents.dimensions), np.float32)
        left = np.arange(len(states))
        while len(left):  # a network is called with one row of each world at a time
            _, first = np.unique(states.world[left], return_index=True)
            some = left[first]
            found[some] = self.agents.semantics(states.world[some], state[some])
            left = np.delete(left, first)
        return found

    def observe_inputs(self, nodes: UpdateObservation) -> Floats:
        """[row, 11] what the networks see of these SNs."""
        return self._features.sn(nodes, self.encode(nodes.states))

    def values(self, nodes: UpdateObservation) -> tuple[Floats, Floats]:
        """(inputs, Q); the memory moves on."""
        seen = self.observe_inputs(nodes)
        place = nodes.world, nodes.sn
        self.hidden[place] *= ~nodes.returned[:, None]  # an SN that has failed starts anew (R38)
        values, self.hidden[place] = self.agents.sn_values(nodes.world, seen, self.hidden[place])
        return seen, values

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The best of send and intervals."""
        return self.agents.sn_answer(self.values(nodes)[1].argmax(axis=1))


class Learned(Method):
    """Trained agents of CoSMO."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self.carries = agents.dimensions

    def dispatcher(self, site: Site) -> Dispatcher:
        """The EN agents."""
        return LearnedDispatcher(site, self.agents)

    def updater(self, site: Site) -> Updater:
        """The SN agents."""
        return LearnedUpdater(site, self.agents)


def paper_agents(layers: Mapping[str, Mapping[str, Floats]], training: Fields) -> Agents:
    """From arrays by part and layer, and the configuration of training."""
    en, sn = training.group("en"), training.group("sn")
    return Agents(
        encoder=layers.get("encoder", {}) if training.group("encoder").truth("semantic") else None,
        en=layers.get("en", {}),
        sn=layers.get("sn", {}),
        intervals_ms=sn.numbers("intervals_ms", LEAST_INTERVAL_MS),
        hierarchical=en.truth("hierarchical"),
        with_age=en.truth("with_age"),
    )
