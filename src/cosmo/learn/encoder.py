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

from cosmo.control.features import STATE, Features
from cosmo.control.networks import encode, encoder_shapes, linear
from cosmo.engine import worlds as start
from cosmo.learn.config import EncoderConfig
from cosmo.learn.en_agent import smooth_l1
from cosmo.learn.stack import Layout
from cosmo.scenario import Scenario
from cosmo.workload import Episode

Array = Any
Floats = NDArray[np.float32]


def encoder_layout(config: EncoderConfig) -> Layout:
    """Of the encoder alone, as it is kept and used."""
    return Layout(encoder_shapes(config.hidden, config.dimensions))


def _whole_layout(config: EncoderConfig) -> Layout:
    head = {
        "head1.w": (config.dimensions + 1, config.head_hidden),
        "head1.b": (config.head_hidden,),
        "head2.w": (config.head_hidden, STATE),
        "head2.b": (STATE,),
    }
    return Layout({**encoder_shapes(config.hidden, config.dimensions), **head})


def collect(
    scenario: Scenario,
    episodes: Sequence[Episode],
    intervals_ms: tuple[float, ...],
    random: Sequence[np.random.Generator],
) -> list[Floats]:
    """Of each episode, rows (state, interval / longest, change of state), all normalised.

    ENs offload with a probability of the episode's own and run the rest, so that the SN is seen
    idle and full; SNs wait for random intervals.
    """
    features, longest = Features(scenario), max(intervals_ms)
    shares = np.array([generator.uniform(0.2, 1.0) for generator in random])
    worlds = start(scenario, episodes, status_dimensions=1)
    last: dict[tuple[int, int], tuple[Floats, float]] = {}
    rows: list[list[Floats]] = [[] for _ in episodes]
    turn = worlds.advance()
    while not turn.over:
        seen, nodes = turn.dispatch, turn.update
        if len(seen):
            draws = np.array([random[world].random() for world in seen.world])
            offload = draws < shares[seen.world]
            worlds.answer(action=np.where(offload, 1 + seen.task % seen.sns, 0))
        if len(nodes):
            states = features.sn_state(nodes.sn_state, nodes.sn)
            waits = np.array([random[world].choice(intervals_ms) for world in nodes.world])
            for world, sn, state, wait in zip(nodes.world, nodes.sn, states, waits, strict=True):
                if (world, sn) in last:
                    before, waited = last[world, sn]
                    row = np.concatenate([before, [waited / longest], state - before])
                    rows[world].append(row.astype(np.float32))
                last[world, sn] = state, wait
            worlds.answer(send=False, interval_ms=waits)
        turn = worlds.advance()
    return [np.stack(each) for each in rows]


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
        semantic = encode(p, batch[:, :STATE], jnp)
        head = jnp.concatenate([semantic, batch[:, STATE : STATE + 1]], axis=1)
        predicted = linear(p, "head2", jnp.maximum(linear(p, "head1", head), 0))
        return smooth_l1(predicted - batch[:, STATE + 1 :]).mean()

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
        filled = np.zeros((_rounded(len(rows)), 2 * STATE + 1), np.float32)
        filled[: len(rows)] = rows
        trained.append(step(first, filled, order))
    return np.stack(trained)[:, : encoder_layout(config).size].copy()


def _rounded(count: int) -> int:
    """Up, to a power of two."""
    return 1 << (count - 1).bit_length()
