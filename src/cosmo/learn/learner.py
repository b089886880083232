"""The parameters of one kind of agent for a stack of runs, and the updates that they owe.

A run owes one update for so many new transitions. What all runs owe is made in one compiled call, a
run after the other: every run is computed by the same code on its own numbers, so that it has the
same bits in any stack (with `vmap`, rounding depends on how many runs there are, and it is not
faster on a CPU), and none waits for one that owes more.
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
Made = tuple[Array, Array, Any]  # parameters, target parameters, the optimizer's state
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
        made = self.parameters, self.target, self._state
        for first in range(0, int(owed.max()), _STEPS):
            left = np.clip(owed - first, 0, _STEPS)
            batches = np.zeros(
                (len(owed), _STEPS, self._batch, *self.replay.sample_shape), np.float32
            )
            for run, rows in enumerate(samples):
                if rows is not None and left[run]:
                    rows = rows.reshape(-1, self._batch, *self.replay.sample_shape)
                    batches[run, : left[run]] = rows[first : first + left[run]]
            made = self._advance(made, self.updates + first, left, batches, len(owed))
        parameters, target, self._state = made
        # Copies that can be written to, as at the start: compiled code tells them from others.
        self.parameters, self.target = np.array(parameters), np.array(target)
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
def _compiled(gradient: Gradient, steps: Steps, target_every: int) -> Callable[..., Made]:
    chain = steps.chain()

    def own(made: Made, done: Array, owed: Array, batches: Array) -> Made:
        """What one run owes."""

        def one(n: Array, made: Made) -> Made:
            flat, target, state = made
            step, state = chain.update(gradient(flat, target, batches[n]), state, flat)
            flat = flat + step
            if target_every:
                target = jnp.where((done + n + 1) % target_every == 0, flat, target)
            return flat, target, state

        found: Made = jax.lax.fori_loop(0, owed, one, made)
        return found

    def all_runs(made: Made, done: Array, owed: Array, batches: Array, runs: Array) -> Made:
        def one(run: Array, made: Made) -> Made:
            mine = jax.tree.map(lambda all_of_it: all_of_it[run], made)
            mine = own(mine, done[run], owed[run], batches[run])
            found: Made = jax.tree.map(lambda old, new: old.at[run].set(new), made, mine)
            return found

        # XLA does not know how many runs there are: one run is not compiled in a way of its own.
        found: Made = jax.lax.fori_loop(0, runs, one, made)
        return found

    return jax.jit(all_runs)


def start(layout: Layout, random: Sequence[np.random.Generator]) -> Floats:
    """Initial parameters of every run."""
    return np.stack([layout.initial(own) for own in random])
