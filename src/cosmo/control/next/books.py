"""What an EN knows without being told, and what evidence adds to it.

The EN has sent every one of its tasks, so it can work out when each slot of each node will be done
with them. What it cannot know is the load of others at an SN. Three kinds of evidence tell of it:

- a result that comes back later (or earlier) than the books say: what was ahead of that task;
- a result that is overdue: at least that much was ahead of it;
- a status of the SN: how much work and how many tasks it held when it was sent.

Each of them moves the books of that SN: the EN believes in `free`, when the slots will be free, all
load included. Refusals and statuses tell how many places others take.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cosmo.control.dispatchers.nodes import KnownNodes
from cosmo.control.next.load import Load
from cosmo.control.next.rules import NextRules
from cosmo.scenario import Scenario, per_node
from cosmo.world import IDLE, STORAGE, WORK, DispatchObservation, Settled

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Arrays = dict[str, Floats]

_OUTSTANDING = 32  # offloads remembered per EN and SN; the oldest make way
_EXACT_MS = 0.3  # deviations from the books below this say nothing about others
_SURPRISE_MS = 200.0  # for how long surprises count
_LONG_AGO = -1e9
_ALL = NextRules()


@dataclass(slots=True)
class Seen:
    """A batch of decisions, one a row: the EN's knowledge before it, and the tasks."""

    before: Arrays
    task: Arrays


