"""The parameters of one kind of agent for a stack of runs, and the updates that they owe.

A run owes one update for so many new transitions. What all runs owe is made in one compiled call:
update by update, stacked over the runs; a run that owes fewer than the others pauses.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cosmo.learn.replay import Replay
from cosmo.learn.stack import Layout

Floats = NDArray[np.float32]
Array = Any
Gradient = Callable[[Array, Array, Array], Array]  # (parameters, target parameters, batch) → ∇
Arrays = dict[str, NDArray[Any]]

_STEPS = 32  # updates in one compiled call; more are made by further calls


class Steps(NamedTuple):
    """Of the optimizer: Adam behind a clip of the gradient's norm."""

    learning_rate: float
    gradient_clip: float

    def chain(self) -> optax.GradientTransformation:
        """As Optax has it."""
        clip = optax.clip_by_global_norm(self.gradient_clip)
        return optax.chain(clip, optax.adam(self.learning_rate))


class Learner:
    """One agent's parameters in every run: `parameters` [run, number]."""

    def __init__(
        self,
        start: Floats,
        gradient: Gradient,
        steps: Steps,
        replay: Replay,
        batch: int,
        update_every: int,
        target_every: int = 0,
    ) -> None:
        self.replay, self._batch, self._update_every = replay, batch, update_every
        self.parameters = start
        self.updates = np.zeros(len(start), np.int64)
        self.target = start
        self._state: Any = jax.vmap(steps.chain().init)(start)
        self._advance = _compiled(gradient, steps, target_every)

    def update(self, random: Sequence[np.random.Generator]) -> None:
        """Make the updates that runs owe, on samples drawn by each run's own stream."""
        held = self.replay.held()
        owed = self.replay.written // self._update_every - self.updates
        owed[held < self._batch] = 0
        if not owed.any():
            return
        samples = [
            self.replay.sample(run, int(count) * self._batch, random[run]) if count else None
            for run, count in enumerate(owed)
        ]
        parameters, target, state = self.parameters, self.target, self._state
        for first in range(0, int(owed.max()), _STEPS):
            left = np.clip(owed - first, 0, _STEPS)
            batches = np.zeros(
                (_STEPS, len(owed), self._batch, *self.replay.sample_shape), np.float32
            )
            for run, rows in enumerate(samples):
                if rows is not None and left[run]:
                    rows = rows.reshape(-1, self._batch, *self.replay.sample_shape)
                    batches[: left[run], run] = rows[first : first + left[run]]
            parameters, target, state = self._advance(
                parameters, target, state, self.updates + first, left, batches
            )
        # Copies that can be written to, as at the start: compiled code tells them from others.
        self.parameters, self._state = np.array(parameters), state
        self.target = np.array(target)
        self.updates += owed

    def saved(self) -> Arrays:
        """All that a resumed training needs, as plain arrays."""
        leaves = jax.tree.leaves(self._state)
        kept: Arrays = {
            "parameters": self.parameters,
            "target": self.target,
            "updates": self.updates,
        }
        kept |= {f"optimizer.{place}": np.asarray(leaf) for place, leaf in enumerate(leaves)}
        return kept | {f"replay.{name}": value for name, value in self.replay.saved().items()}

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        self.parameters, self.target = kept["parameters"], kept["target"]
        self.updates = kept["updates"]
        leaves, shape = jax.tree.flatten(self._state)
        self._state = jax.tree.unflatten(
            shape, [kept[f"optimizer.{place}"] for place in range(len(leaves))]
        )
        start = "replay."
        self.replay.restore(
            {name.removeprefix(start): kept[name] for name in kept if name.startswith(start)}
        )


@lru_cache  # further trainers of the same shape need not compile again
def _compiled(
    gradient: Gradient, steps: Steps, target_every: int
) -> Callable[..., tuple[Array, Array, Any]]:
    chain = steps.chain()

    def one(
        flat: Array, target: Array, state: Any, done: Array, active: Array, batch: Array
    ) -> tuple[Array, Array, Any]:
        step, new_state = chain.update(gradient(flat, target, batch), state, flat)
        new = flat + step
        if target_every:
            target = jnp.where(active & ((done + 1) % target_every == 0), new, target)
        keep = lambda a, b: jnp.where(active, a, b)  # noqa: E731
        return keep(new, flat), target, jax.tree.map(keep, new_state, state)

    def many(
        flat: Array, target: Array, state: Any, done: Array, owed: Array, batches: Array
    ) -> tuple[Array, Array, Any]:
        def body(n: Array, carry: tuple[Array, Array, Any]) -> tuple[Array, Array, Any]:
            stacked: tuple[Array, Array, Any] = jax.vmap(one)(
                *carry, done + n, n < owed, batches[n]
            )
            return stacked

        found: tuple[Array, Array, Any] = jax.lax.fori_loop(
            0, owed.max(), body, (flat, target, state)
        )
        return found

    return jax.jit(many)


def start(layout: Layout, random: Sequence[np.random.Generator]) -> Floats:
    """Initial parameters of every run."""
    return np.stack([layout.initial(own) for own in random])
