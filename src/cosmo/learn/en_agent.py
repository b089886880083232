"""The EN agent's update, in the order of the paper's equations.

A transition is a finished task: what the EN saw, what it did, the utility, and the oracle's labels;
where values bootstrap, also what the EN saw at its next decision.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cosmo.learn.config import EN_EXTRA, EnConfig
from cosmo.learn.learner import Gradient
from cosmo.learn.stack import Layout
from cosmo.policy.networks import flat_values, gate_and_route, hierarchical_values

Array = Any
Layers = dict[str, Any]

# Columns of a transition after the two parts of the observation.
ACTION, UTILITY, FAILED, ACCEPT_LABEL, ROUTE_LABEL = range(EN_EXTRA)


def smooth_l1(error: Array) -> Array:
    """Huber with β = 1, elementwise.

    `optax.huber_loss` is the same up to the last bits, which would change in every training.
    """
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * error**2, size - 0.5)


def _values(
    config: EnConfig, inputs: tuple[int, int], parameters: Layers, seen: Array
) -> tuple[Array, Array, Array]:
    """Of all actions, of rejecting and accepting, and of the routes, at observations `seen`."""
    local, remote = seen[:, : inputs[0]], seen[:, inputs[0] :]
    if config.hierarchical:
        gate, route = gate_and_route(parameters, local, remote, jnp)
        return hierarchical_values(gate, route, jnp), gate, route  # eq. ap_dueling_q
    values = flat_values(parameters, local, remote, jnp)
    # The same auxiliary losses on the flat values: accepting is worth its best route.
    route = values[:, :-1]
    return values, jnp.stack([values[:, -1], route.max(-1)], axis=1), route


def _target(
    config: EnConfig, inputs: tuple[int, int], online: Layers, frozen: Layers, batch: Array
) -> Array:
    """What the value of an action is fitted to.

    By eq. ap_target_new a finished task is terminal: its target is its normalised utility. With a
    discount the value of the next decision is added, as Double DQN has it.
    """
    gained, rest = batch[:, sum(inputs) + UTILITY], batch[:, sum(inputs) + EN_EXTRA :]
    if not config.bootstraps:
        return gained
    goes_on, after = rest[:, 0], rest[:, 1:]
    best = _values(config, inputs, online, after)[0].argmax(-1)
    valued = _values(config, inputs, frozen, after)[0]
    future = jnp.take_along_axis(valued, best[:, None], axis=1)[:, 0]
    return gained + config.discount * goes_on * future


def loss(
    config: EnConfig, inputs: tuple[int, int], parameters: Layers, frozen: Layers, batch: Array
) -> Array:
    """Of one run on a batch [transition, column]; `frozen` values what comes after a task."""
    told = batch[:, sum(inputs) : sum(inputs) + EN_EXTRA]
    action = told[:, ACTION].astype(jnp.int32)
    values, gate, route = _values(config, inputs, parameters, batch[:, : sum(inputs)])
    taken = jnp.take_along_axis(values, action[:, None], axis=1)[:, 0]
    goal = _target(config, inputs, parameters, frozen, batch)
    total = smooth_l1(taken - jax.lax.stop_gradient(goal)).mean()  # eq. ap_loss_new
    if not config.auxiliary.enabled:
        return total

    # R23: training-only labels from the oracle.
    aux, accept = config.auxiliary, told[:, ACCEPT_LABEL]
    label = accept.astype(jnp.int32)
    gate_loss = optax.softmax_cross_entropy_with_integer_labels(gate, label).mean()
    best_route = told[:, ROUTE_LABEL].astype(jnp.int32)
    route_loss = optax.softmax_cross_entropy_with_integer_labels(route, best_route)
    route_loss = (route_loss * accept).sum() / jnp.maximum(accept.sum(), 1.0)
    sign = 2.0 * accept - 1.0
    margin = jnp.maximum(0.0, aux.margin_width - sign * (gate[:, 1] - gate[:, 0])).mean()
    failed = told[:, FAILED]
    boundary = jnp.maximum(0.0, aux.boundary_width - (gate[:, 0] - taken))
    boundary = (boundary * failed).sum() / jnp.maximum(failed.sum(), 1.0)
    return (
        total
        + aux.gate * gate_loss
        + aux.route * route_loss
        + aux.margin * margin
        + aux.boundary * boundary
    )


@lru_cache
def gradient(layout: Layout, config: EnConfig, inputs: tuple[int, int]) -> Gradient:
    """Of the loss, as a function of one run's flat parameters and its target network's."""

    def of(flat: Array, target: Array, batch: Array) -> Array:
        frozen = layout.views(target)
        layers = jax.grad(lambda p: loss(config, inputs, p, frozen, batch))(layout.views(flat))
        return layout.joined(layers, jnp)

    return of
