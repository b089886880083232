"""The EN agent's update, in the order of the paper's equations.

A transition is a finished task: what the EN saw, what it did, the utility, and the oracle's labels.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cosmo.learn.config import EnConfig
from cosmo.learn.learner import Gradient
from cosmo.learn.stack import Layout
from cosmo.policy.networks import flat_values, gate_and_route, hierarchical_values

Array = Any
Layers = dict[str, Any]

# Columns of a transition after the two observations.
ACTION, UTILITY, FAILED, ACCEPT_LABEL, ROUTE_LABEL = range(5)
EXTRA_COLUMNS = 5


def smooth_l1(error: Array) -> Array:
    """Huber with β = 1."""
    size = jnp.abs(error)
    return jnp.where(size < 1.0, 0.5 * error**2, size - 0.5)


def loss(config: EnConfig, inputs: tuple[int, int], parameters: Layers, batch: Array) -> Array:
    """Of one run on a batch [transition, column]."""
    local, remote = batch[:, : inputs[0]], batch[:, inputs[0] : sum(inputs)]
    told = batch[:, sum(inputs) :]
    action = told[:, ACTION].astype(jnp.int32)
    if config.hierarchical:
        gate, route = gate_and_route(parameters, local, remote, jnp)
        values = hierarchical_values(gate, route, jnp)  # eq. ap_dueling_q
    else:
        values = flat_values(parameters, local, remote, jnp)
        # The same auxiliary losses on the flat values: accepting is worth its best route.
        route = values[:, :-1]
        gate = jnp.stack([values[:, -1], route.max(-1)], axis=1)
    taken = jnp.take_along_axis(values, action[:, None], axis=1)[:, 0]

    # eqs. ap_target_new, ap_loss_new: the target of a finished task is its normalised utility.
    total = smooth_l1(taken - told[:, UTILITY]).mean()
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
    """Of the loss, as a function of one run's flat parameters; there is no target network."""

    def of(flat: Array, target: Array, batch: Array) -> Array:
        del target
        layers = jax.grad(lambda p: loss(config, inputs, p, batch))(layout.views(flat))
        return layout.joined(layers, jnp)

    return of
