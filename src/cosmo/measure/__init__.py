"""How good it was: outcome labels, utility, the oracle, metrics, bounds and intervals."""

from cosmo.measure.bounds import fluid_bound, mean_bound
from cosmo.measure.clairvoyant import ClairvoyantBound, clairvoyant_bound
from cosmo.measure.metrics import MACHINE, METRICS, episode_metrics, rejection_quota
from cosmo.measure.outcomes import OUTCOME_NAMES, action_names, delays_ms, task_table
from cosmo.measure.reach import lost_task_notices, lost_tasks
from cosmo.measure.regret import Regret
from cosmo.measure.statistics import Interval, interval, interval_text, summary
from cosmo.measure.utility import task_utility, update_cost, utility, weights_of

__all__ = [
    "MACHINE",
    "METRICS",
    "OUTCOME_NAMES",
    "ClairvoyantBound",
    "Interval",
    "Regret",
    "action_names",
    "clairvoyant_bound",
    "delays_ms",
    "episode_metrics",
    "fluid_bound",
    "interval",
    "interval_text",
    "lost_task_notices",
    "lost_tasks",
    "mean_bound",
    "rejection_quota",
    "summary",
    "task_table",
    "task_utility",
    "update_cost",
    "utility",
    "weights_of",
]
