"""The networks of the paper's section "CoSMO", in NumPy: what a node runs and training acts by.

Parameters are a flat dictionary of arrays. Every array may have further leading axes (one a run),
and inputs then have them too; `learn` evaluates the same functions under JAX by handing in its
module.

Sizes do not depend on the site: with several SNs the same remote branch, fusion and route head are
applied to each of them. With one SN that is the paper's network, operation by operation.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cosmo.node.observation import RAW_FIELDS
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
    if branches[0].shape != branches[1].shape:  # one EN, several SNs
        branches[0] = xp.broadcast_to(branches[0], branches[1].shape)
    return xp.maximum(linear(p, "fusion", xp.concatenate(branches, axis=-1)), 0)


def gate_and_route(p: Parameters, local: Array, remote: Array, xp: Any = np) -> tuple[Array, Array]:
    """Gate scores [reject, accept] and route scores [local, SN 1, …].

    `remote` has the features of all SNs side by side; an SN whose features are all zeros is none
    (a link has a rate), and its route scores -inf.
    """
    each = _by_sn(p, remote)
    if each is None:
        h = fuse(p, local, remote, xp)
        return dueling(p, "gate", h), dueling(p, "route", h)
    h, summary, reached = _fuse_sns(p, local, each, xp)
    route = _dueling_sns(p, "route", h, summary, reached, xp)
    return dueling(p, "gate", summary), route


def _by_sn(p: Parameters, remote: Array) -> Array | None:
    """[..., row, features of all SNs] as [..., SN, row, features]; None if there is one SN."""
    width = p["remote1.w"].shape[-2]
    if remote.shape[-1] == width:
        return None
    return remote.reshape(*remote.shape[:-1], -1, width).swapaxes(-2, -3)


def _fuse_sns(p: Parameters, local: Array, remote: Array, xp: Any) -> tuple[Array, Array, Array]:
    """Fused features of each SN [..., SN, row, feature], their summary [..., row, feature], and
    which SNs are there [..., SN, row, 1].
    """
    reached = (remote != 0).any(-1, keepdims=True)
    h = fuse(_of_each_sn(p), local[..., None, :, :], remote, xp)
    return h, pooled(h, reached, xp), reached


def _of_each_sn(p: Parameters) -> Parameters:
    """Layers with an axis for SNs behind that of runs: a node's products are of one row each, so
    that their bits do not depend on how many SNs there are.
    """
    return p if p["fusion.b"].ndim == 1 else for_each(p)


def for_each(p: Parameters) -> Parameters:
    """Stacked layers with one more axis, for nodes, behind that of runs."""
    return {
        name: layer[..., None, :, :] if name.endswith(".w") else layer[..., None, :]
        for name, layer in p.items()
    }


def pooled(h: Array, reached: Array, xp: Any = np) -> Array:
    """One summary of all SNs: the mean of the first half of the features, the maximum of the rest.

    The order of SNs does not matter, and the summary of one SN is its own features.
    """
    there = xp.where(reached, h, 0)  # rectified features: none is below 0
    half = h.shape[-1] // 2
    count = xp.maximum(reached.sum(-3), 1).astype(h.dtype)
    mean = there[..., :half].sum(-3) / count
    return xp.concatenate([mean, there[..., half:].max(-3)], axis=-1)


def _dueling_sns(
    p: Parameters, name: str, h: Array, summary: Array, reached: Array, xp: Any
) -> Array:
    """V + A − mean A, where the head's second output is applied to each SN's features and all its
    other outputs to the summary.
    """
    of_sn = linear(_of_each_sn(p), f"{name}.advantage", h)[..., 1]
    others = linear(p, f"{name}.advantage", summary)
    parts = [others[..., :1], of_sn.swapaxes(-1, -2), others[..., 2:]]
    advantage = xp.concatenate(parts, axis=-1)
    exists = reached[..., 0].swapaxes(-1, -2)
    parts = [xp.ones_like(part, dtype=bool) for part in parts]
    there = xp.concatenate([parts[0], exists, parts[2]], axis=-1)
    mean = xp.where(there, advantage, 0).sum(-1, keepdims=True) / there.sum(-1, keepdims=True)
    scores = linear(p, f"{name}.value", summary) + advantage - mean.astype(advantage.dtype)
    return xp.where(there, scores, -xp.inf)


def hierarchical_values(gate: Array, route: Array, xp: Any = np) -> Array:
    """Q of [local, SN 1, …, reject] (eq. ap_dueling_q)."""
    accepted = gate[..., 1:] + route - route.max(-1, keepdims=True)
    return xp.concatenate([accepted, gate[..., :1]], axis=-1)


def flat_values(p: Parameters, local: Array, remote: Array, xp: Any = np) -> Array:
    """The ablation: one dueling head over the same actions."""
    each = _by_sn(p, remote)
    if each is None:
        return dueling(p, "flat", fuse(p, local, remote, xp))
    return _dueling_sns(p, "flat", *_fuse_sns(p, local, each, xp), xp)


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
    local: int, remote: int, hierarchical: bool, branch: int, fusion: int
) -> dict[str, tuple[int, ...]]:
    """Of the EN agent's parameters; `remote` is what it sees of one SN."""
    layers = {
        "local1": (local, branch),
        "local2": (branch, branch),
        "remote1": (remote, branch),
        "remote2": (branch, branch),
        "fusion": (2 * branch, fusion),
    }
    heads = {"gate": 2, "route": 2} if hierarchical else {"flat": 3}  # [local, SN(, reject)]
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
