"""Fits the values and probabilities of many runs side by side (JAX)."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cosmo.learn.next.returns import load_terms
from cosmo.policy.next import values
from cosmo.policy.next.settings import SiteSettings

Tree = dict[str, Any]


def _part(rows: Tree, name: str) -> Tree:
    return {k.removeprefix(f"{name}/"): v for k, v in rows.items() if k.startswith(f"{name}/")}


def _run_by_run(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(arrays, …)` compiled, called for one run after the other: `arrays` have a leading
    axis of runs, which is 1 inside. A run then has the same bits alone and in any stack.
    """

    def all_runs(runs: Any, arrays: Any, *rest: Any) -> Any:
        def of(run: Any) -> Any:
            return function(jax.tree.map(lambda x: x[run][None], arrays), *rest)

        def one(run: Any, found: Any) -> Any:
            return jax.tree.map(lambda old, new: old.at[run].set(new[0]), found, of(run))

        count = len(jax.tree.leaves(arrays)[0])
        found = jax.tree.map(
            lambda x: jnp.zeros((count, *x.shape[1:]), x.dtype), jax.eval_shape(of, 0)
        )
        # XLA does not know how many runs there are: one is not compiled in a way of its own.
        return jax.lax.fori_loop(0, runs, one, found)

    compiled: dict[tuple[Any, ...], Any] = {}

    @functools.wraps(function)
    def called(arrays: Any, *rest: Any, fixed: tuple[Any, ...] = ()) -> Any:
        if fixed not in compiled:
            compiled[fixed] = jax.jit(
                lambda runs, arrays, *rest: all_runs(runs, arrays, *rest, *fixed)
            )
        return compiled[fixed](len(jax.tree.leaves(arrays)[0]), arrays, *rest)

    return called


@_run_by_run
def _weighed(arrays: Any, places: Any, site_settings: SiteSettings) -> tuple[Any, Any, Any]:
    p, before, task = arrays
    return values.weighed(p, before, task, places, site_settings, jnp)


def weighed(
    p: Tree, before: Tree, task: Tree, places: Any, site_settings: SiteSettings
) -> tuple[Any, Any, Any]:
    """`values.weighed`, compiled: several times as fast for many worlds at once."""
    found: tuple[Any, Any, Any] = _weighed((p, before, task), places, fixed=(site_settings,))
    return found


def judged(
    p: Tree,
    rows: Tree,
    places: Any,
    baseline: Any,
    tasks: int,
    shift: int,
    site_settings: SiteSettings,
) -> dict[str, Any]:
    """Values before and after decisions [run, row], and the inputs of the afterstates.

    The value before is a mean over `tasks` tasks that could have arrived, taken `shift` rows apart.
    """
    found: Tree = _judged((p, rows, baseline), places, fixed=(tasks, shift, site_settings))
    return found


@_run_by_run
def _judged(arrays: Any, places: Any, tasks: int, shift: int, site_settings: SiteSettings) -> Tree:
    p, rows, baseline = arrays
    before, task = _part(rows, "before"), _part(rows, "task")
    best: Any = 0.0
    for k in range(tasks):
        other = {name: jnp.roll(value, k * shift, 1) for name, value in task.items()}
        # The other task at this moment: its whole deadline, less what this one has used up.
        whole = jnp.roll(task["slack"] + rows["elapsed"], k * shift, 1)
        other["slack"] = whole - rows["elapsed"]
        advantage, fate, rejected = values.weighed(p, before, other, places, site_settings, jnp)
        _, worth = values.best_route(advantage, fate, site_settings.margin, jnp)
        best = best + jnp.maximum(worth, 0.0)
    usual = (load_terms(before["load"], jnp) * baseline).sum(-1)
    evidence = values.evidence_inputs(before["evidence"], places, site_settings, jnp)
    path = values.path_times(before, task, jnp)
    locals_, remotes = values.states_after(before, task, evidence, places, site_settings, jnp)
    action = rows["action"]
    sns = jnp.arange(1, 1 + remotes.shape[-2])
    local = jnp.where((action == 0)[..., None], locals_[..., 1, :], locals_[..., 0, :])
    here = (action[..., None] == sns)[..., None]
    remote = jnp.where(here, remotes[..., 1, :, :], remotes[..., 0, :, :])
    return {
        "found": rejected + best / tasks - usual,
        "left": values.value(p, local, remote, before["load"], jnp),
        "local": local,
        "remote": remote,
        "load": before["load"],
        "chance": values.chance_inputs(before, task, path, evidence, places, site_settings, jnp),
    }


def loss(p: Tree, batch: Tree) -> Any:
    """Squared error of values plus cross-entropy of probabilities, summed over runs."""
    error = values.value(p, batch["local"], batch["remote"], batch["load"], jnp) - batch["target"]
    logits = values.chance_logits(p, batch["chance"], jnp)
    entropy = jnp.logaddexp(0.0, logits) - batch["feasible"] * logits
    return 0.5 * (error**2).mean(1).sum() + entropy.mean((1, 2)).sum()


def _chain(clip: float) -> optax.GradientTransformation:
    """Adam behind a clip of the gradient's norm; the rate, which falls, is applied outside."""
    return optax.chain(optax.clip_by_global_norm(clip), optax.scale_by_adam())


def started(p: Tree, clip: float) -> Tree:
    """The state of a new fit: parameters, their slow average, and the optimizer's state."""
    return {"p": p, "average": p, "optimizer": jax.vmap(_chain(clip).init)(p)}


def fitted(
    state: Tree,
    data: Tree,
    number: Any,
    rate: Any,
    averaging: Any,
    clip: float,
    steps: int,
    batch: int,
) -> Tree:
    """The state after `steps` steps on every run; `number` seeds the choice of samples."""
    found: Tree = _fitted((state, data), number, rate, averaging, fixed=(clip, steps, batch))
    return found


@_run_by_run
def _fitted(arrays: Any, *rest: Any) -> Tree:
    return _fit(*arrays, *rest)


def _fit(
    state: Tree,
    data: Tree,
    number: Any,
    rate: Any,
    averaging: Any,
    clip: float,
    steps: int,
    batch: int,
) -> Tree:
    """The state after `steps` steps on every run at once; `number` seeds the choice of samples."""
    rows, chain = data["target"].shape[1], _chain(clip)

    def step(state: Tree, key: Any) -> tuple[Tree, None]:
        chosen = jax.random.randint(key, (batch,), 0, rows)  # the same for all runs
        part = {name: value[:, chosen] for name, value in data.items()}
        gradient = jax.grad(loss)(state["p"], part)
        move, optimizer = jax.vmap(chain.update)(gradient, state["optimizer"])
        p = jax.tree.map(lambda old, by: old - rate * by, state["p"], move)
        average = jax.tree.map(lambda old, new: old + averaging * (new - old), state["average"], p)
        return {"p": p, "average": average, "optimizer": optimizer}, None

    keys = jax.random.split(jax.random.PRNGKey(number), steps)
    found: Tree = jax.lax.scan(step, state, keys)[0]
    return found
