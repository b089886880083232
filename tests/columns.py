"""Names that the command line promises."""

TASK_COLUMNS = [
    "task",
    "ue",
    "action",
    "outcome",
    "generated_ms",
    "decided_ms",
    "finished_ms",
    "delay_ms",
    "deadline_ms",
    "heard",
    "heard_ms",
]

METRIC_NAMES = [
    "success_rate",
    "decision_accuracy",
    "update_cost_rate",
    "fp_rate",
    "fn_rate",
    "reject_rate",
    "accepted_success_rate",
    "route_accuracy",
    "episode_update_cost",
    "update_decisions",
    "utility_per_task",
    "delay_ms_mean",
    "delay_ms_p95",
]
