"""An EN's estimate of the backlog at each node, from its own traffic, corrected by evidence.

The EN has sent all of its own tasks, so it can compute when each slot of each node will be done
with them. It does not know the load of other users at an SN. Three kinds of evidence show it:

- a result that comes back later (or earlier) than estimated: the work ahead of that task;
- a result that is overdue: a lower bound of the work ahead of it;
- a status of the SN: how much work and how many tasks it held when the status was sent.

Each of them corrects the estimate `free` of that SN: when its slots will be free, all load
included. Refusals and statuses show how many places other users take.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.node import DONE, EXPIRED, REFUSED, STORAGE, DispatchObservation, Feedback, Site
from cosmo.node.units import BYTES_PER_MS
from cosmo.policy.next.arrival_rates import ArrivalRates
from cosmo.policy.next.settings import NextSettings
from cosmo.policy.next.status_encoding import StatusEncoding
from cosmo.policy.rules.site import first_slots

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Arrays = dict[str, Floats]

_LONG_AGO = -1e9
_HEARD_MS, _SURPRISE, _OTHERS, _OTHERS_MS = range(4)  # of the evidence


@dataclass(slots=True)
class Seen:
    """A batch of decisions, one a row: the EN's knowledge before it, and the tasks."""

    before: Arrays
    task: Arrays


def _append(free: Floats, place: tuple[Ints, ...], arrival: Floats, service: Floats) -> Floats:
    """Put a task on the slot that is free first, at each place; returns its finish, in ms."""
    slot = free[place].argmin(axis=1)
    finish: Floats = np.maximum(arrival, free[(*place, slot)]) + service
    free[(*place, slot)] = finish
    return finish


def _rows_of(tasks: DispatchObservation) -> tuple[Any, Any]:
    """Indices of each row's world and EN for reading; those of a single row copy nothing."""
    if len(tasks) == 1:
        world = int(tasks.world[0])
        return slice(world, world + 1), int(tasks.en[0])
    return tasks.world, tasks.en


