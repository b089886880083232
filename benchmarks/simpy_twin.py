"""The paper's scenario (one EN, one SN) as a SimPy program, to compare the engine with."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import simpy

BYTES_PER_MS = 125.0  # of one Mbps
ACCESS_RATE = 128.6 * BYTES_PER_MS
ACCESS_OVERHEAD_MS = 0.043
CONTENTION_MS = 0.40
DISTANCES_M = (5.2, 6.0, 6.8, 5.2)
RADIUS_M = 8.0
SPEED_M_PER_MS = 0.001
EN_SLOTS, EN_RATE, EN_STORAGE = 2, 18000.0, 240_000
SN_SLOTS, SN_RATE, SN_STORAGE = 4, 27000.0, 480_000
QUEUE = 64
RESERVATION_FLOOR_BYTES = 50_000
UP_RATE = 96 * BYTES_PER_MS
DOWN_RATE = 192 * BYTES_PER_MS
HOPS = 2
HOP_DELAY_MS = 1.0
PACKET_BYTES = 1500
RESULT_BYTES = 1000
NOTICE_BYTES = 64.0
UNDECIDED_AFTER_MS = 5000.0
LOCAL, OFFLOAD, REJECT = 0, 1, 2

Process = Generator[simpy.Event, object, None]
TaskRow = tuple[float, int, float, float, float]  # time, ue, input bytes, cycles, deadline
Outcome = tuple[int | None, str, float | None, float]  # action, outcome, decided, finished


class Job:
    """A task as the nodes and links see it."""

    def __init__(self, row: TaskRow) -> None:
        self.time, self.ue, self.input_bytes, self.cycles, self.deadline = row
        self.reservation = max(self.input_bytes, RESERVATION_FLOOR_BYTES)
        self.arrival = 0.0  # at its node
        self.finish: float | None = None  # known once it runs


class Node:
    """Slots with an FCFS queue, and storage."""

    def __init__(
        self, env: simpy.Environment, slots: int, rate: float, storage: float, queue: int = QUEUE
    ) -> None:
        self.env = env
        self.rate = rate
        self.queue = queue
        self.capacity = slots
        self.slots = simpy.Resource(env, capacity=slots)
        self.storage = simpy.Container(env, capacity=storage, init=storage)
        self.jobs: list[Job] = []

    def has_room(self, job: Job, ahead: Sequence[Job] = ()) -> bool:
        """Room for a job, and for those that are on their way ahead of it."""
        reserved = sum(other.reservation for other in ahead)
        places = len(self.jobs) + len(ahead)
        return self.storage.level - reserved >= job.reservation and places < self.queue

    def serve(self, job: Job) -> Process:
        """Run an accepted job to its end."""
        self.jobs.append(job)
        job.arrival = self.env.now
        yield self.storage.get(job.reservation)
        with self.slots.request() as slot:
            yield slot
            service = job.cycles / self.rate
            job.finish = self.env.now + service
            yield self.env.timeout(service)
        self.jobs.remove(job)
        yield self.storage.put(job.reservation)

    def state(self) -> tuple[int, float, float, float]:
        """N, W, B, M."""
        now = self.env.now
        waiting = [job for job in self.jobs if job.finish is None]
        work = sum(job.cycles for job in waiting)
        work += sum((job.finish - now) * self.rate for job in self.jobs if job.finish is not None)
        wait = now - waiting[0].arrival if waiting else 0.0
        idle = self.capacity - self.slots.count
        return idle, wait, work, float(self.storage.level)

    def completion(self, cycles: float, arrival: float, ahead: Sequence[Job] = ()) -> float:
        """When a job would finish behind those that are here and those that arrive before it."""
        free = [job.finish for job in self.jobs if job.finish is not None]
        free += [self.env.now] * (self.capacity - len(free))
        heapq.heapify(free)
        waiting = [job for job in self.jobs if job.finish is None]
        for job in [*waiting, *ahead]:
            start = max(job.arrival, free[0])
            heapq.heapreplace(free, start + job.cycles / self.rate)
        return max(arrival, free[0]) + cycles / self.rate


class Link:
    """A FIFO direction of the backhaul."""

    def __init__(self, env: simpy.Environment, rate: float) -> None:
        self.env = env
        self.rate = rate
        self.free_at = 0.0

    def delivery(self, ready: float, size: float) -> float:
        start = max(ready, self.free_at)
        tail = (HOPS - 1) * min(size, PACKET_BYTES) / self.rate
        return start + size / self.rate + HOPS * HOP_DELAY_MS + tail

    def send(self, size: float) -> simpy.Timeout:
        """Queue a message; the event fires when it is delivered."""
        delivered = self.delivery(self.env.now, size)
        self.free_at = max(self.env.now, self.free_at) + size / self.rate
        return self.env.timeout(delivered - self.env.now)


@dataclass
class View:
    """What a policy may look at; node readings are taken when asked for."""

    index: int
    task: Job
    cell: Cell

    @property
    def now(self) -> float:
        return self.cell.env.now

    @property
    def local_room(self) -> bool:
        return self.cell.en.has_room(self.task)

    @property
    def en_state(self) -> tuple[int, float, float, float]:
        return self.cell.en.state()

    @property
    def sn_state(self) -> tuple[int, float, float, float]:
        return self.cell.sn.state()

    @property
    def feasible(self) -> tuple[bool, bool]:
        return self.cell.feasible(self.task)


Decide = Callable[[View], int]


class Cell:
    """The whole scenario."""

    def __init__(self, tasks: Sequence[TaskRow], decide: Decide) -> None:
        self.env = simpy.Environment()
        self.decide = decide
        self.channel = simpy.Resource(self.env, capacity=1)
        self.en = Node(self.env, EN_SLOTS, EN_RATE, EN_STORAGE)
        self.sn = Node(self.env, SN_SLOTS, SN_RATE, SN_STORAGE)
        self.up = Link(self.env, UP_RATE)
        self.down = Link(self.env, DOWN_RATE)
        self.in_flight: list[Job] = []
        self.outcomes: list[Outcome] = [(None, "none", None, 0.0)] * len(tasks)
        self.env.process(self.generate(tasks))

    def generate(self, tasks: Sequence[TaskRow]) -> Process:
        for index, row in enumerate(tasks):
            yield self.env.timeout(row[0] - self.env.now)
            self.env.process(self.live(index, Job(row)))

    def live(self, index: int, task: Job) -> Process:
        """A task from its generation to its end."""
        env = self.env
        last = task.time + task.deadline + UNDECIDED_AFTER_MS
        with self.channel.request() as turn:
            contention = 0.0 if turn.triggered else CONTENTION_MS
            yield turn
            if abs(DISTANCES_M[task.ue] - SPEED_M_PER_MS * env.now) > RADIUS_M:
                self.outcomes[index] = (None, "none", None, last)
                return
            yield env.timeout(ACCESS_OVERHEAD_MS + contention + task.input_bytes / ACCESS_RATE)
        if env.now > last:
            self.outcomes[index] = (None, "none", None, last)
            return

        decided = env.now
        action = self.decide(View(index, task, self))
        if action == REJECT:
            outcome = "FN" if any(self.feasible(task)) else "TN"
            self.outcomes[index] = (action, outcome, decided, decided)
            return
        if action == OFFLOAD:
            task.arrival = self.up.delivery(decided, task.input_bytes)
            self.in_flight.append(task)
            yield self.up.send(task.input_bytes)
            self.in_flight.remove(task)
        node = self.sn if action == OFFLOAD else self.en
        accepted = node.has_room(task)
        if accepted:
            yield from node.serve(task)
            if action == OFFLOAD:
                yield self.down.send(RESULT_BYTES)
        elif action == OFFLOAD:
            self.down.send(NOTICE_BYTES)  # the EN learns of it; nobody waits here
        outcome = "TP" if accepted and env.now - task.time <= task.deadline else "FP"
        self.outcomes[index] = (action, outcome, decided, env.now)

    def feasible(self, task: Job) -> tuple[bool, bool]:
        """Whether each route has room now and would end in time."""
        now = self.env.now
        local = self.en.completion(task.cycles, now)
        arrival = self.up.delivery(now, task.input_bytes)
        remote = self.sn.completion(task.cycles, arrival, self.in_flight)
        returned = self.down.delivery(remote, RESULT_BYTES)
        return (
            self.en.has_room(task) and local - task.time <= task.deadline,
            self.sn.has_room(task, self.in_flight) and returned - task.time <= task.deadline,
        )


def simulate(tasks: Sequence[TaskRow], decide: Decide) -> list[Outcome]:
    """Run tasks, in time order, until all are final: (action, outcome, decided_ms, finished_ms)."""
    cell = Cell(tasks, decide)
    cell.env.run()
    return cell.outcomes
