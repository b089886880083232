"""Who earns what: a task's utility when it is final, an update's cost when it is sent.

And what an episode came to, for the last `info` of it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cosmo.measure import episode_metrics, utility, weights_of
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Batch, Settled

Floats = NDArray[np.float64]


class Ledger:
    """Utilities of the tasks of a batch of worlds."""

    def __init__(self, scenario: Scenario, episodes: Sequence[Episode], dimensions: int) -> None:
        self._weights = weights_of(scenario)
        weights = scenario.utility
        # [SN] A message to each EN that reaches it, and each is charged for.
        per_message = weights.update_weight * weights.update_cost_per_dimension * dimensions
        self.update_price = per_message * np.diff(scenario.links.by_sn[0])
        most = max(len(episode.tasks) for episode in episodes)
        self._generated = np.zeros((len(episodes), most))
        self._bytes = np.zeros((len(episodes), most))
        for world, episode in enumerate(episodes):
            self.restart(world, episode)

    def restart(self, world: int, episode: Episode) -> None:
        """A world has another episode now."""
        tasks = episode.tasks
        missing = len(tasks) - self._generated.shape[1]
        if missing > 0:
            self._generated = np.pad(self._generated, ((0, 0), (0, missing)))
            self._bytes = np.pad(self._bytes, ((0, 0), (0, missing)))
        self._generated[world, : len(tasks)] = tasks.time_ms
        self._bytes[world, : len(tasks)] = tasks.input_bytes

    def utilities(self, settled: Settled) -> Floats:
        """Of tasks that became final, row by row."""
        place = settled.world, settled.task
        delay = settled.time_ms - self._generated[place]
        size = self._bytes[place]
        return utility(self._weights, settled.action, settled.outcome, delay, size)


# A fresh status would have to be shown to the dispatcher, and here that is the caller's.
_NOT_MEASURED = "decision_regret"


def finished_metrics(
    scenario: Scenario, worlds: Batch, world: int, dimensions: int
) -> dict[str, float]:
    """All of `cosmo.measure.METRICS` but the regret of one world that is over (R17), by name.

    `dimensions` is how many numbers a status carries. NaN where there is nothing to measure.
    """
    metrics = episode_metrics(scenario, worlds.outcome(world), dimensions)
    return {name: value for name, value in metrics.items() if name != _NOT_MEASURED}
