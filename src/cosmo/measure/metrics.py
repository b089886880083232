"""The metrics of one episode (R17), as the paper defines them and a few more."""

import math
from typing import NamedTuple

import numpy as np

from cosmo.measure.outcomes import delays_ms
from cosmo.measure.utility import task_utility, update_cost
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, TN, TP, UNDECIDED, UNJUDGED


class Metric(NamedTuple):
    """What a metric is called and how its values are shown: in tables, figures and on the page."""

    title: str
    meaning: str  # in a few words
    unit: str = ""
    digits: int = 3  # after the point
    better: int = 0  # 1 if more is better, -1 if less is, 0 if neither can be said
    is_share: bool = False  # from 0 to 1

    @property
    def label(self) -> str:
        """The title with the unit, as `update cost (units/s)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


def _share(title: str, meaning: str, better: int) -> Metric:
    return Metric(title, meaning, better=better, is_share=True)


# A metric is defined here and computed in `episode_metrics`; everything else takes it from here.
METRICS = {
    "success_rate": _share("success rate", "on time, of all measured tasks", 1),
    "decision_accuracy": _share("decision accuracy", "decided rightly, with the quota", 1),
    "update_cost_rate": Metric("update cost", "status cost units per second", "units/s", 1, -1),
    "fp_rate": _share("failed after acceptance", "accepted, but failed", -1),
    "fn_rate": _share("needless rejections", "rejected without need, beyond the quota", -1),
    "reject_rate": _share("reject rate", "rejected", 0),
    "accepted_success_rate": _share("accepted success rate", "on time, of the accepted", 1),
    "route_accuracy": _share("route accuracy", "took a feasible route if there was one", 1),
    "episode_update_cost": Metric(
        "episode update cost", "status cost units in the episode", "units", 0, -1
    ),
    "status_rate": Metric(
        "status messages", "sent per second, on results as well", "messages/s", 1, -1
    ),
    "status_bytes_rate": Metric("status bytes", "bytes of status per second", "bytes/s", 0, -1),
    "update_decisions": Metric(
        "update decisions", "decisions whether to send, in the episode", digits=0
    ),
    "utility_per_task": Metric(
        "utility per task", "mean utility, updates not deducted", digits=1, better=1
    ),
    "net_utility_per_task": Metric(
        "net utility per task",
        "the paper's objective: utility less update cost, warm-up included",
        digits=1, better=1,
    ),
    "decision_regret": _share("decision regret", "a fresh status would have changed", -1),
    "decision_age_ms": Metric("decision age", "age of the status at decisions", "ms", 1, -1),
    "status_error": Metric("status error", "how wrong it was at decisions", better=-1),
    "aoi_ms_mean": Metric("mean AoI", "age of the status at the EN, over time", "ms", 1, -1),
    "aoi_ms_peak": Metric("peak AoI", "the same, just before it falls", "ms", 1, -1),
    "delay_ms_mean": Metric("mean delay", "delay of the tasks that were run", "ms", 1, -1),
    "delay_ms_p50": Metric("median delay", "its median", "ms", 1, -1),
    "delay_ms_p95": Metric("95th percentile of the delay", "its 95th percentile", "ms", 1, -1),
    "delay_ms_p99": Metric("99th percentile of the delay", "its 99th percentile", "ms", 1, -1),
}  # fmt: skip
# Of an engine in real time also how well the machine kept up with it, in ms of the nodes' time
# (decisions: real ms); of the worst process of an episode.
MACHINE = {
    "timer_late_ms_p99": Metric("timer lateness", "of timers, 99th percentile", "ms", 2, -1),
    "timer_late_ms_max": Metric("longest timer lateness", "the same, at most", "ms", 2, -1),
    "decision_ms_p99": Metric("decision time", "of decisions, 99th percentile", "ms", 2, -1),
    "fallbacks": Metric("fallbacks", "times that a method made way for another", "", 0, -1),
}
_JUDGED = (  # what takes knowledge of which routes were feasible (R15)
    "decision_accuracy", "fn_rate", "route_accuracy", "utility_per_task", "net_utility_per_task",
)  # fmt: skip


def rejection_quota(scenario: Scenario, cycles: float, decided: int, window_ms: float) -> int:
    """The paper's q: demand beyond what all nodes can serve in the measured window, in tasks."""
    if decided == 0:
        return 0
    excess = max(0.0, cycles - scenario.capacity_cycles_per_ms * window_ms)
    return math.ceil(excess / (cycles / decided))


def episode_metrics(scenario: Scenario, outcome: Outcome, dimensions: int) -> dict[str, float]:
    """All metrics of one finished episode.

    Args:
        scenario: The scenario of the episode.
        outcome: What became of it.
        dimensions: How many numbers a status has, `method.carries`: they are what updates cost.

    Returns:
        Every metric of `METRICS` by its name, of an engine in real time also those of `MACHINE`;
        NaN where there is nothing to be measured.

    """
    tasks = outcome.tasks
    warmup = scenario.episode.warmup_ms
    measured = tasks.time_ms >= warmup
    labels = outcome.outcome[measured]
    tp, fp, tn, fn, unjudged = (
        int(np.count_nonzero(labels == label)) for label in (TP, FP, TN, FN, UNJUDGED)
    )
    decided = tp + fp + tn + fn + unjudged
    if decided + np.count_nonzero(labels == UNDECIDED) != len(labels):
        raise ValueError("the episode is not over: some tasks have no outcome yet")

    demand = float(tasks.work_cycles[measured & (outcome.outcome != UNDECIDED)].sum())
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
    found = {
        "success_rate": _ratio(tp, len(labels)),
        "decision_accuracy": _ratio(tp + tn + justified, decided),
        "update_cost_rate": _ratio(cost, seconds),
        "fp_rate": _ratio(fp, decided),
        "fn_rate": _ratio(fn - justified, decided),
        "reject_rate": _ratio(tn + fn + unjudged, decided),
        "accepted_success_rate": _ratio(tp, tp + fp),
        "route_accuracy": float(took_feasible.mean()) if len(took_feasible) else math.nan,
        "episode_update_cost": cost,
        "status_rate": _ratio(outcome.updates, seconds),
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
    unknown = {} if outcome.judged else dict.fromkeys(_JUDGED, math.nan)
    return found | unknown | dict(outcome.machine)


def _ratio(part: float, whole: float) -> float:
    return float(part) / whole if whole else math.nan
