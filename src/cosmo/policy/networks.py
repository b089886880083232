"""The networks of the paper's section "CoSMO", in NumPy: what a node runs and training acts by.

Parameters are a flat dictionary of arrays. Every array may have further leading axes (one a run),
and inputs then have them too; `learn` evaluates the same functions under JAX by handing in its
module.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosmo.node.state import RAW_FIELDS
from cosmo.policy.products import product

Array = Any  # a NumPy or a JAX array
Parameters = Mapping[str, Array]


def linear(p: Parameters, name: str, x: Array) -> Array:
    """X W + b."""
    return times(x, p[f"{name}.w"]) + p[f"{name}.b"][..., None, :]


def times(x: Array, w: Array) -> Array:
    """X W: under NumPy with the same bits for any number of BLAS threads, under JAX as it is."""
    return product(x, w) if isinstance(w, np.ndarray) and isinstance(x, np.ndarray) else x @ w


def encode(p: Parameters, x: Array, xp: Any = np) -> Array:
    """Z = f_θ(x): 4 → 32 → 16 → 2 (eq. semantic-encoder and the three after fig. arch)."""
    h = xp.maximum(linear(p, "encode1", x), 0)
    h = xp.maximum(linear(p, "encode2", h), 0)
    return linear(p, "encode3", h)


def dueling(p: Parameters, name: str, h: Array) -> Array:
    """V + A − mean A (eqs. sn_dueling_q, ap_gate_dueling_q, ap_route_dueling_q)."""
    advantage = linear(p, f"{name}.advantage", h)
    mean = advantage.sum(-1, keepdims=True) / advantage.shape[-1]
    return linear(p, f"{name}.value", h) + advantage - mean


def fuse(p: Parameters, local: Array, remote: Array, xp: Any = np) -> Array:
    """The two branches and their fusion (eq. ap_fusion)."""
    branches = []
    for name, x in (("local", local), ("remote", remote)):
        h = xp.maximum(linear(p, f"{name}1", x), 0)
        branches.append(xp.maximum(linear(p, f"{name}2", h), 0))
    return xp.maximum(linear(p, "fusion", xp.concatenate(branches, axis=-1)), 0)


def gate_and_route(p: Parameters, local: Array, remote: Array, xp: Any = np) -> tuple[Array, Array]:
    """Gate scores [reject, accept] and route scores [local, SN 1, …]."""
    h = fuse(p, local, remote, xp)
    return dueling(p, "gate", h), dueling(p, "route", h)


def hierarchical_values(gate: Array, route: Array, xp: Any = np) -> Array:
    """Q of [local, SN 1, …, reject] (eq. ap_dueling_q)."""
    accepted = gate[..., 1:] + route - route.max(-1, keepdims=True)
    return xp.concatenate([accepted, gate[..., :1]], axis=-1)


def flat_values(p: Parameters, local: Array, remote: Array, xp: Any = np) -> Array:
    """The ablation: one dueling head over the same actions."""
    return dueling(p, "flat", fuse(p, local, remote, xp))


def gate_first(gate: Array, route: Array) -> Array:
    """The decoder (eq. ap_policy_new): reject unless accepting scores more, then the best route."""
    reject = route.shape[-1]
    return np.where(gate[..., 0] >= gate[..., 1], reject, route.argmax(-1))


def sigmoid(x: Array, xp: Any = np) -> Array:
    """1 / (1 + e^−x), without overflow."""
    return 0.5 * (xp.tanh(0.5 * x) + 1.0)


def gru(p: Parameters, x: Array, hidden: Array, xp: Any = np) -> Array:
    """One step of the gated recurrent unit (eq. sn_gru)."""
    size = hidden.shape[-1]
    from_x, from_h = linear(p, "gru.x", x), linear(p, "gru.h", hidden)
    reset = sigmoid(from_x[..., :size] + from_h[..., :size], xp)
    update = sigmoid(from_x[..., size : 2 * size] + from_h[..., size : 2 * size], xp)
    new = xp.tanh(from_x[..., 2 * size :] + reset * from_h[..., 2 * size :])
    return (1.0 - update) * new + update * hidden


def sn_step(p: Parameters, x: Array, hidden: Array, xp: Any = np) -> tuple[Array, Array]:
    """Projection, GRU and dueling values of one SN decision; returns (Q, next hidden state)."""
    projected = xp.maximum(linear(p, "project", x), 0)
    hidden = gru(p, projected, hidden, xp)
    return dueling(p, "update", hidden), hidden


def shapes(
    local: int, remote: int, routes: int, hierarchical: bool, branch: int, fusion: int
) -> dict[str, tuple[int, ...]]:
    """Of the EN agent's parameters."""
    layers = {
        "local1": (local, branch),
        "local2": (branch, branch),
        "remote1": (remote, branch),
        "remote2": (branch, branch),
        "fusion": (2 * branch, fusion),
    }
    heads = {"gate": 2, "route": routes} if hierarchical else {"flat": routes + 1}
    for name, size in heads.items():
        layers[f"{name}.value"] = (fusion, 1)
        layers[f"{name}.advantage"] = (fusion, size)
    return with_bias(layers)


def sn_shapes(
    inputs: int, projection: int, hidden: int, actions: int
) -> dict[str, tuple[int, ...]]:
    """Of the SN agent's parameters."""
    return with_bias(
        {
            "project": (inputs, projection),
            "gru.x": (projection, 3 * hidden),
            "gru.h": (hidden, 3 * hidden),
            "update.value": (hidden, 1),
            "update.advantage": (hidden, actions),
        }
    )


def encoder_shapes(hidden: tuple[int, int], dimensions: int) -> dict[str, tuple[int, ...]]:
    """Of the semantic encoder's parameters."""
    return with_bias(
        {
            "encode1": (RAW_FIELDS, hidden[0]),
            "encode2": (hidden[0], hidden[1]),
            "encode3": (hidden[1], dimensions),
        }
    )


def with_bias(layers: dict[str, tuple[int, int]]) -> dict[str, tuple[int, ...]]:
    """Shapes of weights and biases, from (inputs, outputs) of each layer."""
    found: dict[str, tuple[int, ...]] = {}
    for name, (inputs, outputs) in layers.items():
        found[f"{name}.w"] = (inputs, outputs)
        found[f"{name}.b"] = (outputs,)
    return found
