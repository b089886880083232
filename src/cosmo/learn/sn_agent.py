"""The SN agent's update, in the order of the paper's equations.

A sample is two consecutive decisions and the observation after them; the GRU starts from the hidden
state that was stored with the first (R22).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cosmo.control.networks import sn_step
from cosmo.learn.config import SnConfig
from cosmo.learn.en_agent import smooth_l1
from cosmo.learn.stack import Layout

Array = Any
Layers = dict[str, Any]

# Columns of a decision, before the observation, the hidden state and the next observation.
EPISODE, ACTION, REWARD, INTERVAL, TERMINAL = range(5)
EXTRA_COLUMNS = 5


def loss(config: SnConfig, inputs: int, online: Layers, frozen: Layers, batch: Array) -> Array:
    """Of one run on a batch [sample, 2, column]."""
    told = batch[:, :, :EXTRA_COLUMNS]
    seen = batch[:, :, EXTRA_COLUMNS : EXTRA_COLUMNS + inputs]
    hidden = batch[:, 0, EXTRA_COLUMNS + inputs : EXTRA_COLUMNS + inputs + config.hidden]
    after = batch[:, 1, EXTRA_COLUMNS + inputs + config.hidden :]
    sequence = (seen[:, 0], seen[:, 1], after)

    def unroll(parameters: Any) -> list[Array]:
        state, values = hidden, []
        for observation in sequence:
            value, state = sn_step(parameters, observation, state, jnp)
            values.append(value)
        return values

    values, evaluated = unroll(online), unroll(frozen)
    shortest = min(config.intervals_ms)
    total = 0.0
    for n in range(2):
        action = told[:, n, ACTION].astype(jnp.int32)
        taken = jnp.take_along_axis(values[n], action[:, None], axis=1)[:, 0]
        # eq. sn_next_greedy: the online network chooses, the target network evaluates.
        best = values[n + 1].argmax(-1)
        future = jnp.take_along_axis(evaluated[n + 1], best[:, None], axis=1)[:, 0]
        # eq. sn_target_new: the discount counts elapsed time in units of the shortest interval.
        discount = config.discount ** (told[:, n, INTERVAL] / shortest)
        goal = told[:, n, REWARD] + (1.0 - told[:, n, TERMINAL]) * discount * future
        total += smooth_l1(taken - jax.lax.stop_gradient(goal)).mean()  # eq. sn_loss_new
    return total / 2.0


def make_update(
    layout: Layout, config: SnConfig, inputs: int
) -> Callable[[Array, Array, Any, Array, Array], tuple[Array, Any]]:
    """(parameters, targets, optimizer state, batches, mask) of all runs → after one step."""
    chain = optax.chain(
        optax.clip_by_global_norm(config.gradient_clip), optax.adam(config.learning_rate)
    )

    def one(
        flat: Array, target: Array, state: Any, batch: Array, active: Array
    ) -> tuple[Array, Any]:
        frozen = layout.views(target)
        layers = jax.grad(lambda p: loss(config, inputs, p, frozen, batch))(layout.views(flat))
        gradient = layout.joined(layers, jnp)
        step, new_state = chain.update(gradient, state, flat)
        keep = lambda a, b: jnp.where(active, a, b)  # noqa: E731
        return keep(flat + step, flat), jax.tree.map(keep, new_state, state)

    return jax.jit(jax.vmap(one))
