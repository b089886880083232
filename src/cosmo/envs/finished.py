"""How good a finished episode was, for the last `info` of it."""

from cosmo.measure import episode_metrics
from cosmo.scenario import Scenario
from cosmo.world import Batch

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
