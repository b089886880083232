"""How good it was: outcome labels, utility, the oracle, metrics, bounds and intervals."""

from cosmo.measure.bounds import fluid_bound, mean_bound
from cosmo.measure.clairvoyant import ClairvoyantBound, clairvoyant_bound
from cosmo.measure.metrics import MACHINE, METRICS, episode_metrics, rejection_quota
from cosmo.measure.outcomes import OUTCOME_NAMES, action_names, delays_ms, task_table
from cosmo.measure.reach import lost_task_notices, lost_tasks
from cosmo.measure.regret import Regret
from cosmo.measure.statistics import Interval, interval, interval_text, summary
from cosmo.measure.utility import task_utility, update_cost, utility, weights_of
