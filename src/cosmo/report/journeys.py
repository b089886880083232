"""Where every task and status of an episode was, and when: what the map of the site draws."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cosmo.node import REQUESTS, ResultObservation, UpdateObservation
from cosmo.scenario import Scenario
from cosmo.workload.table import FAILS
from cosmo.world import Outcome, site_of
from cosmo.world.records import BEGAN, FN, FP, LEFT, NO_ACTION, REACHED, TAKEN, TN, TP, Records

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# What becomes of a task, in the words of the map; `open` has not ended.
FATES = ("open", "in time", "late", "refused", "lost", "rejected")
_OPEN, _IN_TIME, _LATE, _REFUSED, _LOST, _REJECTED = range(len(FATES))
_TASKS = ("ue", "generated", "decided", "reached", "began", "left", "heard", "fate")
_TENANTS = ("sn", "reached", "began", "left")
_STATUSES = ("en", "sn", "sent", "taken", "told")
_EVENTS = ("time", "node", "what", "factor")
_NODES = ("en_slots", "sn_slots")


class Stays(NamedTuple):
    """[task] when it came into the node that ran it, began and left it; NaN: it has not (yet). The
    tenants' tasks follow those of ENs.
    """

    reached: Floats
    began: Floats
    left: Floats


def stays_of(outcome: Outcome, sn_of_task: Ints, ens: int) -> Stays:
    """Read off the journal; tasks that were in an SN when it failed left it then (R38).

    `sn_of_task` has the SN of every task, the tenants' included; -1 of those that none has seen.
    """
    assert outcome.journal is not None
    found = np.full((3, len(sn_of_task)), np.nan)
    for what in (REACHED, BEGAN, LEFT):
        rows = outcome.journal[outcome.journal["what"] == what]
        found[what, rows["subject"]] = rows["time"]
    stays, events = Stays(*found), outcome.episode.events
    for time, node in zip(
        events.time_ms[events.what == FAILS], events.node[events.what == FAILS], strict=True
    ):
        there = (sn_of_task == node - ens) & (stays.reached <= time) & np.isnan(stays.left)
        if len(outcome.journal) and outcome.journal["time"][-1] >= time:
            stays.left[there] = time
    return stays


class Journeys:
    """Collects the statuses that SNs send; makes columns of them and of the engine's journal.

    `told` of a status is the number of tasks at its SN when it was made, whatever its numbers say.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._links, self._site = scenario.links, site_of(scenario)
        self.sent: list[tuple[int, int, float, int]] = []  # EN, SN, time, tasks there

    def updated(self, nodes: UpdateObservation, send: NDArray[np.bool_]) -> None:
        """SNs have decided whom to send a status."""
        for row, k in zip(*(each.tolist() for each in np.nonzero(send)), strict=True):
            state = nodes.sn_state[row]
            self._add(nodes.en[row, k], nodes.sn[row], nodes.time_ms[row], state[REQUESTS])

    def ridden(self, results: ResultObservation, ride: NDArray[np.bool_]) -> None:
        """Statuses that ride on results."""
        for row in np.flatnonzero(ride).tolist():
            state = results.sn_state[row]
            self._add(results.en[row], results.sn[row], results.time_ms[row], state[REQUESTS])

    def _add(self, en: np.int64, sn: np.int64, time_ms: float, tasks: float) -> None:
        self.sent.append((int(en), int(sn), float(time_ms), int(tasks)))

    def statuses(self, outcome: Outcome) -> dict[str, list[Any]]:
        """All of them so far: to whom, from whom, when they were sent and taken (null: not)."""
        assert outcome.journal is not None
        taken = self.taken(outcome.journal)
        arrived = [taken.get(each[:3], np.nan) for each in self.sent]
        return {**sent_columns(self.sent), "taken": as_list(np.array(arrived, float))}

    def taken(self, journal: Records) -> dict[tuple[int, int, float], float]:
        """When ENs took statuses, by (EN, SN, when it was made), in these rows of a journal."""
        rows, links = journal[journal["what"] == TAKEN], self._links
        ens, sns = links.en[rows["subject"]].tolist(), links.sn[rows["subject"]].tolist()
        keys = zip(ens, sns, rows["value"].tolist(), strict=True)
        return dict(zip(keys, rows["time"].tolist(), strict=True))

    def nodes(self) -> dict[str, Any]:
        """What is there: slots of each EN and SN, devices of a cell."""
        site = self._site
        return {
            "en_slots": site.en.slots.tolist(),
            "sn_slots": site.sn.slots.tolist(),
            "fates": list(FATES),
        }

    def columns(self, outcome: Outcome, which: Ints) -> dict[str, dict[str, NDArray[Any]]]:
        """Columns of the chosen tasks, of all tenants' tasks, and of what happens to nodes, so far;
        NaN where a time has not come.
        """
        tasks, links, own = outcome.tasks, self._links, len(outcome.tasks)
        offloaded = (outcome.action > 0) & (outcome.action <= links.most_sns)
        sn = np.full(own, -1)
        link = links.first[tasks.en[offloaded]] + outcome.action[offloaded] - 1
        sn[offloaded] = links.sn[link]
        others, events = outcome.episode.background, outcome.episode.events
        stays = stays_of(outcome, np.concatenate([sn, others.sn]), len(self._site.en))
        heard = outcome.heard()
        when = np.full(own, np.nan) if heard is None else heard[1]
        return {
            "tasks": {
                "ue": tasks.ue[which],
                "generated": tasks.time_ms[which],
                "decided": outcome.decided_ms[which],
                **{name: column[which] for name, column in stays._asdict().items()},
                "heard": when[which],
                "fate": fates_of(outcome)[which],
            },
            "tenants": {
                "sn": others.sn,
                **{name: column[own:] for name, column in stays._asdict().items()},
            },
            "events": {
                "time": events.time_ms,
                "node": events.node,
                "what": events.what,
                "factor": events.factor,
            },
        }

    def finished(self, outcome: Outcome, which: Ints) -> dict[str, Any]:
        """All that the map needs; `which` are the tasks that were decided, in order."""
        tables = {
            table: {name: as_list(column) for name, column in columns.items()}
            for table, columns in self.columns(outcome, which).items()
        }
        return {**self.nodes(), **tables, "statuses": self.statuses(outcome)}


