"""Uniformly random decisions: the floor of every comparison, and a workout for the world."""

import numpy as np
from numpy.typing import NDArray

from cosmo.node import Dispatcher, DispatchObservation, Method, Site
from cosmo.seeds import Purpose


class DrawPerTask:
    """Uniform draws from [0, 1) for each task of a world, whatever the order of decisions."""

    def __init__(self, site: Site, each: int = 1) -> None:
        self._random, self._each = site.random(Purpose.DISPATCHER), each
        self._drawn = np.empty((len(self._random), 0, each))

    def of(self, tasks: DispatchObservation) -> NDArray[np.float64]:
        """[row] the draw of each task."""
        found: NDArray[np.float64] = self.all_of(tasks)[:, 0]
        return found

    def first(self, count: int) -> NDArray[np.float64]:
        """[world, task, each] the draws of the first `count` tasks."""
        while count > self._drawn.shape[1]:
            more = max(1024, self._drawn.shape[1])
            drawn = [random.random((more, self._each)) for random in self._random]
            self._drawn = np.concatenate([self._drawn, np.stack(drawn)], axis=1)
        return self._drawn[:, :count]

    def all_of(self, tasks: DispatchObservation) -> NDArray[np.float64]:
        """[row, each] the draws of each task."""
        count = int(tasks.task.max(initial=-1)) + 1
        return self.first(count)[tasks.world, tasks.task]


class Random(Method):
    """Decides at random, all actions alike."""

    def dispatcher(self, site: Site) -> Dispatcher:
        """Draws of its own for every world."""
        return RandomDispatcher(site)


class RandomDispatcher(Dispatcher):
    """An action for each task, drawn once."""

    def __init__(self, site: Site) -> None:
        self.draws = DrawPerTask(site)

    def decide(self, tasks: DispatchObservation) -> NDArray[np.int64]:
        """The draw of each task."""
        reached = tasks.reached.sum(axis=1)
        drawn = (self.draws.of(tasks) * (reached + 2)).astype(np.int64)
        return np.where(drawn > reached, tasks.reject, drawn)