class BacklogEstimate:
    """The backlog estimates of every EN in a batch of worlds."""

    def __init__(self, site: Site, settings: NextSettings) -> None:
        self._settings, self._site, self._encoding = settings, site, StatusEncoding(site, settings)
        unit, spans = site.tasks.deadline_ms[1], settings.spans
        self._exact_ms, self._surprise_ms = spans.exact * unit, spans.surprise * unit
        self._oldest_ms = spans.oldest * unit
        # R9: with the paper's floor every task takes the same room.
        self._largest = site.largest_reservation
        # [EN, k] of the k-th SN that an EN reaches; none where it reaches fewer (R30).
        self._reach = reach = site.links.reach
        self.sn_places = np.where(site.links.exist, site.places(site.sn)[reach], 0.0)
        self._shown_places = np.maximum(self.sn_places, 1.0)  # what networks divide by
        self._there = None if site.links.all_alike else site.links.exist.astype(np.float64)
        self._same_places = bool((self._shown_places == self._shown_places[0]).all())
        self._routes = np.concatenate([np.ones((len(reach), 1)), self.sn_places], axis=1) > 0
        self._local_share = self._largest / site.en.storage_bytes
        self.arrival_rates = ArrivalRates(site, spans)
        self._local_free = first_slots(site.en.slots, (site.worlds,))
        pairs = site.worlds, *reach.shape
        self._free = first_slots(site.sn.slots[reach], (site.worlds,))
        # An entry stays open until the EN hears of its task: at most what an SN holds, and what
        # is on its way there and back.
        each = (*pairs, 2 * int(site.most_tasks(site.sn).max()))
        self._task = np.full(each, -1, np.int64)
        self._arrival, self._finish = np.full(each, _LONG_AGO), np.full(each, _LONG_AGO)
        self._cycles = np.zeros(each)
        self._open = np.zeros(each, np.bool_)
        # When the estimate was last corrected, by how much recently, the places that others take,
        # and when those were last observed.
        self._evidence = np.zeros((*pairs, 4))
        self._heard_ms, self._surprise = (
            self._evidence[..., _HEARD_MS],
            self._evidence[..., _SURPRISE],
        )
        self._others, self._others_ms = (
            self._evidence[..., _OTHERS],
            self._evidence[..., _OTHERS_MS],
        )
        self._others_ms[:] = _LONG_AGO
        self._status_ms = np.full(pairs, -np.inf)
        # Whether there was ever evidence of others: a task that was late, overdue or refused.
        self.shared = np.zeros(pairs, np.bool_)

    def observe(self, feedback: Feedback) -> None:
        """Take in results that have come back and notices of refusal."""
        if not self._settings.evidence:
            return
        told = feedback.rows((feedback.action >= 1) & (feedback.action <= self._reach.shape[1]))
        place = told.world, told.en, told.action - 1
        found = self._open[place] & (self._task[place] == told.task[:, None])
        known = found.any(axis=1)
        if not known.any():
            return
        at = tuple(index[known] for index in (*place, found.argmax(axis=1)))
        self._open[at] = False
        refused = told.fate[known] == REFUSED
        if refused.any():
            self._take_refusals(tuple(index[refused] for index in at))
        # It is not known how long a task took that was not answered by its deadline (R38).
        self.shared[tuple(index[told.fate[known] == EXPIRED] for index in at[:3])] = True
        back = told.fate[known] == DONE
        if back.any():
            entry = tuple(index[back] for index in at)
            *_, en, column, _ = entry
            finished = told.time_ms[known][back] - self._site.links.result_ms[en, column]
            arrival, late = self._arrival[entry], finished - self._finish[entry]
            self.shared[entry[:3]] |= np.abs(late) > self._exact_ms
            self._move(entry[:3], late, arrival, arrival)

    def _take_refusals(self, entry: tuple[Ints, ...]) -> None:
        """Take in that tasks found no room: other users took the places that own tasks did not."""
        there, sn = entry[:3], self._reach[entry[1], entry[2]]
        arrival, self.shared[there] = self._arrival[entry], True
        service = self._cycles[entry] / self._site.sn.cycles_per_ms[sn]
        own = (self._open[there] & (self._arrival[there] <= arrival[:, None])).sum(axis=1)
        self._others[there] = self.sn_places[entry[1], entry[2]] - own
        self._others_ms[there] = arrival
        # It never takes the time that was booked for it; what was booked behind it moves up.
        last = self._free[there] == self._finish[entry][:, None]
        slots = self._site.sn.slots[sn]
        share = np.where(last.any(axis=1)[:, None], last, 1.0 / slots[:, None])
        np.subtract.at(self._free, there, share * service[:, None])

    @property
    def all_routes(self) -> bool:
        """Whether every EN reaches every column's SN, with room for a task."""
        return bool(self._routes.all())

    def places(self, en: Ints) -> Floats:
        """[k], or [row, k] where ENs differ in it: tasks that SNs hold, at least 1."""
        return np.asarray(self._shown_places[0 if self._same_places else en])

    def routes(self, en: Ints) -> Bools:
        """[row, route] where a task can go at all: to SNs that the EN reaches, with any room."""
        return np.asarray(self._routes[en])

    def see(self, tasks: DispatchObservation) -> Seen:
        """Take in an observation; returns the EN's knowledge before the decision, and the tasks."""
        place, now = _rows_of(tasks), tasks.time_ms
        load = self.arrival_rates.see(tasks)
        if self._settings.evidence:
            self._take_status(tasks)
        held, finish = self._open[place], self._finish[place]
        if self._settings.evidence and self._take_overdue(tasks, held, finish):
            finish = self._finish[place]
        left = np.maximum(self._local_free[place] - now[:, None], 0.0)
        free = np.maximum(self._free[place] - now[:, None, None], 0.0)
        there = held & (finish > now[:, None, None])
        count = np.add.reduce(there, 2, np.float64)
        evidence = self._evidence[place].copy()
        age = now[:, None] - evidence[..., _HEARD_MS]
        evidence[..., _HEARD_MS] = np.minimum(age, self._oldest_ms)
        evidence[..., _SURPRISE] *= np.exp(age / -self._surprise_ms)
        others_age = now[:, None] - evidence[..., _OTHERS_MS]
        evidence[..., _OTHERS_MS] = np.minimum(others_age, self._oldest_ms)
        site = self._site
        storage = site.en.storage_bytes[tasks.en]
        before = {
            "local": left,
            "local_taken": (storage - tasks.en_state[:, STORAGE]) / storage,
            "local_room": tasks.local_room.astype(np.float64),
            "local_share": self._local_share[tasks.en],
            "remote": free,
            "count": count,
            "backlog": np.where(tasks.reached, tasks.up_backlog_ms, 0.0),
            "evidence": evidence,
            "load": load,
        }
        if self._there is not None:
            before["there"] = self._there[tasks.en]
        rate = tasks.up_link_mbps[:, :, 0] * BYTES_PER_MS
        size = tasks.input_bytes[:, None]
        task = {
            "slack": tasks.slack_ms,
            "local_service": tasks.cycles / site.en.cycles_per_ms[tasks.en],
            "service": tasks.cycles[:, None] / site.sn.cycles_per_ms[tasks.sn],
            "sending": size / rate,
            "transfer": site.links.transfer_ms(size, tasks.up_link_mbps[:, :, 0], tasks.en),
            "back": site.return_ms(tasks),
        }
        return Seen(before, task)

    def write(self, tasks: DispatchObservation, seen: Seen, actions: Ints) -> None:
        """Add the tasks that run locally or are offloaded by `actions`, [row]."""
        local = np.flatnonzero(actions == 0)
        if len(local):
            self._write_local(tasks, seen, local)
        sent = np.flatnonzero((actions > 0) & (actions < tasks.reject))
        if len(sent) and self._settings.own_traffic:
            self._write_sent(tasks, seen, sent, actions[sent] - 1)

    def _write_local(self, tasks: DispatchObservation, seen: Seen, local: Ints) -> None:
        place = tasks.world[local], tasks.en[local]
        _append(self._local_free, place, tasks.time_ms[local], seen.task["local_service"][local])

    def _write_sent(self, tasks: DispatchObservation, seen: Seen, sent: Ints, column: Ints) -> None:
        there = tasks.world[sent], tasks.en[sent], column
        arrival = tasks.time_ms[sent] + tasks.up_backlog_ms[sent, column]
        arrival = arrival + seen.task["transfer"][sent, column]
        finish = _append(self._free, there, arrival, seen.task["service"][sent, column])
        if not self._settings.evidence:  # there are no answers: the first to be done is dropped
            entry = (*there, self._finish[there].argmin(axis=1))
        else:
            if self._open[there].all(axis=1).any():
                self._make_room()
            entry = (*there, self._open[there].argmin(axis=1))  # the first that is free
        self._task[entry], self._arrival[entry] = tasks.task[sent], arrival
        self._finish[entry], self._cycles[entry] = finish, tasks.cycles[sent]
        self._open[entry] = True

    def _make_room(self) -> None:
        """Double the entries: more tasks are in flight than SNs hold, or a message was lost."""
        for name, blank in (
            ("_task", -1),
            ("_arrival", _LONG_AGO),
            ("_finish", _LONG_AGO),
            ("_cycles", 0.0),
            ("_open", False),
        ):
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full_like(old, blank)], axis=-1))

    def _move(self, place: tuple[Ints, ...], late: Floats, since: Floats, heard: Floats) -> None:
        """Shift the estimates of these SNs by `late` ms, for all that arrived from `since` on."""
        late = np.where(np.abs(late) > self._exact_ms, late, 0.0)
        # Of several rows for one SN the last is used: it includes what the others found.
        channel = np.ravel_multi_index(place, self._status_ms.shape)
        last = len(channel) - 1 - np.unique(channel[::-1], return_index=True)[1]
        place = tuple(index[last] for index in place)
        late, since, heard = late[last], since[last], heard[last]
        self._free[place] += late[:, None]
        later = self._open[place] & (self._arrival[place] >= since[:, None])
        self._finish[place] += np.where(later, late[:, None], 0.0)
        self._note(place, late, heard)

    def _note(self, place: tuple[Ints, ...], late: Floats, heard: Floats) -> None:
        before = self._heard_ms[place]
        kept = self._surprise[place] * np.exp(np.maximum(heard - before, 0.0) / -self._surprise_ms)
        self._surprise[place] = kept + late / self._surprise_ms
        self._heard_ms[place] = np.maximum(heard, before)

    def _take_overdue(self, tasks: DispatchObservation, held: Bools, finish: Floats) -> bool:
        """Whether a task that the estimate holds is overdue, by when it should finish."""
        due = finish + self._site.links.result_ms[tasks.en][:, :, None]
        late = np.maximum.reduce(np.where(held, tasks.time_ms[:, None, None] - due, 0.0), 2)
        row, column = np.nonzero(late > self._exact_ms)
        if len(row) == 0:
            return False
        there, moved = (tasks.world[row], tasks.en[row], column), late[row, column]
        self.shared[there] = True
        self._free[there] += moved[:, None]
        self._finish[there] += np.where(self._open[there], moved[:, None], 0.0)
        self._note(there, moved, tasks.time_ms[row])
        return True

    def _take_status(self, tasks: DispatchObservation) -> None:
        place = _rows_of(tasks)
        fresh = tasks.status_ms > self._status_ms[place]  # False where it is NaN
        if (
            self._settings.single
        ):  # where an SN serves no other EN, one number is less exact than the estimate
            fresh &= self.shared[place]
        row, column = np.nonzero(fresh)
        if len(row) == 0:
            return
        nodes = self._site.sn
        there, sn = (tasks.world[row], tasks.en[row], column), tasks.sn[row, column]
        source = tasks.status_ms[row, column]
        self._status_ms[there] = source
        work, free = self._encoding.read(sn, tasks.status[row, column])
        held = np.round((nodes.storage_bytes[sn] - free) / self._largest)
        slots = nodes.slots[sn]
        # The room that is taken tells how many tasks there are, so how many slots are busy.
        busy = self._encoding.busy(sn, tasks.status[row, column], held)
        left = work / (busy * nodes.cycles_per_ms[sn])
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
        back = self._site.links.result_ms[tasks.en[row], column]
        overdue = (tasks.time_ms[row] - back)[:, None]
        self._finish[there] = np.where(inside, np.maximum(done, overdue), self._finish[there])
        coming = self._open[there] & (self._arrival[there] > source[:, None])
        while coming.any():
            arrival = np.where(coming, self._arrival[there], np.inf)
            entry = arrival.argmin(axis=1)
            which = np.flatnonzero(np.isfinite(arrival.min(axis=1)))
            some = tuple(index[which] for index in there)
            at = (*some, entry[which])
            service = self._cycles[at] / nodes.cycles_per_ms[sn[which]]
            self._finish[at] = _append(self._free, some, self._arrival[at], service)
            coming[which, entry[which]] = False
        now = tasks.time_ms[row, None]
        # SNs have different numbers of slots; one that is not there is never free.
        real = number < slots[:, None]
        moved = np.maximum(self._free[there], now) - np.maximum(np.where(real, expected, 0.0), now)
        late = np.where(real, moved, 0.0).sum(axis=1) / slots
        self._note(there, np.where(np.abs(late) > self._exact_ms, late, 0.0), source)
