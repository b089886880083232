"""Uniformly random decisions: the floor of every comparison, and a workout for the world."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Method, Site
from cosmo.seeds import Purpose


class DrawPerTask:
    """One uniform draw from [0, 1) for each task of a world, whatever the order of decisions."""

    def __init__(self, site: Site) -> None:
        self._random = site.random(Purpose.DISPATCHER)
        self._drawn = np.empty((len(self._random), 0))

    def of(self, tasks: DispatchObservation) -> NDArray[np.float64]:
        """The draw of each task."""
        while len(tasks) and tasks.task.max() >= self._drawn.shape[1]:
            more = max(1024, self._drawn.shape[1])
            drawn = [random.random(more) for random in self._random]
            self._drawn = np.concatenate([self._drawn, np.stack(drawn)], axis=1)
        return self._drawn[tasks.world, tasks.task]


class Random(Method):
    """Decides at random, all actions alike."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return RandomDispatcher(site)


class RandomDispatcher(Dispatcher):
    """An action for each task, drawn once."""

    def __init__(self, site: Site) -> None:
        self._draws = DrawPerTask(site)

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The draw of each task."""
        reached = tasks.reached.sum(axis=1)
        drawn = (self._draws.of(tasks) * (reached + 2)).astype(np.int64)
        return np.where(drawn > reached, tasks.reject, drawn)
