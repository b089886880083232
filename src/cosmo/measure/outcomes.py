"""Names of the outcomes and actions of a task, and the tables people read."""

import numpy as np
import polars

from cosmo.node import DONE, EXPIRED, GIVEN_UP, REFUSED
from cosmo.scenario import Scenario
from cosmo.world import Outcome
from cosmo.world.records import FN, FP, NO_ACTION, PENDING, TN, TP, UNDECIDED, UNJUDGED

OUTCOME_NAMES = {
    PENDING: "pending",
    TP: "TP",
    FP: "FP",
    TN: "TN",
    FN: "FN",
    UNDECIDED: "none",
    UNJUDGED: "rejected",
}
HEARD_NAMES = {
    0: "nothing",
    DONE: "done",
    REFUSED: "refused",
    GIVEN_UP: "given up",
    EXPIRED: "expired",
}


def action_names(sns: int) -> dict[int, str]:
    """What an action is called; SNs are numbered from 1 where there are several."""
    offload = {1: "offload"} if sns == 1 else {s: f"offload:{s}" for s in range(1, sns + 1)}
    return {NO_ACTION: "none", 0: "local", **offload, sns + 1: "reject"}


def delays_ms(outcome: Outcome) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """From generation to the final outcome, of tasks that the EN accepted; NaN for others."""
    accepted = (outcome.outcome == TP) | (outcome.outcome == FP)
    return np.where(accepted, outcome.finished_ms - outcome.tasks.time_ms, np.nan)


def task_table(outcomes: list[Outcome], scenario: Scenario) -> polars.DataFrame:
    """The tasks of finished episodes as a table.

    Args:
        outcomes: What became of the episodes, as `play` and `Simulation.outcomes` have it.
        scenario: Their scenario.

    Returns:
        A row for each task, with the columns of `cosmo simulate --tasks-out` (times in ms). `en`
        and `episode` are there where there are several; `heard` (what the EN heard of it: done,
        refused, given up, expired, or nothing) and `heard_ms` where the engine records them.

    """
    frames, ens, sns = [], scenario.en.count, scenario.sn.count
    names = action_names(sns)
    for number, outcome in enumerate(outcomes):
        tasks = outcome.tasks
        columns = {
            "task": np.arange(len(tasks)),
            "ue": tasks.ue,
            "action": _named(_by_number(outcome, scenario), names),
            "outcome": _named(outcome.outcome, OUTCOME_NAMES),
            "generated_ms": tasks.time_ms,
            "decided_ms": outcome.decided_ms,
            "finished_ms": outcome.finished_ms,
            "delay_ms": delays_ms(outcome),
            "deadline_ms": tasks.deadline_ms,
        }
        heard = outcome.heard()
        if heard is not None:
            columns["heard"], columns["heard_ms"] = _named(heard[0], HEARD_NAMES), heard[1]
        if ens > 1:
            columns["en"] = tasks.en
        if len(outcomes) > 1:
            columns["episode"] = np.full(len(tasks), number)
        frames.append(polars.DataFrame(columns, nan_to_null=True))
    return polars.concat(frames)


def _by_number(outcome: Outcome, scenario: Scenario) -> np.ndarray:
    """Actions with the SNs' own numbers in place of their places in an EN's reach (R30)."""
    links, action = scenario.links, outcome.action.astype(np.int64)
    offloaded = (action > 0) & (action <= links.most_sns)
    link = links.first[outcome.tasks.en[offloaded]] + action[offloaded] - 1
    action[action > links.most_sns] = scenario.sn.count + 1
    action[offloaded] = links.sn[link] + 1
    return action


def _named(codes: np.ndarray, names: dict[int, str]) -> polars.Series:
    # Strings are made once a name, not once a task.
    first = min(names)
    table = polars.Series([names.get(code, "") for code in range(first, max(names) + 1)])
    return table.gather(codes.astype(np.int64) - first)
