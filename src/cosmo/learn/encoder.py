"""Pretraining of the semantic encoder by interval-conditioned forward dynamics, then frozen.

(eqs. transition_predictor, transition_pretrain): a small head predicts from the semantic and the
interval how the normalised SN state will have changed.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cosmo.control import play
from cosmo.learn.config import EncoderConfig
from cosmo.learn.en_agent import smooth_l1
from cosmo.learn.stack import Layout
from cosmo.node import (
    RAW,
    Dispatcher,
    DispatchObservation,
    Method,
    Site,
    UpdateObservation,
    Updater,
)
from cosmo.policy.features import Features
from cosmo.policy.networks import encode, encoder_shapes, linear
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Watcher

Array = Any
Floats = NDArray[np.float32]


def encoder_layout(config: EncoderConfig) -> Layout:
    """Of the encoder alone, as it is kept and used."""
    return Layout(encoder_shapes(config.hidden, config.dimensions))


def _whole_layout(config: EncoderConfig) -> Layout:
    head = {
        "head1.w": (config.dimensions + 1, config.head_hidden),
        "head1.b": (config.head_hidden,),
        "head2.w": (config.head_hidden, RAW),
        "head2.b": (RAW,),
    }
    return Layout({**encoder_shapes(config.hidden, config.dimensions), **head})


def collect(
    scenario: Scenario,
    episodes: Sequence[Episode],
    intervals_ms: tuple[float, ...],
    random: Sequence[np.random.Generator],
) -> list[Floats]:
    """Of each episode, rows (state, interval / longest, change of state), all normalised."""
    changes = _Changes(len(episodes), max(intervals_ms))
    play(scenario, _Wandering(intervals_ms, random), episodes, watchers=[changes])
    return [np.stack(each) for each in changes.rows]


class _Wandering(Method):
    """ENs offload with a probability of the episode's own and run the rest, so that the SN is seen
    idle and full; SNs wait for random intervals and send nothing.
    """

    carries = 1

    def __init__(
        self, intervals_ms: tuple[float, ...], random: Sequence[np.random.Generator]
    ) -> None:
        self._intervals_ms, self._random = intervals_ms, random

    def dispatcher(self, site: Site) -> Dispatcher:
        """ENs that offload at random, with a share of their own in each world."""
        return _WanderingEn(self._random)

    def updater(self, site: Site) -> Updater:
        """SNs that never send, and wait for one of the intervals, drawn at random."""
        return _WanderingSn(self._random, self._intervals_ms)


class _WanderingEn(Dispatcher):
    def __init__(self, random: Sequence[np.random.Generator]) -> None:
        self._random = random
        self._shares = np.array([generator.uniform(0.2, 1.0) for generator in random])

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        draws = np.array([self._random[world].random() for world in tasks.world])
        in_turn = 1 + tasks.task % tasks.reached.sum(axis=1)
        return np.where(draws < self._shares[tasks.world], in_turn, 0)


class _WanderingSn(Updater):
    def __init__(
        self, random: Sequence[np.random.Generator], intervals_ms: tuple[float, ...]
    ) -> None:
        self._random, self._intervals_ms = random, intervals_ms

    def decide(self, nodes: UpdateObservation) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        waits = [self._random[world].choice(self._intervals_ms) for world in nodes.world]
        return np.zeros(len(nodes), np.bool_), np.array(waits)


class _Changes(Watcher):
    """Notes how SNs change from one decision to the next: [episode] lists of rows."""

    def __init__(self, episodes: int, longest_ms: float) -> None:
        self.rows: list[list[Floats]] = [[] for _ in range(episodes)]
        self._longest_ms = longest_ms
        self._last: dict[tuple[int, int], tuple[Floats, float]] = {}

    def begins(self, site: Site, dispatcher: Dispatcher, updater: Updater | None) -> None:
        self._features = Features(site)

    def updated(
        self, nodes: UpdateObservation, send: NDArray[np.bool_], interval_ms: NDArray[np.float64]
    ) -> None:
        states = self._features.sn_state(nodes.sn_state, nodes.sn)
        for world, sn, state, wait in zip(nodes.world, nodes.sn, states, interval_ms, strict=True):
            if (world, sn) in self._last:
                before, waited = self._last[world, sn]
                row = np.concatenate([before, [waited / self._longest_ms], state - before])
                self.rows[world].append(row.astype(np.float32))
            self._last[world, sn] = state, wait


def _plan(config: EncoderConfig, count: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Which rows each step looks at: every epoch in another order, without the odd rest."""
    steps = max(1, count // config.batch)
    epochs = [random.permutation(count) for _ in range(config.epochs)]
    return np.stack([np.resize(epoch, (steps, config.batch)) for epoch in epochs]).reshape(
        config.epochs * steps, config.batch
    )


@lru_cache
def _compiled(config: EncoderConfig) -> Callable[[Array, Array, Array], Array]:
    """All steps of a run: (parameters, rows, order of the rows) → parameters."""
    layout = _whole_layout(config)
    chain = optax.adam(config.learning_rate)

    def loss(flat: Any, batch: Any) -> Any:
        p = layout.views(flat)
        semantic = encode(p, batch[:, :RAW], jnp)
        head = jnp.concatenate([semantic, batch[:, RAW : RAW + 1]], axis=1)
        predicted = linear(p, "head2", jnp.maximum(linear(p, "head1", head), 0))
        return smooth_l1(predicted - batch[:, RAW + 1 :]).mean()

    def one(flat: Any, rows: Any, batches: Any) -> Any:
        def step(carry: Any, chosen: Any) -> tuple[Any, None]:
            parameters, state = carry
            gradient = jax.grad(loss)(parameters, rows[chosen])
            change, new_state = chain.update(gradient, state)
            moved = parameters + change, new_state
            active = chosen[0] >= 0
            return jax.tree.map(lambda a, b: jnp.where(active, a, b), moved, carry), None

        (flat, _), _ = jax.lax.scan(step, (flat, chain.init(flat)), batches)
        return flat

    return jax.jit(one)


def pretrain(
    config: EncoderConfig, data: Sequence[Floats], random: Sequence[np.random.Generator]
) -> Floats:
    """One encoder for each run's data: [run, parameter]."""
    layout, step = _whole_layout(config), _compiled(config)
    initial = [layout.initial(generator) for generator in random]
    plans = [_plan(config, len(rows), own) for rows, own in zip(data, random, strict=True)]
    trained = []
    for first, plan, rows in zip(initial, plans, data, strict=True):
        # Idle steps and rows fill up to round sizes: most runs then share what is compiled, and no
        # run's sizes depend on another's.
        order = np.full((_rounded(len(plan)), config.batch), -1)
        order[: len(plan)] = plan
        filled = np.zeros((_rounded(len(rows)), 2 * RAW + 1), np.float32)
        filled[: len(rows)] = rows
        trained.append(step(first, filled, order))
    return np.stack(trained)[:, : encoder_layout(config).size].copy()


def _rounded(count: int) -> int:
    """Up, to a power of two."""
    return 1 << (count - 1).bit_length()
