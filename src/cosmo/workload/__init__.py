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
