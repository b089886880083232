"""One episode written down decision by decision, for the episode viewer."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cosmo.control.guard import ask, checked_actions, checked_update
from cosmo.control.method import NOTHING, Method, Setting
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import DispatchObservation, Worlds
from cosmo.world.records import FN, FP, IDLE, REQUESTS, STORAGE, TN, TP, UNDECIDED, WORK

OUTCOMES = {TP: "TP", FP: "FP", TN: "TN", FN: "FN", UNDECIDED: "undecided"}

Values = Callable[[DispatchObservation], Any]


def record(scenario: Scenario, method: Method, episode: Episode, seed: int) -> dict[str, Any]:
    """Plain lists, ready for JSON: `tasks` by decision, `updates` by SN decision, and the links.

    Times are in ms, backlogs in ms of the node's full rate. Of several ENs and SNs, the first SN is
    shown, and every task carries its EN.
    """
    setting = Setting(scenario, [seed], [0], episode.rate / scenario.en.count, episode.window_ms)
    worlds = Worlds(scenario, [episode], status_dimensions=method.carries)
    dispatcher = ask(method, method.dispatcher, setting)
    updater = None if method.carries == NOTHING else ask(method, method.updater, setting)
    observe = getattr(dispatcher, "observe", None)
    values: Values | None = getattr(dispatcher, "values", None)
    status: Values | None = getattr(dispatcher, "status", None)
    sn_speed = _full_rate(scenario, "sn")
    en_speed = _full_rate(scenario, "en")
    tasks: dict[str, list[Any]] = {
        name: []
        for name in (
            "task", "time", "en", "action", "bytes", "cycles", "deadline", "feasible", "delays",
            "true", "believed", "age", "idle_true", "idle_believed", "storage_believed",
            "en_backlog", "en_requests", "sn_requests", "local_wait", "values",
            "semantic",
        )
    }  # fmt: skip
    updates: dict[str, list[Any]] = {name: [] for name in ("time", "sn", "send", "interval")}
    turn = worlds.advance()
    while not turn.over:
        if observe is not None and len(turn.settled):
            ask(method, observe, turn.settled)
        seen, truth = turn.dispatch, turn.truth
        if len(seen):
            if method.privileged:
                seen.truth = truth
            scores = None if values is None else np.asarray(values(seen))[0]
            semantic = None if status is None else np.asarray(status(seen))[0, 0]
            answer = ask(method, dispatcher.decide, seen)
            action = checked_actions(method, answer, len(seen), scenario.sn.count)
            row = {
                "task": int(seen.task[0]),
                "time": seen.time_ms[0],
                "en": int(seen.en[0]),
                "action": int(action[0]),
                "bytes": seen.input_bytes[0],
                "cycles": seen.cycles[0],
                "deadline": seen.generated_ms[0] + seen.deadline_ms[0] - seen.time_ms[0],
                "feasible": truth.feasible[0].astype(int).tolist(),
                "delays": [_rounded(delay) for delay in truth.delay_ms[0]],
                "true": truth.sn_state[0, 0, WORK] / sn_speed,
                "believed": seen.sn_state[0, 0, WORK] / sn_speed,
                "age": seen.age_ms[0, 0],
                "idle_true": truth.sn_state[0, 0, IDLE],
                "idle_believed": seen.sn_state[0, 0, IDLE],
                "storage_believed": seen.sn_state[0, 0, STORAGE],
                "en_backlog": seen.en_state[0, WORK] / en_speed,
                "en_requests": seen.en_state[0, REQUESTS],
                "sn_requests": truth.sn_state[0, 0, REQUESTS],
                "local_wait": seen.local_wait_ms[0],
                "values": None if scores is None else [_rounded(score) for score in scores],
                "semantic": None if semantic is None else [_rounded(each) for each in semantic],
            }
            for name, value in row.items():
                tasks[name].append(_rounded(value) if isinstance(value, float) else value)
            worlds.answer(action=action)
        if updater is not None and len(turn.update):
            send, interval_ms = checked_update(method, ask(method, updater.decide, turn.update), 1)
            updates["time"].append(_rounded(turn.update.time_ms[0]))
            updates["sn"].append(int(turn.update.sn[0]))
            updates["send"].append(bool(send[0]))
            updates["interval"].append(_rounded(interval_ms[0]))
            worlds.answer(send=send, interval_ms=interval_ms)
        turn = worlds.advance()
    outcome = worlds.outcome(0)
    which = np.array(tasks["task"], np.int64)
    labels = outcome.outcome[which]
    tasks["outcome"] = [OUTCOMES[int(label)] for label in labels]
    tasks["finished"] = [_rounded(time) for time in outcome.finished_ms[which]]
    return {
        "window_ms": episode.window_ms,
        "warmup_ms": scenario.episode.warmup_ms,
        "sns": scenario.sn.count,
        "status": method.carries > NOTHING,
        "tasks": tasks,
        "updates": updates,
    }


def _full_rate(scenario: Scenario, kind: str) -> float:
    node = scenario.sn if kind == "sn" else scenario.en
    slots, rate = node.slots, node.cycles_per_ms
    first_slots = slots[0] if isinstance(slots, tuple) else slots
    first_rate = rate[0] if isinstance(rate, tuple) else rate
    return float(first_slots * first_rate)


def _rounded(value: float) -> float | None:
    """Short enough for a page, null where there is no number."""
    number = float(value)
    return None if math.isnan(number) or math.isinf(number) else float(f"{number:.5g}")
