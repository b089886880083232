"""The world of readings R1-R17 as a plain event list: obvious rather than fast."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .records import (
    Background,
    CacheChange,
    Heard,
    Link,
    Node,
    Parameters,
    Reading,
    Result,
    State,
    Task,
    TaskView,
    Ue,
    UpdateView,
)

# R5: the order of events at one instant.
FINISH, CHANGE, DELIVERY, DEADLINE, EN_DECISION, SN_DECISION, GENERATION, TENANT = range(8)
BYTES_PER_MS = 125.0  # of one Mbps

Decide = Callable[[TaskView], int]
# Whether to send, to all or to each EN that reaches the SN (R31), and the next interval.
Update = Callable[[UpdateView], tuple[bool | list[bool], float]]
Ride = Callable[[int, int, float], bool]  # SN, EN, now: whether a status rides on a result (R31)


def utility(
    outcome: str,
    delay: float | None = None,
    input_bytes: float = 0.0,
    offloaded: bool = False,
    *,
    value: float = 80.0,
    weights: tuple[float, float, float, float] = (1.2, 5.0, 1.0, 1.5),
    lambda_t: float = 0.15,
    lambda_c: float = 1e-4,
    eta_c: float = 0.20,
) -> float:
    """R16; the weights are those of TP, FP, TN, FN."""
    tp, fp, tn, fn = weights
    gain = value * {"TP": tp, "FP": -fp, "TN": tn, "FN": -fn, "none": 0.0}[outcome]
    if outcome in ("TP", "FP") and delay is not None:
        gain -= eta_c * (lambda_t * delay + lambda_c * input_bytes * offloaded)
    return gain


def idle_delays(p: Parameters, en: int, input_bytes: float, cycles: float) -> list[float]:
    """R3: the delay of every route on an idle system at the nominal link rates."""
    uplink = p.access_overhead_ms + input_bytes / (p.access_rate_mbps * BYTES_PER_MS)
    delays = [uplink + cycles / p.ens[en].rate]
    for node, link in zip(p.sns, p.links[en], strict=True):
        if link is None:
            continue
        upload = Pipe(link, link.up_mbps, []).send(0.0, input_bytes)
        result = Pipe(link, link.down_mbps, []).send(0.0, p.result_bytes)
        delays.append(uplink + upload + cycles / node.rate + result)
    return delays


def idle_deadline_base(p: Parameters, en: int, input_bytes: float, cycles: float) -> float:
    """R3: min(local, offload)."""
    return min(idle_delays(p, en, input_bytes, cycles))


def deadline(base: float, slack: float) -> float:
    """R3: the relative deadline, from the idle delay and a slack drawn from U(10, 30)."""
    return min(max(1.35 * base + slack, 60.0), 220.0)


def range_window(ue: Ue, speed_m_per_s: float, radius_m: float) -> tuple[float, float] | None:
    """R7: from when to when (ms) a UE is within the radius, None if never."""
    if speed_m_per_s == 0:
        return (-math.inf, math.inf) if ue.distance_m <= radius_m else None
    across = ue.distance_m * math.sin(math.radians(ue.heading_deg))
    along = ue.distance_m * math.cos(math.radians(ue.heading_deg))
    if abs(across) > radius_m:
        return None
    half = math.sqrt(radius_m**2 - across**2)
    return (along - half) / speed_m_per_s * 1000, (along + half) / speed_m_per_s * 1000


class Pipe:
    """One direction of a link (R13)."""

    def __init__(self, link: Link, mbps: float, schedule: Sequence[tuple[float, float]]) -> None:
        self.link = link
        self.rates = [(-math.inf, mbps), *schedule]
        self.free = 0.0

    def rate(self, time: float) -> float:
        """Bytes/ms in force at a time."""
        return [mbps for start, mbps in self.rates if start <= time][-1] * BYTES_PER_MS

    def delivered(self, start: float, size: float, rate: float) -> float:
        tail = (self.link.hops - 1) * min(size, self.link.packet_bytes) / rate
        return start + size / rate + self.link.hops * self.link.hop_delay_ms + tail

    def send(self, now: float, size: float) -> float:
        """Queue a message and return when it is delivered."""
        start = max(now, self.free)
        rate = self.rate(start)
        self.free = start + size / rate
        return self.delivered(start, size, rate)

    def estimate(self, now: float, ready: float, size: float) -> float:
        """When a message ready at a later time would be delivered, as far as known now."""
        return self.delivered(max(ready, self.free), size, self.rate(now))


@dataclass(eq=False)
class Job:
    """A task, or background work (index None), on its way to a node or at it."""

    index: int | None
    cycles: float  # true
    seen: float  # the cycles that nodes see (R35)
    reservation: float
    arrival: float  # at the node
    executed: float = 0.0  # cycles, until `since`
    since: float = math.nan  # from then on at the node's present speed
    finish: float = math.nan
    place: int = 0  # of its finish among events of one instant
    scheduled: set[float] = field(default_factory=set)


class Server:
    """A node's slots, waiting queue and storage (R9-R12)."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.waiting: deque[Job] = deque()
        self.running: list[Job] = []
        self.factor = 1.0  # of its speed (R37)
        self.up, self.up_since = True, 0.0  # R38

    def jobs(self) -> list[Job]:
        return self.running + list(self.waiting)

    @property
    def rate(self) -> float:
        """Cycles/ms of one slot, at the present speed."""
        return self.node.rate * self.factor

    def executed(self, now: float, job: Job) -> float:
        return job.executed + (now - job.since) * self.rate

    def has_room(self, reservation: float, ahead: Sequence[Job] = ()) -> bool:
        """R10, as if the jobs ahead were here already."""
        present = [job.reservation for job in [*self.jobs(), *ahead]]
        free = self.node.storage - sum(present)
        return free >= reservation and len(present) < self.node.queue

    def state(self, now: float) -> State:
        idle = self.node.slots - len(self.running)
        wait = now - self.waiting[0].arrival if self.waiting else 0.0
        work = sum(job.seen for job in self.waiting)
        work += sum(self.seen_left(now, job) for job in self.running)
        return (
            idle,
            wait,
            work / self.factor,
            self.node.storage - sum(job.reservation for job in self.jobs()),
        )

    def seen_left(self, now: float, job: Job) -> float:
        """R35: of a running job, what is seen of it less what has been executed."""
        return max(job.seen - self.executed(now, job), 0.0)

    def seen_wait(self, now: float) -> float:
        """How long a job that came now would wait, by the cycles that the node sees."""
        slots = [0.0] * (self.node.slots - len(self.running))
        slots += [self.seen_left(now, job) / self.rate for job in self.running]
        for job in self.waiting:
            slots.sort()
            slots[0] += job.seen / self.rate
        return min(slots)

    def forecast(self, now: float, job: Job, ahead: Sequence[Job]) -> float:
        """When a job would finish, after the jobs here and those on their way ahead of it."""
        slots = [now] * (self.node.slots - len(self.running))
        slots += [job.finish for job in self.running]
        heapq.heapify(slots)
        end = now
        for other in [*self.waiting, *ahead, job]:
            end = max(other.arrival, heapq.heappop(slots)) + other.cycles / self.rate
            heapq.heappush(slots, end)
        return end


