"""One episode written down decision by decision, for the episode viewer."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.control import play
from cosmo.errors import InputError
from cosmo.files import MOST_RECORD, read_bytes
from cosmo.measure import OUTCOME_NAMES, episode_metrics
from cosmo.node import (
    IDLE,
    NOTHING,
    RAW,
    REQUESTS,
    WORK,
    Dispatcher,
    DispatchObservation,
    Method,
    ResultObservation,
    Site,
    UpdateObservation,
    Updater,
)
from cosmo.node.guard import ask
from cosmo.report.journeys import Journeys, fault_of_map
from cosmo.scenario import Scenario
from cosmo.workload import Episode
from cosmo.world import Outcome, Truth, Watcher, site_of
from cosmo.world.watch import AskTruth

FORMAT = 2
_TASK_COLUMNS = (
    "task", "time", "en", "action", "bytes", "cycles", "deadline", "delays", "true", "believed",
    "age", "idle_true", "idle_believed", "en_backlog", "en_requests", "sn_requests", "local_wait",
    "values", "semantic", "feasible",
)  # fmt: skip
_UPDATES = ("time", "sn", "send", "interval")
# Of a recording, beside its format.
_PARTS: dict[str, Any] = {
    "window_ms": int | float, "warmup_ms": int | float, "ens": int, "sns": int, "reach": list,
    "metrics": dict, "tasks": dict, "updates": dict,
}  # fmt: skip
_SEEN = fields(DispatchObservation)
_METRICS = ("success_rate", "net_utility_per_task", "update_cost_rate", "fn_rate")


class Recorder(Watcher):
    """Collects an episode as plain lists, ready for JSON.

    `tasks` by EN decision, `updates` by SN decision; a column has an entry for each. Times are in
    ms, backlogs in ms of the node's full rate. What concerns SNs (`true`, `believed`, `age`,
    `idle_true`, `idle_believed`, `sn_requests`, `semantic`) has an entry for each SN that the
    task's EN reaches, in the order of `reach`: [EN][k] is the number of its k-th SN (R30). Where an
    EN reaches fewer SNs than others do, entries are null. `map` is what `Journeys` has collected,
    where the engine keeps a journal.
    """

    wants_journal = True

    def __init__(self, scenario: Scenario, carries: int) -> None:
        self._scenario, self._carries = scenario, carries
        site = site_of(scenario)
        self._en_speed, self._sn_speed = site.en.full_rate, site.sn.full_rate
        self._idle, self._reach = site.sn.idle_state, site.links.reach
        self._raw = carries == RAW  # unless the updater that is there makes numbers of its own
        self._seen: dict[str, list[NDArray[Any]]] = {each.name: [] for each in _SEEN}
        self._true: dict[str, list[NDArray[Any]]] = {name: [] for name in Truth._fields}
        self._actions: list[int] = []
        self._values: list[Any] = []
        self._updates: dict[str, list[Any]] = {name: [] for name in _UPDATES}
        self._journeys = Journeys(scenario)

    def begins(self, site: Site, dispatcher: Dispatcher, updater: Updater | None) -> None:
        """Whom to ask for what it thinks."""
        self._explain = dispatcher.explain
        self._raw = updater is not None and updater.sends_raw

    def asked(self, tasks: DispatchObservation, truth: AskTruth) -> None:
        """Keep what is true, and what the dispatcher thinks, until it has decided."""
        thoughts = ask(self, self._explain, tasks)
        self._thoughts = None if thoughts is None else np.asarray(thoughts).reshape(1, -1)[0]
        self._truth = truth()

    def dispatched(self, tasks: DispatchObservation, actions: NDArray[np.int64]) -> None:
        """One EN decision of the only world."""
        self.note_task(tasks, self._truth, int(actions[0]), self._thoughts)

    def updated(
        self, nodes: UpdateObservation, send: NDArray[np.bool_], interval_ms: NDArray[np.float64]
    ) -> None:
        """Record what SNs decided about sending statuses."""
        self._journeys.updated(nodes, send)
        for row in range(len(nodes)):
            self._updates["time"].append(_rounded(nodes.time_ms[row]))
            self._updates["sn"].append(int(nodes.sn[row]))
            self._updates["send"].append(bool(send[row].any()))
            self._updates["interval"].append(_rounded(interval_ms[row]))

    def ridden(self, results: ResultObservation, ride: NDArray[np.bool_]) -> None:
        """Statuses that ride on results (R31) count as sent, without an interval."""
        self._journeys.ridden(results, ride)
        for row in np.flatnonzero(ride):
            self._updates["time"].append(_rounded(results.time_ms[row]))
            self._updates["sn"].append(int(results.sn[row]))
            self._updates["send"].append(True)
            self._updates["interval"].append(None)

    def note_task(
        self, seen: DispatchObservation, truth: Truth, action: int, values: Any = None
    ) -> None:
        """One EN decision: what was seen, what was true, what was done.

        Copied as it is: what is made of it is made of all decisions at once, in the end.
        """
        for name, column in self._seen.items():
            column.append(getattr(seen, name).copy())
        for name, column in self._true.items():
            column.append(getattr(truth, name).copy())
        self._actions.append(action)
        self._values.append(None if values is None else np.array(values, float))

    def _columns(self) -> dict[str, list[Any]]:
        """`_TASK_COLUMNS` of all decisions."""
        if not self._actions:
            return {name: [] for name in _TASK_COLUMNS}
        seen = DispatchObservation(**{k: np.concatenate(own) for k, own in self._seen.items()})
        truth = Truth(**{k: np.concatenate(own) for k, own in self._true.items()})
        speed = self._sn_speed[seen.sn]
        return {
            "task": truth.place.tolist(),  # ENs count their own
            "time": _all_rounded(seen.time_ms),
            "en": seen.en.tolist(),
            "action": self._actions,
            "bytes": _all_rounded(seen.input_bytes),
            "cycles": _all_rounded(seen.cycles),
            "deadline": _all_rounded(seen.slack_ms),
            "delays": _all_rounded(truth.delay_ms),
            "true": _all_rounded(truth.sn_state[:, :, WORK] / speed),
            "age": _all_rounded(seen.age_ms),
            "idle_true": _all_rounded(truth.sn_state[:, :, IDLE]),
            "en_backlog": _all_rounded(seen.en_state[:, WORK] / self._en_speed[seen.en]),
            "en_requests": _all_rounded(seen.en_state[:, REQUESTS]),
            "sn_requests": _all_rounded(truth.sn_state[:, :, REQUESTS]),
            "local_wait": _all_rounded(seen.local_wait_ms),
            "values": _thoughts(self._values),
            **self._believed(seen, speed),
            "feasible": truth.feasible.astype(int).tolist(),
        }

    def _believed(
        self, seen: DispatchObservation, speed: NDArray[np.float64]
    ) -> dict[str, list[Any]]:
        """The last status of each SN: a backlog if it is raw, else the numbers alone."""
        heard, nothing = seen.heard, [None] * len(seen)
        if self._raw:
            state = np.where(heard[:, :, None], seen.status[:, :, :RAW], self._idle[seen.sn])
            return {
                "believed": _all_rounded(state[:, :, WORK] / speed),
                "idle_believed": _all_rounded(state[:, :, IDLE]),
                "semantic": nothing,
            }
        told = [
            [numbers if known else None for numbers, known in zip(*row, strict=True)]
            for row in zip(_all_rounded(seen.status), heard.tolist(), strict=True)
        ]
        return {"believed": nothing, "idle_believed": nothing, "semantic": told}

    def finished(self, outcome: Outcome) -> dict[str, Any]:
        """All of it, with what became of the tasks and a few metrics of the episode."""
        made = self._columns()
        which = np.array(made["task"], np.int64)
        labels = [OUTCOME_NAMES[label] for label in outcome.outcome[which].tolist()]
        tasks = {name: made[name] for name in _TASK_COLUMNS}
        tasks |= {"outcome": labels, "finished": _all_rounded(outcome.finished_ms[which])}
        metrics = episode_metrics(self._scenario, outcome, self._carries)
        shown = {} if outcome.journal is None else {"map": self._journeys.finished(outcome, which)}
        return {
            "format": FORMAT,
            "window_ms": outcome.episode.window_ms,
            "warmup_ms": self._scenario.episode.warmup_ms,
            "ens": self._scenario.en.count,
            "sns": int(self._reach.shape[1]),
            "reach": self._reach.tolist(),
            "status": self._carries > NOTHING,
            "metrics": {name: _rounded(metrics[name]) for name in _METRICS},
            "tasks": tasks,
            "updates": self._updates,
            **shown,
        }


def record(scenario: Scenario, method: Method, episode: Episode, seed: int) -> dict[str, Any]:
    """Play one episode with a method and write it down."""
    recorder = Recorder(scenario, method.carries)
    [outcome] = play(scenario, method, [episode], seed, watchers=[recorder])
    return recorder.finished(outcome)


def read_recording(path: Path) -> dict[str, Any]:
    """A recorded episode from a file of `RecordEpisode`; InputError in one line if it is none."""
    try:
        text = read_bytes(path, MOST_RECORD).decode()
        found = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except OSError as error:
        raise InputError(f"'{path}': cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise InputError(f"'{path}': is not a recorded episode (not JSON in UTF-8)") from None
    if not isinstance(found, dict) or "tasks" not in found or "updates" not in found:
        raise InputError(f"'{path}': is not a recorded episode (it has no tasks and updates)")
    if found.get("format") != FORMAT:
        raise InputError(
            f"'{path}': has format {found.get('format', 1)}, this version reads {FORMAT};"
            " record it again"
        )
    wrong = _fault_of(found)
    if wrong:
        raise InputError(f"'{path}': is not a recorded episode ({wrong})")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def _fault_of(found: dict[str, Any]) -> str:
    """What the viewer would stumble over, in a few words; empty if nothing."""
    for name, kinds in _PARTS.items():
        if not isinstance(found.get(name), kinds) or isinstance(found[name], bool):
            return f"{name} is missing, or is something else"
    for table, names in (("tasks", (*_TASK_COLUMNS, "outcome", "finished")), ("updates", _UPDATES)):
        columns = [found[table].get(name) for name in names]
        if not all(isinstance(column, list) for column in columns):
            return f"columns of {table} are missing"
        if len({len(column) for column in columns}) > 1:
            return f"columns of {table} have different lengths"
    return fault_of_map(found)


def _rounded(value: float) -> float | None:
    """Short enough for a page, null where there is no number."""
    number = float(value)
    return None if math.isnan(number) or math.isinf(number) else float(f"{number:.5g}")


def _all_rounded(values: NDArray[np.float64]) -> list[Any]:
    """The same of an array of any shape, as lists, at once: recordings have many numbers."""
    known = np.isfinite(values)
    safe = np.where(known & (values != 0.0), np.abs(values), 1.0)
    digits = 4 - np.floor(np.log10(safe)).astype(int)  # after the point, for five in all
    up, down = 10.0 ** np.maximum(digits, 0), 10.0 ** np.maximum(-digits, 0)
    rounded = np.rint(np.where(known, values, 0.0) * up / down) * down / up
    if known.all():
        return list(rounded.tolist())
    found = np.asarray(rounded, object)
    found[~known] = None
    return list(found.tolist())


def _thoughts(values: list[Any]) -> list[Any]:
    """What the dispatcher thought of its actions, rounded; null where it does not say."""
    if any(value is None for value in values):
        return [None if value is None else _all_rounded(value) for value in values]
    return _all_rounded(np.array(values))
