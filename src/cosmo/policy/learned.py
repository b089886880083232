"""Trained agents at work, with NumPy alone: what a real node runs.

An `Agents` holds the parameters of one run for each world, so that many runs act side by side. All
ENs of a world share their weights, and so do all its SNs: the agents act at any site.
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
    for_each,
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
ROUNDING_MS = 1e-6  # by which an SN may be asked before a decision is due
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

    @property
    def worlds(self) -> int:
        """How many runs act side by side."""
        return len(self.sn["project.w"])

    @property
    def dimensions(self) -> int:
        """How many numbers a status carries."""
        return RAW if self.encoder is None else int(self.encoder["encode3.w"].shape[-1])

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

    def for_utility(self, failure_cost: float) -> "Agents":
        """Utility is what it has learned from."""
        raise InputError("objective: only of a controller that can choose")

    def at_work(self) -> Method:
        """Return the trained agents as a method."""
        return Learned(self)

    def shapes(self) -> Shapes:
        """What its arrays must be, without the axis of runs."""
        found, remote = {}, EN_LINK + int(self.with_age)
        dimensions = RAW if self.encoder is None else size(self.encoder, "encode3.b")
        if self.encoder is not None:
            hidden = size(self.encoder, "encode1.b"), size(self.encoder, "encode2.b")
            found["encoder"] = encoder_shapes(hidden, dimensions)
        branch, fusion = size(self.en, "local1.b"), size(self.en, "fusion.b")
        found["en"] = shapes(EN_LOCAL, dimensions + remote, self.hierarchical, branch, fusion)
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
        """Q of the decisions of SNs, [row, k, action] for the k-th EN, and the hidden states after
        them [row, k, unit].
        """
        split = seen.shape[2]
        # A product is of one row: its bits do not depend on how many ENs there are.
        sn = for_each(self.sn)

        def net(x: Floats) -> Floats:
            values, state = sn_step(sn, x[..., :split], x[..., split:])
            return np.concatenate([values, state], axis=-1)

        both = np.concatenate([seen, hidden], axis=2)[:, :, None, :]
        out = _each(net, self.worlds, worlds, both)[:, :, 0]
        return out[..., : -self.hidden], out[..., -self.hidden :]

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
    """EN agents that take the action with the highest value."""

    def __init__(self, site: Site, agents: Agents) -> None:
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
    """Greedy SN agents; their encoders run here, at the SN (R28).

    An SN decides for each EN by itself whether to send to it and when to decide about it again. It
    has a memory for each, and asks to be called at the earliest of these times.
    """

    def __init__(self, site: Site, agents: Agents) -> None:
        self._features, self.agents = Features(site), agents
        pairs = agents.worlds, len(site.sn), site.links.reached_by[0].shape[1]
        self.hidden = np.zeros((*pairs, agents.hidden), np.float32)
        self._due_ms = np.full(pairs, -np.inf)

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
        """[row, k, 11] what the networks see of these SNs and of the k-th EN that reaches each."""
        return self._features.sn(nodes, self.encode(nodes.states))

    def values(self, nodes: UpdateObservation) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """(inputs, Q, [row, k] whether it is time to decide about the k-th EN): the memory of those
        that it is time for moves on.
        """
        seen, place = self.observe_inputs(nodes), (nodes.world, nodes.sn)
        due = self._due_ms[place] <= nodes.time_ms[:, None] + ROUNDING_MS
        due = nodes.reached & (due | nodes.returned[:, None])
        self.hidden[place] *= ~nodes.returned[:, None, None]  # who has failed starts anew (R38)
        before = self.hidden[place]
        values, after = self.agents.sn_values(nodes.world, seen, before)
        self.hidden[place] = np.where(due[:, :, None], after, before)
        return seen, values, due

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """The best of send and intervals for every EN that it is time for."""
        _, values, due = self.values(nodes)
        send, chosen_ms = self.agents.sn_answer(values.argmax(axis=2))
        now, place = nodes.time_ms[:, None], (nodes.world, nodes.sn)
        left_ms = np.where(due, chosen_ms, self._due_ms[place] - now)
        self._due_ms[place] = np.where(due, now + chosen_ms, self._due_ms[place])
        return send & due, np.where(nodes.reached, left_ms, np.inf).min(axis=1)


class Learned(Method):
    """Trained agents of CoSMO."""

    def __init__(self, agents: Agents) -> None:
        self.agents = agents
        self.carries = agents.dimensions

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the EN agents at `site`, without memory."""
        return LearnedDispatcher(site, self.agents)

    def updater(self, site: Site) -> Updater:
        """Return the SN agents at `site`, without memory."""
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
