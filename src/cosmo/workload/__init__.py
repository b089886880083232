"""What the world is fed: tasks, background load and link rates, generated or from trace files."""

from cosmo.workload.arrivals import squared_variation
from cosmo.workload.event_files import write_events
from cosmo.workload.generate import episode, from_tasks, idle_delay_ms
from cosmo.workload.log_files import Log, read_log
from cosmo.workload.logs import Imported, tasks_of_log
from cosmo.workload.plausible import Plausibility, plausibility
from cosmo.workload.public import FORMATS, imported
from cosmo.workload.table import BackgroundTasks, Episode, NodeEvents, Tasks
from cosmo.workload.trace import read_trace, unread_columns, write_trace
from cosmo.workload.windows import (
    duration_ms,
    is_as_recorded,
    mean_rate,
    recorded_windows,
    trace_of,
    whole_windows,
    widening,
    window,
)

__all__ = [
    "FORMATS",
    "BackgroundTasks",
    "Episode",
    "Imported",
    "Log",
    "NodeEvents",
    "Plausibility",
    "Tasks",
    "duration_ms",
    "episode",
    "from_tasks",
    "idle_delay_ms",
    "imported",
    "is_as_recorded",
    "mean_rate",
    "plausibility",
    "read_log",
    "read_trace",
    "recorded_windows",
    "squared_variation",
    "tasks_of_log",
    "trace_of",
    "unread_columns",
    "whole_windows",
    "widening",
    "window",
    "write_events",
    "write_trace",
]