class World:
    """One episode."""

    def __init__(
        self,
        parameters: Parameters,
        tasks: Sequence[Task],
        decide: Decide,
        update: Update | None,
        background: Sequence[Background],
        ride: Ride | None = None,
    ) -> None:
        p = self.p = parameters
        self.ride, self.messages, self.status_bytes = ride, 0, 0.0
        self.tasks, self.decide, self.update = tasks, decide, update
        self.now = 0.0
        self.sequence = 0
        self.events: list[tuple[float, int, int, Callable[..., None], tuple[object, ...]]] = []
        self.ens = [Server(node) for node in p.ens]
        self.sns = [Server(node) for node in p.sns]
        self.reach = [p.reach(en) for en in range(len(p.ens))]
        self.up: list[dict[int, Pipe]] = []  # [en][sn], where there is a link
        self.down: list[dict[int, Pipe]] = []
        for row in p.links:
            there = {sn: link for sn, link in enumerate(row) if link is not None}
            self.up.append({s: Pipe(k, k.up_mbps, k.up_schedule) for s, k in there.items()})
            self.down.append({s: Pipe(k, k.down_mbps, k.down_schedule) for s, k in there.items()})
        self.windows = [range_window(ue, p.speed_m_per_s, p.radius_m) for ue in p.ues]
        self.channel_free = [0.0] * len(p.ens)
        self.in_flight: list[list[Job]] = [[] for _ in p.sns]  # in the order of sending
        empty: list[Reading] = [(None, (sn.slots, 0.0, 0.0, sn.storage)) for sn in p.sns]  # R14
        self.cache = [list(empty) for _ in p.ens]
        self.acknowledged = [[empty[sn]] * len(p.ens) for sn in range(len(p.sns))]
        self.cache_log: list[CacheChange] = []
        self.heard: list[Heard] = []
        self.heard_of: set[int] = set()
        # Of every SN (time, delay or None if refused, success), as it judges itself (R29).
        self.ended: list[list[tuple[float, float | None, bool]]] = [[] for _ in p.sns]
        self.results = [Result() for _ in tasks]
        self.life = [0] * len(p.sns)  # how often each SN has failed: its pending decision is void
        for time, event, kind, node, factor in p.events:
            if event == "speed":
                self.at(time, CHANGE, self.on_speed, kind, node, factor)
            else:
                self.at(time, CHANGE, self.on_down if event == "down" else self.on_up, node)
        for index, task in enumerate(tasks):
            self.at(task.time, GENERATION, self.on_request, index)
        for work in background:
            self.at(work.time, TENANT, self.on_background, work)
        if update is not None and p.window_ms > 0:
            for sn in range(len(p.sns)):
                if not self.told(sn):
                    continue
                self.at(0.0, SN_DECISION, self.on_update, sn, 0)

    def told(self, sn: int) -> list[int]:
        """The ENs that reach an SN."""
        return [en for en in range(len(self.ens)) if sn in self.down[en]]

    def at(self, time: float, kind: int, handler: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self.events, (time, kind, self.sequence, handler, arguments))
        self.sequence += 1

    def run(self) -> None:
        while self.events:
            self.now, _, _, handler, arguments = heapq.heappop(self.events)
            handler(*arguments)

    def on_request(self, index: int) -> None:
        """A UE asks for the channel (R6, R7), first when the task is generated."""
        task, p = self.tasks[index], self.p
        free = self.channel_free[task.en]
        start = max(self.now, free)
        window = self.windows[task.ue]
        last = task.time + task.deadline + p.undecided_after_ms
        if window is None or start > window[1] or start < window[0] > last:
            self.results[index].finished = last
        elif start < window[0]:
            self.at(window[0], GENERATION, self.on_request, index)
        else:
            hold = p.access_overhead_ms + task.input_bytes / (p.access_rate_mbps * BYTES_PER_MS)
            end = start + hold + (p.contention_ms if free > self.now else 0.0)
            self.channel_free[task.en] = end
            if end > last:  # R4
                self.results[index].finished = last
            else:
                self.at(end, EN_DECISION, self.on_task, index)

    def on_background(self, work: Background) -> None:
        if self.sns[work.sn].up:
            self.join(self.sns[work.sn], work.sn, self.job(None, work))

    def job(self, index: int | None, work: Task | Background) -> Job:
        """R35: true cycles are executed; nodes see the declared ones, or the same of all."""
        true = work.cycles if work.true_cycles is None else work.true_cycles
        told = self.p.undeclared_cycles
        seen = work.cycles if told is None else told
        reservation = max(work.input_bytes, self.p.reservation_floor_bytes)
        return Job(index, true, seen, reservation, self.now)

    def routes(self, task: Task, job: Job) -> tuple[list[float], list[bool]]:
        """R15: the estimated delay of every route and whether it is feasible."""
        here = self.ens[task.en]
        estimates = [here.forecast(self.now, job, ()) - task.time]
        rooms = [here.has_room(job.reservation)]
        for sn in self.reach[task.en]:
            server = self.sns[sn]
            up, down = self.up[task.en][sn], self.down[task.en][sn]
            if not server.up:  # R38: no route
                estimates.append(math.inf)
                rooms.append(False)
                continue
            arrival = up.estimate(self.now, self.now, task.input_bytes)
            sent = Job(job.index, job.cycles, job.seen, job.reservation, arrival)
            ahead = [other for other in self.in_flight[sn] if other.arrival <= arrival]
            ahead.sort(key=lambda other: other.arrival)  # stable: ties in the order of sending
            completion = server.forecast(self.now, sent, ahead)
            returned = down.estimate(self.now, completion, self.p.result_bytes)
            estimates.append(returned - task.time)
            rooms.append(server.has_room(job.reservation, ahead))
        return estimates, [a and b <= task.deadline for a, b in zip(rooms, estimates, strict=True)]

    def on_task(self, index: int) -> None:
        """The EN decides (R1)."""
        task, server = self.tasks[index], self.ens[self.tasks[index].en]
        job = self.job(index, task)
        estimates, feasible = self.routes(task, job)
        local_room = server.has_room(job.reservation)
        reach = self.reach[task.en]
        state, cache = server.state(self.now), [self.cache[task.en][sn] for sn in reach]
        offered = list(feasible)
        view = TaskView(
            *(index, task.en, self.now, local_room, estimates, offered, state, cache),
            cycles=job.seen,
            local_wait=server.seen_wait(self.now),
            speed=server.factor,
        )
        action = self.decide(view)
        result = self.results[index]
        result.action, result.decided, result.feasible = action, self.now, feasible
        if action == 0:
            self.join(server, None, job)
        elif 1 <= action <= len(reach):
            sn = reach[action - 1]
            job.arrival = self.up[task.en][sn].send(self.now, task.input_bytes)
            self.in_flight[sn].append(job)
            self.at(job.arrival, DELIVERY, self.on_offloaded, sn, job)
            if self.p.outages:
                last = max(task.time + task.deadline, self.now)
                self.at(last, DEADLINE, self.on_deadline, index)
        elif action == self.p.reject:
            result.outcome, result.finished = "FN" if any(feasible) else "TN", self.now
            self.hear(index, "given up")
        else:
            raise ValueError(f"action {action!r} is not a route or a rejection")

    def on_offloaded(self, sn: int, job: Job) -> None:
        self.in_flight[sn].remove(job)
        if self.sns[sn].up:
            self.join(self.sns[sn], sn, job)
        else:
            self.lose(job)

    def join(self, server: Server, sn: int | None, job: Job) -> None:
        """A job reaches a node (R10); sn is None at an EN."""
        if server.has_room(job.reservation):
            server.waiting.append(job)
            self.start(server, sn)
        elif job.index is not None:
            self.close(job.index, refused=True)
            if sn is None:
                self.hear(job.index, "refused")
            else:  # R27
                self.ended[sn].append((self.now, None, False))
                down = self.down[self.tasks[job.index].en][sn]
                arrival = down.send(self.now, self.p.notice_bytes)
                self.at(arrival, DELIVERY, self.hear, job.index, "refused")

    def lose(self, job: Job) -> None:
        """R38: a false positive at its deadline, or now if that is later."""
        if job.index is not None:
            task, result = self.tasks[job.index], self.results[job.index]
            result.outcome = "FP"
            result.finished = max(task.time + task.deadline, self.now)
            result.delay = result.finished - task.time

    def on_deadline(self, index: int) -> None:
        """R38: the EN waits no longer."""
        self.hear(index, "expired")

    def on_down(self, sn: int) -> None:
        """R38: all that the SN has and knows is gone."""
        server = self.sns[sn]
        for job in server.jobs():
            self.lose(job)
        server.running, server.waiting = [], deque()
        server.up = False
        self.life[sn] += 1
        self.ended[sn] = []
        for en in range(len(self.ens)):
            self.acknowledged[sn][en] = (None, (server.node.slots, 0.0, 0.0, server.node.storage))

    def on_up(self, sn: int) -> None:
        server = self.sns[sn]
        server.up, server.up_since = True, self.now
        if self.update is not None and self.told(sn) and self.now <= self.p.window_ms:
            self.at(self.now, SN_DECISION, self.on_update, sn, self.life[sn])

    def hear(self, index: int, fate: str) -> None:
        """An EN learns what became of a task of its own (R29), once."""
        if index in self.heard_of:
            return
        self.heard_of.add(index)
        in_time = fate == "done" and self.results[index].outcome == "TP"
        self.heard.append(Heard(self.now, index, fate, in_time))

    def start(self, server: Server, sn: int | None) -> None:
        if server.waiting and len(server.running) < server.node.slots:
            job = server.waiting.popleft()
            job.since, job.place = self.now, self.sequence
            server.running.append(job)
            self.sequence += 1
            self.finish_later(server, sn, job)

    def finish_later(self, server: Server, sn: int | None, job: Job) -> None:
        """Schedule the finish of a running job; one that was scheduled before is void (R37)."""
        job.finish = self.now + (job.cycles - job.executed) / server.rate
        if job.finish not in job.scheduled:
            job.scheduled.add(job.finish)
            event = self.on_finish, (server, sn, job, job.finish)
            heapq.heappush(self.events, (job.finish, FINISH, job.place, *event))

    def on_speed(self, kind: str, node: int, factor: float) -> None:
        """R37: running jobs go on at the new speed with what is left of them."""
        server = self.ens[node] if kind == "en" else self.sns[node]
        if factor == server.factor:
            return
        for job in server.running:
            job.executed, job.since = server.executed(self.now, job), self.now
        server.factor = factor
        for job in server.running:
            self.finish_later(server, None if kind == "en" else node, job)

    def on_finish(self, server: Server, sn: int | None, job: Job, when: float) -> None:
        if job.finish != when or job not in server.running:
            return
        server.running.remove(job)
        self.start(server, sn)
        if job.index is None:
            return
        if sn is None:
            self.on_result(job.index)
        else:
            task = self.tasks[job.index]
            down, size, state = self.down[task.en][sn], self.p.result_bytes, None
            if self.ride is not None and self.ride(sn, task.en, self.now):
                state = server.state(self.now)
                self.charge(4.0 * self.p.status_dims)
                size += 4.0 * self.p.status_dims
            idle_return = down.delivered(self.now, size, down.rate(self.now))
            delay = idle_return - task.time
            self.ended[sn].append((self.now, delay, delay <= task.deadline))
            arrival = down.send(self.now, size)
            self.at(arrival, DELIVERY, self.on_returned, job.index, sn, self.now, state)

    def on_returned(self, index: int, sn: int, source_time: float, state: State | None) -> None:
        self.on_result(index)
        if state is not None:
            self.on_status(self.tasks[index].en, sn, source_time, state)

    def on_result(self, index: int) -> None:
        self.close(index)
        self.hear(index, "done")

    def charge(self, size: float) -> None:
        """R31: a message to one EN."""
        self.messages += 1
        self.status_bytes += size

    def close(self, index: int, refused: bool = False) -> None:
        task, result = self.tasks[index], self.results[index]
        result.finished, result.delay = self.now, self.now - task.time
        result.outcome = "FP" if refused or result.delay > task.deadline else "TP"

    def on_update(self, sn: int, life: int) -> None:
        """An SN decides whether to send its state (R14, R21)."""
        assert self.update is not None
        if life != self.life[sn]:
            return
        state = self.sns[sn].state(self.now)
        told = self.told(sn)
        acknowledged = [self.acknowledged[sn][en] for en in told]
        speed = self.sns[sn].factor
        since = self.sns[sn].up_since
        view = UpdateView(sn, self.now, state, acknowledged, self.recent(sn), speed, since)
        send, interval = self.update(view)
        if interval <= 0:
            raise ValueError(f"interval {interval!r} must be positive")
        for en, wanted in zip(
            told, send if isinstance(send, list) else [send] * len(told), strict=True
        ):
            if wanted:
                self.charge(self.p.status_bytes)
                arrival = self.down[en][sn].send(self.now, self.p.status_bytes)
                self.at(arrival, DELIVERY, self.on_status, en, sn, self.now, state)
        if self.now + interval <= self.p.window_ms:
            self.at(self.now + interval, SN_DECISION, self.on_update, sn, life)

    def recent(self, sn: int) -> tuple[float, float, float]:
        """R19: mean delay, success rate, failure rate of what ended within the history."""
        since = self.now - self.p.history_ms
        ended = [entry for entry in self.ended[sn] if entry[0] >= since]
        if not ended:
            return 0.0, 0.0, 0.0
        delays = [delay for _, delay, _ in ended if delay is not None]
        success = sum(good for *_, good in ended) / len(ended)
        return sum(delays) / len(delays) if delays else 0.0, success, 1.0 - success

    def on_status(self, en: int, sn: int, source_time: float, state: State) -> None:
        held = self.cache[en][sn][0]
        if held is None or source_time > held:
            self.cache[en][sn] = (source_time, state)
            self.cache_log.append(CacheChange(self.now, en, sn, source_time, state))
            arrival = self.up[en][sn].send(self.now, self.p.ack_bytes)
            self.at(arrival, DELIVERY, self.on_ack, en, sn, source_time, state)

    def on_ack(self, en: int, sn: int, source_time: float, state: State) -> None:
        server, held = self.sns[sn], self.acknowledged[sn][en][0]
        if not server.up or source_time < server.up_since:
            return
        if held is None or source_time > held:
            self.acknowledged[sn][en] = (source_time, state)


def run(
    parameters: Parameters,
    tasks: Sequence[Task],
    decide: Decide,
    update: Update | None = None,
    background: Sequence[Background] = (),
) -> tuple[list[Result], list[CacheChange]]:
    """Run one episode until every task is final; the second value logs the changes of EN caches."""
    world = whole_run(parameters, tasks, decide, update, background)
    return world.results, world.cache_log


def whole_run(
    parameters: Parameters,
    tasks: Sequence[Task],
    decide: Decide,
    update: Update | None = None,
    background: Sequence[Background] = (),
    ride: Ride | None = None,
) -> World:
    """The same; the world with all that it has noted."""
    world = World(parameters, tasks, decide, update, background, ride)
    world.run()
    return world
