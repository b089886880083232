"""Tasks that never reached their EN, why, and what can be done about it."""

import math
from collections.abc import Sequence

import numpy as np

from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.walks import walks


def lost_tasks(scenario: Scenario, outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """(tasks whose UE was out of reach until their last chance (R7), tasks that waited for the
    channel beyond it (R4)) of all tasks that have no decision.
    """
    of_ue = walks(scenario.mobility, scenario.ues_stay)
    away = waited = 0
    for outcome in outcomes:
        lost, tasks = outcome.action < 0, outcome.tasks
        last_chance = tasks.time_ms + tasks.deadline_ms + scenario.episode.undecided_after_ms
        gone = (of_ue.leave[tasks.ue] < last_chance) | (of_ue.enter[tasks.ue] > last_chance)
        away += int(np.count_nonzero(lost & gone))
        waited += int(np.count_nonzero(lost & ~gone))
    return away, waited


def lost_task_notices(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """The same in words, a line for each cause with what helps; nothing if no task was lost."""
    away, waited = lost_tasks(scenario, outcomes)
    total = sum(len(outcome.tasks) for outcome in outcomes)
    lines = []
    if away:
        lines.append(
            f"{away} of {total} tasks were lost: their UEs were outside the cell (R7);"
            f" to keep UEs in reach: --set {_remedy(scenario)}"
        )
    if waited:
        lines.append(
            f"{waited} of {total} tasks were lost: the cell's channel was busy until"
            f" {scenario.episode.undecided_after_ms:g} ms after their deadlines (R4); a lower rate"
            " or a higher access.rate_mbps helps"
        )
    return lines


def _remedy(scenario: Scenario) -> str:
    """The field that keeps all UEs in reach, with its value."""
    mobility = scenario.mobility
    if scenario.workload.trace:
        return "workload.trace_ues=present"
    farthest = max(mobility.distances_m)
    if farthest <= mobility.radius_m:  # they start inside and walk out
        return "mobility.at_edge=turn"
    return f"mobility.radius_m={math.ceil(farthest)}"
