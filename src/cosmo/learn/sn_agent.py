"""The SN agent's update, in the order of the paper's equations.

A sample is two consecutive decisions and the observation after them; the GRU starts from the hidden
state that was stored with the first (R22).
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from cosmo.learn.config import SnConfig
from cosmo.learn.en_agent import smooth_l1
from cosmo.learn.learner import Gradient
from cosmo.learn.stack import Layout
from cosmo.policy.networks import sn_step

Array = Any
Layers = dict[str, Any]

# Columns of a decision, before the observation, the hidden state and the next observation.
EPISODE, ACTION, REWARD, INTERVAL, TERMINAL = range(5)
EXTRA_COLUMNS = 5


def errors(
    config: SnConfig, inputs: int, online: Layers, frozen: Layers, batch: Array
) -> list[Array]:
    """Of both decisions of a batch [sample, 2, column]: value of what was done less its goal."""
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
    found = []
    for n in range(2):
        action = told[:, n, ACTION].astype(jnp.int32)
        taken = jnp.take_along_axis(values[n], action[:, None], axis=1)[:, 0]
        # eq. sn_next_greedy: the online network chooses, the target network evaluates.
        best = values[n + 1].argmax(-1)
        future = jnp.take_along_axis(evaluated[n + 1], best[:, None], axis=1)[:, 0]
        # eq. sn_target_new: the discount counts elapsed time in units of the shortest interval.
        discount = config.discount ** (told[:, n, INTERVAL] / shortest)
        goal = told[:, n, REWARD] + (1.0 - told[:, n, TERMINAL]) * discount * future
        found.append(taken - jax.lax.stop_gradient(goal))
    return found


def loss(config: SnConfig, inputs: int, online: Layers, frozen: Layers, batch: Array) -> Array:
    """Of one run on a batch [sample, 2, column]: eq. sn_loss_new."""
    total = 0.0
    for error in errors(config, inputs, online, frozen, batch):
        total += smooth_l1(error).mean()
    return total / 2.0


@lru_cache
def gradient(layout: Layout, config: SnConfig, inputs: int) -> Gradient:
    """Of the loss, as a function of one run's flat parameters and its target network's."""

    def of(flat: Array, target: Array, batch: Array) -> Array:
        frozen = layout.views(target)
        layers = jax.grad(lambda p: loss(config, inputs, p, frozen, batch))(layout.views(flat))
        return layout.joined(layers, jnp)

    return of
