"""Fits the parameters of the multi-node controller: each generation plays new random worlds."""

import multiprocessing
import weakref
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from cosmo.control import play
from cosmo.interrupts import leave_with_parent
from cosmo.learn.next.multi_node.config import MultiNodeConfig
from cosmo.learn.next.multi_node.evolution import (
    SIZE,
    Climb,
    candidates,
    centre_at,
    gradient,
    scaled_at,
)
from cosmo.learn.next.multi_node.kinds import some_kind
from cosmo.learn.run import TRAINING_EPISODES, Arrays, Curve
from cosmo.measure import episode_metrics
from cosmo.node import Dispatcher, Method, Site, Updater
from cosmo.policy.next.multi_node.scaling import ScaledParameters, at_site
from cosmo.policy.rules import multi_node, multi_node_updates
from cosmo.scenario import Scenario, changed
from cosmo.seeds import Purpose, stream
from cosmo.workload import Episode, episode

Floats = NDArray[np.float64]
World = tuple[Scenario, Episode]


class MultiNodeMethod(Method):
    """The multi-node controller with the parameters that were fitted."""

    carries = 1

    def __init__(self, scaled: ScaledParameters) -> None:
        self._scaled = scaled

    def dispatcher(self, site: Site) -> Dispatcher:
        """Return the ENs' side of the multi-node controller, scaled to `site`."""
        return multi_node.dispatcher(site, at_site(self._scaled, site))

    def updater(self, site: Site) -> Updater:
        """Return the SNs' side of the multi-node controller, scaled to `site`."""
        return multi_node_updates.updater(site, at_site(self._scaled, site))


def played(
    worlds: Sequence[World], tried: Sequence[ScaledParameters], seed: int
) -> list[list[dict[str, float]]]:
    """The metrics of each candidate in each world, [candidate][world]."""
    return [[_played_one(*world, each, seed) for world in worlds] for each in tried]


def _played_one(
    where: Scenario, what: Episode, scaled: ScaledParameters, seed: int
) -> dict[str, float]:
    method = MultiNodeMethod(scaled)
    # A GPU does not help with a single world.
    [outcome] = play(where, method, [what], seed, device="cpu")
    found = episode_metrics(where, outcome, method.carries)
    utility = where.utility
    a_task = utility.update_weight / (utility.true_positive * utility.value)
    # What a task's share of the updates costs, in successful tasks.
    measured_s = 1e-3 * (where.episode.window_ms - where.episode.warmup_ms)
    tasks = max(int((what.tasks.time_ms >= where.episode.warmup_ms).sum()), 1)
    found["paid"] = a_task * found["update_cost_rate"] * measured_s / tasks
    found["scale"] = utility.true_positive * utility.value
    return found


class MultiNodeTrainer:
    """Trains one run; results have the same bits for any number of worker processes."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        config: MultiNodeConfig,
        generations: int,
        workers: int = 1,
    ) -> None:
        self._scenario = changed(scenario, {"episode.warmup_ms": config.warmup_ms})
        self._seed, self._config, self._generations = seed, config, generations
        self._climb = Climb(centre_at(config.start))
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def train_generation(self, number: int) -> Curve:
        """Train the next generation; returns the mean metrics of its candidates."""
        config = self._config
        random = stream(self._seed, Purpose.MULTI_NODE, TRAINING_EPISODES + number)
        worlds = [self._world(random, number, place) for place in range(config.worlds)]
        steps = random.standard_normal((config.pairs, SIZE))
        tried = candidates(self._climb.centre, steps, config.deviation)
        metrics = self._all_played(worlds, tried)
        returns = np.array([np.mean([self._earned(m) for m in each]) for each in metrics])
        done = number / self._generations
        rate = config.learning_rate * (1.0 - (1.0 - config.last) * done)
        self._climb.step(gradient(steps, returns, config.deviation), rate)
        if number >= (1.0 - config.averaged) * self._generations:
            self._climb.count()
        flat = [m for each in metrics for m in each]
        names = ("success_rate", "decision_accuracy", "update_cost_rate", "utility_per_task")
        mean = {name: float(np.nanmean([each[name] for each in flat])) for name in names}
        return mean | {"reward": mean.pop("utility_per_task"), "epsilon": 0.0}

    def _world(self, random: np.random.Generator, number: int, place: int) -> World:
        config = self._config
        drawn = some_kind(self._scenario, config.kinds, random)
        needed_ms = 1000.0 * config.tasks / (drawn.workload.rate * drawn.en.count)
        window_ms = float(np.clip(needed_ms + config.warmup_ms, *config.window_ms))
        drawn = changed(drawn, {"episode.window_ms": window_ms})
        which = TRAINING_EPISODES + number * config.worlds + place
        return drawn, episode(drawn, self._seed, which)

    def _all_played(
        self, worlds: list[World], tried: list[ScaledParameters]
    ) -> list[list[dict[str, float]]]:
        """The metrics [candidate][world], the same for any number of processes."""
        if self._workers == 1:
            return played(worlds, tried, self._seed)
        if self._pool is None:
            # JAX has threads in this process, which a forked one would not have.
            spawned = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._workers, spawned, leave_with_parent)
            weakref.finalize(self, self._pool.shutdown)
        shares = np.array_split(np.arange(len(tried)), self._workers)
        parts = [[tried[place] for place in share] for share in shares]
        return [*chain(*self._pool.map(played, repeat(worlds), parts, repeat(self._seed)))]

    def _earned(self, found: dict[str, float]) -> float:
        if self._config.objective == "utility":
            return found["net_utility_per_task"] / found["scale"]
        return found["success_rate"] - self._config.update_cost_weight * found["paid"]

    @property
    def scaled(self) -> ScaledParameters:
        """The present parameters."""
        return scaled_at(self._climb.delivered)

    def saved(self) -> Arrays:
        """The state that a resumed training needs."""
        climb = self._climb
        rest = np.array([climb.taken, climb.averaged])
        rows = {"centre": climb.centre, "mean": climb.mean, "square": climb.square}
        return {**rows, "summed": climb.summed, "counts": rest}

    def restore(self, kept: Arrays) -> None:
        """The inverse of `saved`."""
        climb = self._climb
        climb.centre, climb.mean, climb.square = kept["centre"], kept["mean"], kept["square"]
        climb.summed = kept["summed"]
        climb.taken, climb.averaged = (int(each) for each in kept["counts"])
