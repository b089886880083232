"""A node's slots, storage and first-come-first-served queue (R9 to R12), at its speed (R37)."""

import math
from collections import deque
from collections.abc import Callable

from cosmo.live.tasks import Item
from cosmo.node import IDLE, LATENCY, REQUESTS, STATE_FIELDS, STORAGE, WAIT, WORK, Nodes

Begin = Callable[[int, Item, float], None]  # slot, task, when it should be done


class Station:
    """Accepts tasks while there is room, and begins each on the first idle slot."""

    def __init__(
        self, nodes: Nodes, index: int, floor_bytes: float, latency_weight: float, begin: Begin
    ) -> None:
        self.slots = int(nodes.slots[index])
        self._nominal = float(nodes.cycles_per_ms[index])
        self._storage = float(nodes.storage_bytes[index])
        self._capacity = int(nodes.queue_capacity[index])
        self._floor, self._weight, self._begin = floor_bytes, latency_weight, begin
        self.speed = 1.0  # factor of the nominal speed
        self.before_change: Callable[[float], object] | None = None  # of `requests`, with the time
        self._empty()

    def _empty(self) -> None:
        self._free = self._storage
        self._waiting: deque[Item] = deque()
        self._waiting_cycles = 0.0
        self._running: list[Item | None] = [None] * self.slots
        self._finish = [math.inf] * self.slots  # by true cycles where these are known (R35)
        self._idle = self.slots
        self._latency = 0.0

    @property
    def requests(self) -> int:
        """Waiting and running tasks."""
        return len(self._waiting) + self.slots - self._idle

    @property
    def rate(self) -> float:
        """Cycles per ms of a slot, at the present speed."""
        return self._nominal * self.speed

    def _reservation(self, item: Item) -> float:
        return max(item.input_bytes, self._floor)

    def has_room(self, item: Item) -> bool:
        """R10: whether the node would accept the task now."""
        return self._free >= self._reservation(item) and self.requests < self._capacity

    def admit(self, item: Item, now: float) -> bool:
        """Take a task in, and begin with it if a slot is idle; False if there is no room."""
        if not self.has_room(item):
            return False
        self._note(now)
        self._free -= self._reservation(item)
        item.arrived_ms = now
        if self._idle > 0:
            self._start(item, now)
        else:
            self._waiting.append(item)
            self._waiting_cycles += item.cycles
        return True

    def _note(self, now: float) -> None:
        if self.before_change is not None:
            self.before_change(now)

    def _start(self, item: Item, now: float) -> None:
        slot = self._running.index(None)
        # A slot may have been free for a moment before anybody took note.
        finish = max(now, item.arrived_ms) + item.work_cycles / self.rate
        self._running[slot], self._finish[slot] = item, finish
        self._idle -= 1
        self._begin(slot, item, finish)

    def finish_ms(self, slot: int) -> float:
        """When the work in a slot should be done."""
        return self._finish[slot]

    def change_speed(self, factor: float, now: float) -> list[tuple[int, float]]:
        """Running tasks go on at the new speed with what is left of them (R37).

        Returns the slots whose work ends at another time, each with that time in ms.
        """
        moved = []
        if factor != self.speed:
            for slot, finish in enumerate(self._finish):
                if now < finish < math.inf:
                    self._finish[slot] = now + (finish - now) * self.speed / factor
                    moved.append((slot, self._finish[slot]))
        self.speed = factor
        return moved

    def clear(self) -> list[Item]:
        """Lose all tasks (R38): slots, storage and queue are free. Returns running ones first."""
        lost = [*(item for item in self._running if item is not None), *self._waiting]
        self._empty()
        return lost

    def complete(self, slot: int, now: float) -> None:
        """A slot's task has finished: room is given back, and the queue moves on."""
        done = self._running[slot]
        assert done is not None
        latency = now - done.arrived_ms
        weight = self._weight if self._latency > 0.0 else 1.0
        self._latency += weight * (latency - self._latency)
        self._leave(slot, done, now)

    def drop(self, item: Item, now: float) -> int | None:
        """Take a task out before it is done; its slot if it was running, None if it was not."""
        if item in self._running:
            slot = self._running.index(item)
            self._leave(slot, item, now)
            return slot
        if item in self._waiting:
            self._note(now)
            self._waiting.remove(item)
            self._waiting_cycles = sum(each.cycles for each in self._waiting)
            self._free += self._reservation(item)
        return None

    def _leave(self, slot: int, item: Item, now: float) -> None:
        self._note(now)
        self._running[slot], self._finish[slot] = None, math.inf
        self._idle += 1
        self._free += self._reservation(item)
        if self._waiting:
            first = self._waiting.popleft()
            self._waiting_cycles -= first.cycles
            if not self._waiting:
                self._waiting_cycles = 0.0
            self._start(first, now)
        elif self._idle == self.slots:
            self._free = self._storage  # an empty node forgets rounding errors

    def _seen_left(self, now: float) -> list[float]:
        """[slot] cycles that the node believes to be left of its running task: what it sees of it
        less what has been executed, and not below 0 (R12, R35).
        """
        left = []
        for item, finish in zip(self._running, self._finish, strict=True):
            cycles = 0.0
            if item is not None:  # a handler may take longer than declared
                unseen = item.cycles - item.work_cycles
                cycles = max((finish - now) * self.rate + unseen, 0.0)
            left.append(cycles)
        return left

    def state(self, now: float) -> list[float]:
        """[field] of `cosmo.node.observation`: N, W, B, M of R12, requests, smoothed latency.

        B is what takes as long at the nominal speed as what is left takes at the present one (R37).
        """
        found = [0.0] * STATE_FIELDS
        found[IDLE] = self._idle
        found[WAIT] = now - self._waiting[0].arrived_ms if self._waiting else 0.0
        cycles = self._waiting_cycles
        for left in self._seen_left(now):
            cycles += left
        found[WORK] = cycles / self.speed
        found[STORAGE] = self._free
        found[REQUESTS] = self.requests
        found[LATENCY] = self._latency
        return found

    def delay_ms(self, item: Item, now: float) -> float:
        """From generation until the task would be done here, behind all that is here already."""
        service = item.cycles / self.rate
        if not math.isnan(item.true_cycles):
            return now - item.generated_ms + self._seen_wait(now) + service
        free = [
            now if item is None else max(finish, now)
            for item, finish in zip(self._running, self._finish, strict=True)
        ]
        for waiting in self._waiting:
            free[free.index(min(free))] += waiting.cycles / self.rate
        return max(now, min(free)) + service - item.generated_ms

    def wait_ms(self, item: Item, now: float) -> float:
        """How long the task would wait for a slot here, as the node can know."""
        if not math.isnan(item.true_cycles):
            return self._seen_wait(now)
        service = item.cycles / self.rate
        return max(0.0, self.delay_ms(item, now) - (now - item.generated_ms) - service)

    def _seen_wait(self, now: float) -> float:
        """Until a slot is free, by the cycles that the node sees and not by the true ones."""
        free = [left / self.rate for left in self._seen_left(now)]
        for waiting in self._waiting:
            free[free.index(min(free))] += waiting.cycles / self.rate
        return min(free)
