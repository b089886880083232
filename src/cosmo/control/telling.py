"""Whether a trace tells methods apart on a site: rules that know nothing play its beginning."""

from pathlib import Path

from cosmo.control.simulate import simulate
from cosmo.errors import InputError
from cosmo.scenario import Scenario, changed
from cosmo.workload import Tasks

_MOST_TASKS, _MOST_MS, _LEAST_MS = 5000, 60_000.0, 1000.0  # of the trace that are played
_SIMPLE = "all-local", "local-until-full", "all-offload"  # rules that know nothing of the SNs
_ALL = 0.999  # tasks in time


def triviality(trace: Path, tasks: Tasks, scenario: Scenario) -> str | None:
    """A warning if about all tasks are in time whatever a method does; None if methods may differ.

    The beginning of the trace is played: at most 5000 tasks, at most a minute.
    """
    last_ms = float(tasks.time_ms[min(len(tasks), _MOST_TASKS) - 1])
    fields = {
        "engine": "embedded",
        "workload.trace": str(trace),
        "episode.window_ms": min(_MOST_MS, max(_LEAST_MS, last_ms)),
        "episode.warmup_ms": 0.0,
    }
    try:
        played = changed(scenario, fields)
        found = {name: simulate(played, name).metrics["success_rate"].mean for name in _SIMPLE}
    except InputError:
        return None  # what cannot be played on this site is refused where somebody asks for it
    name = max(found, key=lambda each: found[each])
    if found[name] >= _ALL:
        return (
            f"even {name}, which knows nothing of the SNs, has {100 * found[name]:.1f} % of the"
            " tasks in time: success will be about 1 with any method, so that nothing can be"
            " compared"
        )
    return None