class Books:
    """Of every EN in a batch of worlds."""

    def __init__(self, scenario: Scenario, worlds: int, rules: NextRules = _ALL) -> None:
        self._rules = rules
        nodes = self.nodes = KnownNodes(scenario)
        ens, sns = scenario.en.count, scenario.sn.count
        floor = scenario.storage.reservation_floor_bytes
        self._en_storage = np.array(per_node(scenario.en.storage_bytes, ens))
        largest = max(floor, scenario.workload.input_bytes[1])
        self._largest = largest
        # R9: with the paper's floor every task takes the same room.
        self.en_places = np.floor(self._en_storage / largest)
        self.sn_places = np.minimum(nodes.sn_places, np.floor(nodes.sn_storage / largest))
        self.load = Load(scenario, worlds)
        slots = np.array(per_node(scenario.en.slots, ens), np.int64)
        self._local_free = _slots((worlds, ens), slots)
        pairs = worlds, ens, sns
        self._free = np.broadcast_to(
            _slots((worlds, sns), nodes.sn_slots)[:, None], (*pairs, int(nodes.sn_slots.max()))
        ).copy()
        each = (*pairs, _OUTSTANDING)
        self._task = np.full(each, -1, np.int64)
        self._arrival, self._finish = np.full(each, _LONG_AGO), np.full(each, _LONG_AGO)
        self._cycles = np.zeros(each)
        self._open = np.zeros(each, np.bool_)
        self._next = np.zeros(pairs, np.int64)
        self._evidence_ms = np.zeros(pairs)  # when the books were last put right
        self._surprise, self._surprise_ms = np.zeros(pairs), np.zeros(pairs)
        self._others, self._others_ms = np.zeros(pairs), np.full(pairs, _LONG_AGO)
        self._status_ms = np.full(pairs, -1.0)

    def observe(self, settled: Settled) -> None:
        """Results that have come back, and refusals."""
        offloaded = (settled.action >= 1) & (settled.action <= self.sn_places.size)
        if not (self._rules.evidence and offloaded.any()):
            return
        time, sn = settled.time_ms[offloaded], settled.action[offloaded] - 1
        place = settled.world[offloaded], settled.en[offloaded], sn
        found = self._open[place] & (self._task[place] == settled.task[offloaded, None])
        known = found.any(axis=1)
        if not known.any():
            return
        entry = found.argmax(axis=1)[known]
        time, sn = time[known], sn[known]
        place = place[0][known], place[1][known], sn
        at = (*place, entry)
        self._open[at] = False
        arrival, service = self._arrival[at], self._cycles[at] / self.nodes.sn_rate[sn]
        refused = time < arrival + service - _EXACT_MS
        if refused.any():
            there = tuple(index[refused] for index in place)
            own = (self._open[there] & (self._arrival[there] <= time[refused, None])).sum(axis=1)
            self._others[there] = self.sn_places[sn[refused]] - own
            self._others_ms[there] = time[refused]
            # It never takes the time that was booked for it; what was booked behind it moves up.
            last = self._free[there] == self._finish[at][refused, None]
            slots = self.nodes.sn_slots[sn[refused]]
            share = np.where(last.any(axis=1)[:, None], last, 1.0 / slots[:, None])
            np.subtract.at(self._free, there, share * service[refused, None])
        back = ~refused
        if back.any():
            finished = time[back] - self.nodes.result_ms[place[1][back], sn[back]]
            late = finished - self._finish[at][back]
            there = tuple(index[back] for index in place)
            self._move(there, late, arrival[back], arrival[back])

    def see(self, tasks: DispatchObservation) -> Seen:
        """Take in what the observation brings, and say what is known."""
        place, now = (tasks.world, tasks.en), tasks.time_ms
        load = self.load.see(tasks)
        if self._rules.evidence:
            self._take_status(tasks)
            self._take_overdue(tasks)
        left = np.maximum(self._local_free[place] - now[:, None], 0.0)
        free = np.maximum(self._free[place] - now[:, None, None], 0.0)
        there = self._open[place] & (self._finish[place] > now[:, None, None])
        count = there.sum(axis=2).astype(np.float64)
        decay = np.exp((self._surprise_ms[place] - now[:, None]) / _SURPRISE_MS)
        evidence = np.stack(
            [
                np.minimum(now[:, None] - self._evidence_ms[place], 400.0),
                self._surprise[place] * decay,
                self._others[place],
                np.minimum(now[:, None] - self._others_ms[place], 400.0),
            ],
            axis=2,
        )
        storage = self._en_storage[tasks.en]
        before = {
            "local": left,
            "local_taken": (storage - tasks.en_state[:, STORAGE]) / storage,
            "local_room": tasks.local_room.astype(np.float64),
            "local_share": self._largest / storage,
            "remote": free,
            "count": count,
            "backlog": tasks.up_backlog_ms.copy(),
            "evidence": evidence,
            "load": load,
        }
        nodes = self.nodes
        rate = tasks.up_link_mbps[:, :, 0] * 125.0
        task = {
            "slack": tasks.deadline_ms - (now - tasks.generated_ms),
            "local_service": tasks.cycles / nodes.en_rate[tasks.en],
            "service": tasks.cycles[:, None] / nodes.sn_rate,
            "sending": tasks.input_bytes[:, None] / rate,
            "transfer": nodes.upload_ms(tasks) - tasks.up_backlog_ms,
            "back": nodes.return_ms(tasks),
        }
        return Seen(before, task)

    def write(self, tasks: DispatchObservation, seen: Seen, actions: Ints) -> None:
        """What was decided."""
        local = np.flatnonzero(actions == 0)
        place = tasks.world[local], tasks.en[local]
        slot = self._local_free[place].argmin(axis=1)
        start = np.maximum(self._local_free[(*place, slot)], tasks.time_ms[local])
        self._local_free[(*place, slot)] = start + seen.task["local_service"][local]
        if not self._rules.books:
            return
        sent = np.flatnonzero((actions > 0) & (actions < tasks.reject))
        sn = actions[sent] - 1
        there = tasks.world[sent], tasks.en[sent], sn
        arrival = tasks.time_ms[sent] + tasks.up_backlog_ms[sent, sn]
        arrival = arrival + seen.task["transfer"][sent, sn]
        finish = self._append(there, arrival, seen.task["service"][sent, sn])
        entry = (*there, self._next[there])
        self._task[entry], self._arrival[entry] = tasks.task[sent], arrival
        self._finish[entry], self._cycles[entry] = finish, tasks.cycles[sent]
        self._open[entry] = True
        self._next[there] = (self._next[there] + 1) % _OUTSTANDING

    def _append(self, place: tuple[Ints, ...], arrival: Floats, service: Floats) -> Floats:
        """First come, first served onto the earliest slot; when it will be done."""
        slot = self._free[place].argmin(axis=1)
        finish: Floats = np.maximum(arrival, self._free[(*place, slot)]) + service
        self._free[(*place, slot)] = finish
        return finish

    def _move(self, place: tuple[Ints, ...], late: Floats, since: Floats, heard: Floats) -> None:
        """The books of these SNs are late by so much, for all that arrived from `since` on."""
        late = np.where(np.abs(late) > _EXACT_MS, late, 0.0)
        # Of several rows for one SN the last speaks: what the others found is part of it.
        channel = np.ravel_multi_index(place, self._next.shape)
        last = len(channel) - 1 - np.unique(channel[::-1], return_index=True)[1]
        place = tuple(index[last] for index in place)
        late, since, heard = late[last], since[last], heard[last]
        self._free[place] += late[:, None]
        later = self._open[place] & (self._arrival[place] >= since[:, None])
        self._finish[place] += np.where(later, late[:, None], 0.0)
        self._note(place, late, heard)

    def _note(self, place: tuple[Ints, ...], late: Floats, heard: Floats) -> None:
        since = np.maximum(heard - self._surprise_ms[place], 0.0)
        kept = self._surprise[place] * np.exp(-since / _SURPRISE_MS)
        self._surprise[place] = kept + late / _SURPRISE_MS
        self._surprise_ms[place] = np.maximum(heard, self._surprise_ms[place])
        self._evidence_ms[place] = np.maximum(heard, self._evidence_ms[place])

    def _take_overdue(self, tasks: DispatchObservation) -> None:
        place = tasks.world, tasks.en
        due = self._finish[place] + self.nodes.result_ms[tasks.en][:, :, None]
        late = np.where(self._open[place], tasks.time_ms[:, None, None] - due, 0.0).max(axis=2)
        row, sn = np.nonzero(late > _EXACT_MS)
        if len(row) == 0:
            return
        there = tasks.world[row], tasks.en[row], sn
        self._free[there] += late[row, sn][:, None]
        self._finish[there] += np.where(self._open[there], late[row, sn][:, None], 0.0)
        self._note(there, late[row, sn], tasks.time_ms[row])

    def _take_status(self, tasks: DispatchObservation) -> None:
        place = tasks.world, tasks.en
        row, sn = np.nonzero(tasks.sn_source_ms > self._status_ms[place])
        if len(row) == 0:
            return
        nodes = self.nodes
        there = tasks.world[row], tasks.en[row], sn
        source = tasks.sn_source_ms[row, sn]
        self._status_ms[there] = source
        state = tasks.sn_state[row, sn]
        held = np.round((nodes.sn_storage[sn] - state[:, STORAGE]) / self._largest)
        slots = nodes.sn_slots[sn]
        # The room that is taken tells how many tasks there are, so how many slots are busy.
        busy = np.clip(held if self._rules.semantic else slots - state[:, IDLE], 1, slots)
        left = state[:, WORK] / (busy * nodes.sn_rate[sn])
        # Idle slots are free, the others share the work.
        number = np.arange(self._free.shape[-1])
        expected = self._free[there].copy()
        first = np.where(number < busy[:, None], (source + left)[:, None], source[:, None])
        self._free[there] = np.where(number < slots[:, None], first, np.inf)
        inside = self._open[there] & (self._arrival[there] <= source[:, None])
        self._others[there] = np.maximum(held - inside.sum(axis=1), 0.0)
        self._others_ms[there] = source
        # What is there is done when the SN is done with all of it; what is to come queues behind.
        done = np.minimum(self._finish[there], (source + left)[:, None])
        overdue = tasks.time_ms[row, None] - nodes.result_ms[tasks.en[row], sn][:, None]
        self._finish[there] = np.where(inside, np.maximum(done, overdue), self._finish[there])
        coming = self._open[there] & (self._arrival[there] > source[:, None])
        while coming.any():
            arrival = np.where(coming, self._arrival[there], np.inf)
            entry = arrival.argmin(axis=1)
            which = np.flatnonzero(np.isfinite(arrival.min(axis=1)))
            some = tuple(index[which] for index in there)
            at = (*some, entry[which])
            self._finish[at] = self._append(
                some, self._arrival[at], self._cycles[at] / nodes.sn_rate[sn[which]]
            )
            coming[which, entry[which]] = False
        now = tasks.time_ms[row, None]
        moved = np.maximum(self._free[there], now) - np.maximum(expected, now)
        late = np.where(np.isfinite(moved), moved, 0.0).sum(axis=1) / slots
        self._note(there, np.where(np.abs(late) > _EXACT_MS, late, 0.0), source)


def _slots(shape: tuple[int, int], counts: Ints) -> Floats:
    """[…, node, slot]: free at once; slots that do not exist never are."""
    free = np.zeros((*shape, int(counts.max())))
    free[:, np.arange(free.shape[2]) >= counts[:, None]] = np.inf
    return free
