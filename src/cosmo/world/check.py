"""Episodes are checked before they reach compiled code, which trusts every index."""

import numpy as np

from cosmo.errors import InputError
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.workload.table import FAILS, RETURNS, SPEED, NodeEvents
from cosmo.world.records import MOST_ACTIONS


def check_size(scenario: Scenario) -> None:
    """Refuse a scenario with more actions at an EN than the task table can hold."""
    most = MOST_ACTIONS - 1
    if scenario.links.most_sns > most:
        raise InputError(
            f"backhaul.reach: an EN reaches {scenario.links.most_sns} SNs, must be at most {most}"
        )


def _check_events(scenario: Scenario, happens: NodeEvents) -> None:
    ens, nodes = scenario.en.count, scenario.en.count + scenario.sn.count
    if not len(happens.node) == len(happens.factor) == len(happens.what) == len(happens):
        raise InputError("events: all columns must have the same length")
    if len(happens) and not 0 <= happens.node.min() <= happens.node.max() < nodes:
        raise InputError(f"events.node: must be from 0 to {nodes - 1}")
    if not (happens.time_ms >= 0).all() or not (np.diff(happens.time_ms) >= 0).all():
        raise InputError("events.time_ms: must be in order of time, from 0 on")
    if not np.isin(happens.what, (SPEED, FAILS, RETURNS)).all():
        raise InputError("events.what: must be SPEED, FAILS or RETURNS")
    factor = happens.factor[happens.what == SPEED]
    if not ((factor > 0) & np.isfinite(factor)).all():
        raise InputError("events.factor: must be finite and greater than 0")
    for node in np.unique(happens.node[happens.what != SPEED]):
        told = happens.what[(happens.node == node) & (happens.what != SPEED)]
        if node < ens:
            raise InputError("events.node: ENs never fail")
        if (told[::2] != FAILS).any() or (told[1::2] != RETURNS).any():
            raise InputError("events.what: a node fails and comes back in turn")


def check_episode(scenario: Scenario, episode: Episode) -> None:
    """Refuse tasks, background load or link rates that do not fit the scenario."""
    tasks, other = episode.tasks, episode.background
    own = (
        *(tasks.en, tasks.ue, tasks.input_bytes, tasks.cycles, tasks.deadline_ms),
        tasks.work_cycles,
    )
    theirs = (other.sn, other.input_bytes, other.cycles, other.work_cycles)
    if any(len(column) != len(tasks) for column in own):
        raise InputError("tasks: all columns must have the same length")
    if any(len(column) != len(other) for column in theirs):
        raise InputError("background: all columns must have the same length")
    ues = len(scenario.mobility.distances_m)
    for name, column, count in (
        ("tasks.en", tasks.en, scenario.en.count),
        ("tasks.ue", tasks.ue, ues),
        ("background.sn", other.sn, scenario.sn.count),
    ):
        if len(column) and not 0 <= column.min() <= column.max() < count:
            wrong = column[(column < 0) | (column >= count)][0]
            raise InputError(f"{name} = {wrong}: must be from 0 to {count - 1}")
    for name, times in (("tasks", tasks.time_ms), ("background", other.time_ms)):
        if len(times) and not (times[0] >= 0 and np.isfinite(times[-1])):
            raise InputError(f"{name}.time_ms: must be finite and not negative")
        if not (np.diff(times) >= 0).all():
            raise InputError(f"{name}.time_ms: must be in order of time")
    for name, amounts in (
        ("tasks.input_bytes", tasks.input_bytes),
        ("tasks.cycles", tasks.cycles),
        ("tasks.true_cycles", tasks.work_cycles),
        ("tasks.deadline_ms", tasks.deadline_ms),
        ("background.input_bytes", other.input_bytes),
        ("background.cycles", other.cycles),
        ("background.true_cycles", other.work_cycles),
    ):
        if not ((amounts > 0) & np.isfinite(amounts)).all():
            raise InputError(f"{name}: must be finite and greater than 0")
    _check_events(scenario, episode.events)
    links = (2, len(scenario.links))
    steps = episode.rate_factor.shape[-1]
    fades = scenario.fading.factors != (1.0, 1.0)
    if episode.rate_factor.shape[:-1] != links or (steps > 0) != fades:
        raise InputError("rate_factor: must be for the links and the fading of the scenario")
