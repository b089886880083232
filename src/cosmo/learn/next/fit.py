"""Values and chances of many runs, fitted side by side (JAX)."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from cosmo.control.next import values
from cosmo.learn.next.returns import load_terms

Tree = dict[str, Any]
_SHIFT = 11  # how far apart tasks are that stand in for one another


def _part(rows: Tree, name: str) -> Tree:
    return {k.removeprefix(f"{name}/"): v for k, v in rows.items() if k.startswith(f"{name}/")}


@functools.partial(jax.jit, static_argnames=("tasks", "failure"))
def judged(
    p: Tree, rows: Tree, places: Any, baseline: Any, tasks: int, failure: float
) -> dict[str, Any]:
    """Of decisions [run, row]: the value found and left, and the inputs of what was left."""
    before, task = _part(rows, "before"), _part(rows, "task")
    best: Any = 0.0
    for k in range(tasks):
        other = {name: jnp.roll(value, k * _SHIFT, 1) for name, value in task.items()}
        # The other task at this moment: its whole deadline, less what this one has used up.
        whole = jnp.roll(task["slack"] + rows["elapsed"], k * _SHIFT, 1)
        other["slack"] = whole - rows["elapsed"]
        advantage, rejected = values.advantages(p, before, other, places, failure, jnp)
        best = best + jnp.maximum(advantage.max(-1), 0.0)
    usual = (load_terms(before["load"], jnp) * baseline).sum(-1)
    local0, remote0 = values.inputs_before(before, places, jnp)
    local1, remote1 = values.inputs_after(before, task, places, jnp)
    action = rows["action"]
    sns = jnp.arange(1, 1 + remote0.shape[-2])
    local = jnp.where((action == 0)[..., None], local1, local0)
    remote = jnp.where((action[..., None] == sns)[..., None], remote1, remote0)
    return {
        "found": rejected + best / tasks - usual,
        "left": values.value(p, local, remote, before["load"], jnp),
        "local": local,
        "remote": remote,
        "load": before["load"],
        "chance": values.chance_inputs(before, task, places, jnp),
    }


def loss(p: Tree, batch: Tree) -> tuple[Any, Any]:
    """Of every run: squared error of values plus cross-entropy of chances; [run]."""
    error = values.value(p, batch["local"], batch["remote"], batch["load"], jnp) - batch["target"]
    logits = values.chance_logits(p, batch["chance"], jnp)
    entropy = jnp.logaddexp(0.0, logits) - batch["feasible"] * logits
    both = 0.5 * (error**2).mean(1), entropy.mean((1, 2))
    return both[0].sum() + both[1].sum(), both


@functools.partial(jax.jit, static_argnames=("steps", "batch"))
def fitted(
    state: Tree,
    data: Tree,
    number: Any,
    rate: Any,
    averaging: Any,
    clip: Any,
    steps: int,
    batch: int,
) -> tuple[Tree, Any, Any]:
    """`steps` of Adam on every run at once; `state` has p, its average, and the moments."""
    rows = data["target"].shape[1]

    def step(state: Tree, key: Any) -> tuple[Tree, Any]:
        chosen = jax.random.randint(key, (batch,), 0, rows)  # the same for all runs
        part = {name: value[:, chosen] for name, value in data.items()}
        gradient, both = jax.grad(loss, has_aux=True)(state["p"], part)
        square = sum((g**2).sum(tuple(range(1, g.ndim))) for g in gradient.values())
        scale = jnp.minimum(1.0, clip / jnp.sqrt(square + 1e-12))
        count = state["count"] + 1.0
        new: Tree = {"p": {}, "average": {}, "first": {}, "second": {}, "count": count}
        for name, g in gradient.items():
            g = g * scale.reshape(-1, *(1,) * (g.ndim - 1))
            first = 0.9 * state["first"][name] + 0.1 * g
            second = 0.999 * state["second"][name] + 0.001 * g * g
            move = first / (1.0 - 0.9**count) / (jnp.sqrt(second / (1.0 - 0.999**count)) + 1e-8)
            p = state["p"][name] - rate * move
            average = state["average"][name]
            new["p"][name], new["first"][name], new["second"][name] = p, first, second
            new["average"][name] = average + averaging * (p - average)
        return new, both

    keys = jax.random.split(jax.random.PRNGKey(number), steps)
    state, both = jax.lax.scan(step, state, keys)
    return state, both[0].mean(0), both[1].mean(0)
