"""One episode written down decision by decision, for the episode viewer."""

import math
from typing import Any

import numpy as np

from cosmo.control.guard import ask, checked_actions, checked_update
from cosmo.control.method import NOTHING, Method, Setting
from cosmo.engine import worlds as start
from cosmo.scenario import Scenario, per_node
from cosmo.workload import Episode
from cosmo.world import DispatchObservation, Outcome, Truth, UpdateObservation
from cosmo.world.records import FN, FP, IDLE, REQUESTS, STORAGE, TN, TP, UNDECIDED, WORK

OUTCOMES = {TP: "TP", FP: "FP", TN: "TN", FN: "FN", UNDECIDED: "undecided"}
_TASK_COLUMNS = (
    "task", "time", "en", "action", "bytes", "cycles", "deadline", "feasible", "delays", "true",
    "believed", "age", "idle_true", "idle_believed", "storage_believed", "en_backlog",
    "en_requests", "sn_requests", "local_wait", "values", "semantic",
)  # fmt: skip


class Recorder:
    """Collects an episode as plain lists, ready for JSON.

    `tasks` by EN decision, `updates` by SN decision. Times are in ms, backlogs in ms of the node's
    full rate. Of several SNs the first is shown; every task carries its EN.
    """

    def __init__(self, scenario: Scenario, carries: int) -> None:
        self._scenario, self._carries = scenario, carries
        en, sn = scenario.en, scenario.sn
        self._en_speed = per_node(en.slots, en.count)[0] * per_node(en.cycles_per_ms, en.count)[0]
        self._sn_speed = per_node(sn.slots, sn.count)[0] * per_node(sn.cycles_per_ms, sn.count)[0]
        self._tasks: dict[str, list[Any]] = {name: [] for name in _TASK_COLUMNS}
        self._updates: dict[str, list[Any]] = {
            name: [] for name in ("time", "sn", "send", "interval")
        }

    def note_task(
        self,
        seen: DispatchObservation,
        truth: Truth,
        action: int,
        values: Any = None,
        semantic: Any = None,
    ) -> None:
        """One EN decision: what was seen, what was true, what was done."""
        row = {
            "task": int(seen.task[0]),
            "time": seen.time_ms[0],
            "en": int(seen.en[0]),
            "action": action,
            "bytes": seen.input_bytes[0],
            "cycles": seen.cycles[0],
            "deadline": seen.generated_ms[0] + seen.deadline_ms[0] - seen.time_ms[0],
            "feasible": truth.feasible[0].astype(int).tolist(),
            "delays": _all_rounded(truth.delay_ms[0]),
            "true": truth.sn_state[0, 0, WORK] / self._sn_speed,
            "believed": seen.sn_state[0, 0, WORK] / self._sn_speed,
            "age": seen.age_ms[0, 0],
            "idle_true": truth.sn_state[0, 0, IDLE],
            "idle_believed": seen.sn_state[0, 0, IDLE],
            "storage_believed": seen.sn_state[0, 0, STORAGE],
            "en_backlog": seen.en_state[0, WORK] / self._en_speed,
            "en_requests": seen.en_state[0, REQUESTS],
            "sn_requests": truth.sn_state[0, 0, REQUESTS],
            "local_wait": seen.local_wait_ms[0],
            "values": _all_rounded(values),
            "semantic": _all_rounded(semantic),
        }
        for name, value in row.items():
            self._tasks[name].append(_rounded(value) if isinstance(value, float) else value)

    def note_update(self, nodes: UpdateObservation, send: Any, interval_ms: Any) -> None:
        """SN decisions."""
        for row in range(len(nodes)):
            self._updates["time"].append(_rounded(nodes.time_ms[row]))
            self._updates["sn"].append(int(nodes.sn[row]))
            self._updates["send"].append(bool(send[row]))
            self._updates["interval"].append(_rounded(interval_ms[row]))

    def finished(self, outcome: Outcome) -> dict[str, Any]:
        """All of it, with what became of the tasks."""
        which = np.array(self._tasks["task"], np.int64)
        labels = [OUTCOMES[int(label)] for label in outcome.outcome[which]]
        tasks = self._tasks | {"outcome": labels}
        tasks["finished"] = [_rounded(time) for time in outcome.finished_ms[which]]
        return {
            "window_ms": outcome.episode.window_ms,
            "warmup_ms": self._scenario.episode.warmup_ms,
            "sns": self._scenario.sn.count,
            "status": self._carries > NOTHING,
            "tasks": tasks,
            "updates": self._updates,
        }


def record(scenario: Scenario, method: Method, episode: Episode, seed: int) -> dict[str, Any]:
    """Play one episode with a method and write it down.

    If the dispatcher has `values(observations)` and `status(observations)`, what its networks think
    of the actions and see of the SNs is written down as well.
    """
    setting = Setting(scenario, [seed], [0], episode.rate / scenario.en.count, episode.window_ms)
    worlds = start(scenario, [episode], method.carries)
    dispatcher = ask(method, method.dispatcher, setting)
    updater = None if method.carries == NOTHING else ask(method, method.updater, setting)
    observe = getattr(dispatcher, "observe", None)
    values, status = (getattr(dispatcher, name, None) for name in ("values", "status"))
    recorder = Recorder(scenario, method.carries)
    turn = worlds.advance()
    while not turn.over:
        if observe is not None and len(turn.settled):
            ask(method, observe, turn.settled)
        seen = turn.dispatch
        if len(seen):
            if method.privileged:
                seen.truth = turn.truth
            thoughts = None if values is None else values(seen)[0]
            held = None if status is None else status(seen)[0, 0]
            answer = ask(method, dispatcher.decide, seen)
            action = checked_actions(method, answer, len(seen), scenario.sn.count)
            recorder.note_task(seen, turn.truth, int(action[0]), thoughts, held)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            send, interval_ms = checked_update(method, ask(method, updater.decide, turn.update), 1)
            recorder.note_update(turn.update, send, interval_ms)
            worlds.answer(send=send, interval_ms=interval_ms)
        turn = worlds.advance()
    return recorder.finished(worlds.outcome(0))


def _rounded(value: float) -> float | None:
    """Short enough for a page, null where there is no number."""
    number = float(value)
    return None if math.isnan(number) or math.isinf(number) else float(f"{number:.5g}")


def _all_rounded(values: Any) -> list[float | None] | None:
    return None if values is None else [_rounded(value) for value in values]
