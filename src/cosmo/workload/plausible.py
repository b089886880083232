"""Whether a trace makes sense on a site, before anything is played: rates, load, units."""

from dataclasses import dataclass

import numpy as np

from cosmo.scenario import Scenario
from cosmo.workload.generate import idle_delay_ms
from cosmo.workload.table import Floats, Tasks
from cosmo.workload.windows import duration_ms, mean_rate

_FAR = 30.0  # a median that is so many times off the scenario's own tasks is a unit gone wrong
_LITTLE, _MUCH = 0.05, 10.0  # of the capacity
_FEW, _ALL = 0.01, 0.999  # tasks that could be in time on an idle site
_OTHER_UNITS = {
    "input_bytes": (("kB", 1e3), ("MB", 1e6)),
    "cycles": (("cpu_ms, with --speed", 2e4), ("Mcycles", 1e6)),
    "deadline_ms": (("s", 1e3), ("us", 1e-3)),
}


@dataclass(frozen=True)
class Plausibility:
    """What is to be expected of a trace on a site."""

    tasks: int
    seconds: float
    rate: float  # tasks/s in a cell
    load: float  # demand in units of the capacity of all nodes
    feasible: float  # share of the tasks that would be in time if they came alone
    lines: list[str]  # all of that in words
    warnings: list[str]

    @property
    def is_trivial(self) -> bool:
        """Whether no method can fail, or none can succeed, by these numbers alone."""
        return self.feasible < _FEW or (self.feasible > _ALL and self.load < _LITTLE)


def plausibility(tasks: Tasks, scenario: Scenario) -> Plausibility:
    """Look at the tasks of a trace (at least one) as tasks of a scenario."""
    seconds = duration_ms(tasks) / 1000.0
    rate = mean_rate(tasks, scenario.en.count)
    demand = float(tasks.work_cycles.sum()) / (1000.0 * seconds)
    load = demand / scenario.capacity_cycles_per_ms
    feasible = float(np.mean(_alone(tasks, scenario) <= tasks.deadline_ms))
    lines = [
        f"{len(tasks)} tasks in {seconds:g} s: {_rates(tasks, scenario.en.count, rate)};"
        f" nodes expect {scenario.workload.rate:g} (workload.rate)",
        f"demand: {100 * load:.3g} % of what all nodes of {scenario.name} can do",
        f"{100 * feasible:.3g} % of the tasks would be in time if each came alone",
        *(_medians(name, getattr(tasks, name)) for name in _OTHER_UNITS),
    ]
    return Plausibility(
        len(tasks), seconds, rate, load, feasible, lines,
        _warnings(tasks, scenario, load, feasible),
    )  # fmt: skip


def _rates(tasks: Tasks, ens: int, mean: float) -> str:
    """Tasks/s in a cell, with the extremes where cells differ by more than a tenth of the mean."""
    text = f"{mean:.4g} tasks/s in each of {ens} cell(s)"
    own = np.bincount(tasks.en, minlength=ens) * (mean * ens / len(tasks))
    if own.max() - own.min() <= 0.1 * mean:
        return text
    return f"{text} on average, from {own.min():.4g} to {own.max():.4g}"


def _alone(tasks: Tasks, scenario: Scenario) -> Floats:
    """The shortest delay of each task on an idle site, by its true demand."""
    found = np.empty(len(tasks))
    for en in range(scenario.en.count):
        here = tasks.en == en
        sizes, work = tasks.input_bytes[here], tasks.work_cycles[here]
        found[here] = idle_delay_ms(scenario, en, sizes, work)
    return found


def _medians(name: str, values: Floats) -> str:
    low, middle, high = np.percentile(values, (5, 50, 95))
    return f"{name}: median {middle:.4g}, 90 % of them from {low:.4g} to {high:.4g}"


def _warnings(tasks: Tasks, scenario: Scenario, load: float, feasible: float) -> list[str]:
    found = []
    if feasible < _FEW:
        found.append("hardly any task can be in time on this site: success will be about 0")
    elif feasible > _ALL and load < _LITTLE:
        found.append(
            "all nodes are nearly idle: success will be about 1 whatever a method does, so that"
            " nothing can be compared"
        )
    if load > _MUCH:
        found.append(f"{load:.3g} times as much work comes as all nodes can do")
    own = scenario.workload
    usual = {
        "input_bytes": own.input_bytes, "cycles": own.cycles, "deadline_ms": own.deadline.clip_ms,
    }  # fmt: skip
    for name, (low, high) in usual.items():
        middle = float(np.median(getattr(tasks, name)))
        if low / _FAR <= middle <= high * _FAR:
            continue
        fits = [unit for unit, by in _OTHER_UNITS[name] if low / _FAR <= middle * by <= high * _FAR]
        hint = f"; is the unit {fits[0]}?" if fits else ""
        found.append(
            f"{name} has a median of {middle:.3g}, tasks of the scenario have {low:g} to"
            f" {high:g}{hint}"
        )
    return found
