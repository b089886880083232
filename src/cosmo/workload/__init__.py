"""What the world is fed: tasks, background load and link rates, generated or from trace files."""

from cosmo.workload.arrivals import squared_variation
from cosmo.workload.generate import episode, from_tasks, idle_delay_ms
from cosmo.workload.table import BackgroundTasks, Episode, Tasks
from cosmo.workload.trace import read_trace, write_trace

__all__ = [
    "BackgroundTasks",
    "Episode",
    "Tasks",
    "episode",
    "from_tasks",
    "idle_delay_ms",
    "read_trace",
    "squared_variation",
    "write_trace",
]
