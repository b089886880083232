"""The metrics of one episode (R17), as the paper defines them and a few more."""

import math

import numpy as np

from cosmo.measure.outcomes import delays_ms
from cosmo.measure.utility import task_utility, update_cost
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED

METRICS = {
    "success_rate": "on time, of all measured tasks",
    "decision_accuracy": "decided rightly, with the quota",
    "update_cost_rate": "status cost units per second",
    "fp_rate": "accepted, but failed",
    "fn_rate": "rejected without need, beyond the quota",
    "reject_rate": "rejected",
    "accepted_success_rate": "on time, of the accepted",
    "route_accuracy": "took a feasible route if there was one",
    "episode_update_cost": "status cost units in the episode",
    "status_bytes_rate": "bytes of status per second",
    "update_decisions": "decisions whether to send, in the episode",
    "utility_per_task": "mean utility, updates not deducted",
    "net_utility_per_task": "mean utility less the cost of updates: the paper's objective",
    "decision_regret": "a fresh status would have changed",
    "decision_age_ms": "age of the status at decisions",
    "status_error": "how wrong it was at decisions",
    "aoi_ms_mean": "age of the status at the EN, over time",
    "aoi_ms_peak": "the same, just before it falls",
    "delay_ms_mean": "delay of the tasks that were run",
    "delay_ms_p50": "its median",
    "delay_ms_p95": "its 95th percentile",
    "delay_ms_p99": "its 99th percentile",
}


def rejection_quota(scenario: Scenario, cycles: float, decided: int, window_ms: float) -> int:
    """The paper's q: demand beyond what all nodes can serve in the measured window, in tasks."""
    if decided == 0:
        return 0
    excess = max(0.0, cycles - scenario.capacity_cycles_per_ms * window_ms)
    return math.ceil(excess / (cycles / decided))


def episode_metrics(scenario: Scenario, outcome: Outcome, dimensions: int) -> dict[str, float]:
    """All of `METRICS` for one finished episode; NaN where nothing is there to be measured."""
    tasks = outcome.tasks
    warmup = scenario.episode.warmup_ms
    measured = tasks.time_ms >= warmup
    labels = outcome.outcome[measured]
    tp, fp, tn, fn = (int(np.count_nonzero(labels == label)) for label in (TP, FP, TN, FN))
    decided = tp + fp + tn + fn
    if decided + np.count_nonzero(labels == UNDECIDED) != len(labels):
        raise ValueError("the episode is not over: some tasks have no outcome yet")

    demand = float(tasks.cycles[measured & (outcome.outcome != UNDECIDED)].sum())
    window_ms = outcome.episode.window_ms - warmup
    quota = rejection_quota(scenario, demand, decided, window_ms)
    justified = min(fn, quota)

    accepted = measured & ((outcome.outcome == TP) | (outcome.outcome == FP))
    took_feasible = outcome.took_feasible[accepted & outcome.any_feasible]
    status = outcome.status
    seconds = len(tasks) / outcome.episode.rate if len(tasks) else 0.0
    cost = update_cost(scenario, outcome, dimensions)
    delay = delays_ms(outcome)[accepted & ~outcome.refused]
    p50, p95, p99 = np.percentile(delay, (50, 95, 99)) if len(delay) else (math.nan,) * 3
    utilities = task_utility(scenario, outcome)
    return {
        "success_rate": _ratio(tp, len(labels)),
        "decision_accuracy": _ratio(tp + tn + justified, decided),
        "update_cost_rate": _ratio(cost, seconds),
        "fp_rate": _ratio(fp, decided),
        "fn_rate": _ratio(fn - justified, decided),
        "reject_rate": _ratio(tn + fn, decided),
        "accepted_success_rate": _ratio(tp, tp + fp),
        "route_accuracy": float(took_feasible.mean()) if len(took_feasible) else math.nan,
        "episode_update_cost": cost,
        "status_bytes_rate": _ratio(outcome.status_bytes, seconds),
        "update_decisions": float(outcome.update_decisions),
        "utility_per_task": _ratio(utilities[measured].sum(), len(labels)),
        # R32, of the whole episode, as its updates are.
        "net_utility_per_task": _ratio(
            utilities.sum() - scenario.utility.update_weight * cost, len(tasks)
        ),
        "decision_regret": math.nan if status is None else status.decision_regret,
        "decision_age_ms": math.nan if status is None else status.decision_age_ms,
        "status_error": math.nan if status is None else status.decision_error,
        "aoi_ms_mean": math.nan if status is None else status.aoi_ms,
        "aoi_ms_peak": math.nan if status is None else status.peak_aoi_ms,
        "delay_ms_mean": float(delay.mean()) if len(delay) else math.nan,
        "delay_ms_p50": float(p50),
        "delay_ms_p95": float(p95),
        "delay_ms_p99": float(p99),
    }


def _ratio(part: float, whole: float) -> float:
    return float(part) / whole if whole else math.nan