def sent_columns(sent: list[tuple[int, int, float, int]]) -> dict[str, list[Any]]:
    """Rows of `Journeys.sent` as columns."""
    ens, sns, times, told = zip(*sent, strict=True) if sent else ((), (), (), ())
    rounded = as_list(np.array(times, float))
    return {"en": list(ens), "sn": list(sns), "sent": rounded, "told": list(told)}


def fates_of(outcome: Outcome) -> Ints:
    """[task] its place in `FATES`."""
    found = np.full(len(outcome.tasks), _OPEN)
    found[outcome.outcome == TP] = _IN_TIME
    found[outcome.outcome == FP] = _LATE
    found[(outcome.outcome == FP) & outcome.refused] = _REFUSED
    if outcome.lost is not None:
        found[(outcome.outcome == FP) & outcome.lost] = _LOST
    found[np.isin(outcome.outcome, (TN, FN)) & (outcome.action != NO_ACTION)] = _REJECTED
    return found


def fault_of_map(recording: dict[str, Any]) -> str:
    """What the map would stumble over, in a few words; empty if nothing, or if there is no map."""
    if "map" not in recording:
        return ""
    found, decided = recording["map"], len(recording["tasks"]["time"])
    if not isinstance(found, dict):
        return "map is something else"
    for name in (*_NODES, "fates"):
        if not isinstance(found.get(name), list):
            return f"map.{name} is missing, or is something else"
    tables = {"tasks": _TASKS, "tenants": _TENANTS, "statuses": _STATUSES, "events": _EVENTS}
    for table, names in tables.items():
        own = found.get(table)
        columns: list[Any] = [own.get(name) for name in names] if isinstance(own, dict) else [None]
        if not all(isinstance(column, list) for column in columns):
            return f"columns of map.{table} are missing"
        lengths = {len(column) for column in columns}
        if len(lengths | ({decided} if table == "tasks" else set())) > 1:
            return f"columns of map.{table} have different lengths"
    return ""


def as_list(values: NDArray[Any]) -> list[Any]:
    """For JSON: whole numbers as they are, times in ms to 0.01, null where there is none."""
    if values.dtype.kind != "f":
        return list(values.tolist())
    rounded = np.round(values, 2)
    if np.isfinite(rounded).all():
        return list(rounded.tolist())
    found = np.asarray(rounded, object)
    found[~np.isfinite(rounded)] = None
    return list(found.tolist())
