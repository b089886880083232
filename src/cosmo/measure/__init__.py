"""How good it was: outcome labels, utility, the oracle, metrics, bounds and intervals."""

from cosmo.measure.bounds import fluid_bound, mean_bound
from cosmo.measure.clairvoyant import ClairvoyantBound, clairvoyant_bound
from cosmo.measure.metrics import METRICS, episode_metrics, rejection_quota
from cosmo.measure.oracle import best_action
from cosmo.measure.outcomes import OUTCOME_NAMES, action_names, delays_ms, task_table
from cosmo.measure.reach import lost_tasks, lost_tasks_told
from cosmo.measure.regret import Regret
from cosmo.measure.statistics import Interval, interval, summary, told
from cosmo.measure.utility import task_utility, update_cost, utility, weights_of

__all__ = [
    "METRICS",
    "OUTCOME_NAMES",
    "ClairvoyantBound",
    "Interval",
    "Regret",
    "action_names",
    "best_action",
    "clairvoyant_bound",
    "delays_ms",
    "episode_metrics",
    "fluid_bound",
    "interval",
    "lost_tasks",
    "lost_tasks_told",
    "mean_bound",
    "rejection_quota",
    "summary",
    "task_table",
    "task_utility",
    "told",
    "update_cost",
    "utility",
    "weights_of",
]
