"""A load generator: replays the tasks of an episode at its ENs, as UEs would send them."""

import asyncio
import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from cosmo.live.client import AsyncClient
from cosmo.live.clock import CHANGE, EN_DECISION
from cosmo.live.emulation import Surroundings, marked_input
from cosmo.live.realtime import RealClock

_LEAD_MS = 50.0  # before the first task
_SWITCH_S = 5e-4  # gRPC's own thread must not wait for long

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Load:
    """Tasks by columns, in the order of their generation."""

    time_ms: Floats  # of generation
    reached_ms: Floats  # when each is at its EN with its whole input (R6); NaN: never
    residual_ms: Floats  # until its UE leaves, from then on
    en: NDArray[np.int64]
    input_bytes: Floats
    cycles: Floats
    deadline_ms: Floats
    true_cycles: Floats | None = None  # where tasks take others than they declare (R35)

    def columns(self) -> dict[str, NDArray[Any]]:
        """All that are given by name."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: column for name, column in found.items() if column is not None}

    def content(self, task: int, bytes_of: bytes) -> bytes:
        """The input of a task, taken from `bytes_of`; says how long the work takes if need be."""
        found = bytes_of[: int(self.input_bytes[task])]
        if self.true_cycles is None:
            return found
        return marked_input(found, float(self.true_cycles[task]))


@dataclass(frozen=True)
class Changes:
    """What else happens to nodes, ENs counted before SNs, in order of time: changes of speed
    (R37, `factor`), and tasks of tenants at SNs (R39, factor 0).
    """

    time_ms: Floats
    node: NDArray[np.int64]
    factor: Floats
    input_bytes: Floats
    cycles: Floats
    true_cycles: Floats

    def columns(self) -> dict[str, NDArray[Any]]:
        """All of them by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def play(self, row: int, nodes: Sequence["Surroundings | None"]) -> None:
        """Have one of them happen."""
        node = nodes[int(self.node[row])]
        assert node is not None
        if self.factor[row] > 0.0:
            node.change_speed(float(self.factor[row]))
        else:
            size, cycles = float(self.input_bytes[row]), float(self.cycles[row])
            node.arrive(size, cycles, float(self.true_cycles[row]))


@dataclass
class Replayed:
    """What became of the tasks, in their order."""

    fate: NDArray[np.int8]  # codes of `Fate`; 0: no answer, or never at its EN
    where: list[str]
    delay_ms: Floats  # on the generator's clock
    errors: dict[str, int] = field(default_factory=dict)  # calls that failed as calls, by code
    late_p99_ms: float = 0.0  # of the generator's own timers, in real ms
    late_most_ms: float = 0.0


async def replayed(
    load: Load,
    addresses: Sequence[str],
    scale: float,
    changes: Changes | None = None,
    nodes: Sequence[str] = (),
    started: Callable[[float], None] | None = None,
) -> Replayed:
    """Send every task when it reaches its EN (R6), with what has gone of its deadline by then.

    `addresses` are those of the ENs, `nodes` those of all nodes that `changes` count. `started` is
    called when the episode's time is 0, in seconds of the machine's monotonic clock.
    """
    loop = asyncio.get_running_loop()
    count = len(load.time_ms)
    found = Replayed(np.zeros(count, np.int8), [""] * count, np.full(count, np.nan))
    clients = [AsyncClient(address, scale=scale) for address in addresses]
    around = [] if changes is None else await _surroundings(changes, nodes)
    content = bytes(int(load.input_bytes.max(initial=1.0)) + 1)
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    gc.collect()
    gc.freeze()  # a full collection over a laboratory's objects takes longer than tasks can bear
    clock = RealClock(loop, scale)
    running: set[asyncio.Task[None]] = set()

    async def send(task: int) -> None:
        now = clock.now()
        elapsed_ms = now - _LEAD_MS - float(load.time_ms[task])
        try:
            answer = await clients[int(load.en[task])].submit(
                load.content(task, content),
                deadline_ms=float(load.deadline_ms[task]),
                cycles=float(load.cycles[task]),
                elapsed_ms=elapsed_ms,
                residual_ms=float(load.residual_ms[task]),
            )
        except grpc.aio.AioRpcError as error:
            code = error.code().name
            found.errors[code] = found.errors.get(code, 0) + 1
            return
        found.fate[task] = answer.fate
        found.where[task] = answer.where
        found.delay_ms[task] = answer.delay_ms

    def start(task: int) -> None:
        call = loop.create_task(send(task))
        running.add(call)
        call.add_done_callback(running.discard)

    known = np.flatnonzero(~np.isnan(load.reached_ms))
    order = known[np.argsort(load.reached_ms[known], kind="stable")].tolist()

    def arm(place: int) -> None:
        """The next task leaves so early that it is at its EN in time; the way is part of R6's."""
        if place < len(order):
            task = order[place]
            way_ms = clients[int(load.en[task])].one_way_ms / scale
            due = float(load.reached_ms[task]) + _LEAD_MS - way_ms
            clock.at(due, EN_DECISION, partial(fire, place))

    def fire(place: int) -> None:
        start(order[place])
        arm(place + 1)

    arm(0)
    if changes is not None:
        _arm_change(clock, changes, around, 0)
    if started is not None:
        started(time.monotonic() + (_LEAD_MS - clock.now()) * scale / 1000.0)
    last = float(np.nanmax(load.reached_ms)) if len(known) else 0.0
    until = time.monotonic() + (last + _LEAD_MS) * scale / 1000.0
    while time.monotonic() < until or running:
        await asyncio.sleep(0.05)
    found.late_p99_ms = clock.lateness_ms.quantile(0.99)
    found.late_most_ms = clock.lateness_ms.most
    gc.unfreeze()
    sys.setswitchinterval(switch_s)
    clock.close()
    for client in clients:
        await client.close()
    for node in around:
        if node is not None:
            await node.close()
    return found


async def _surroundings(changes: Changes, addresses: Sequence[str]) -> "list[Surroundings | None]":
    """[node] streams to the nodes that something happens to; all are open."""
    touched = set(changes.node.tolist())
    found = [
        Surroundings(address) if node in touched else None for node, address in enumerate(addresses)
    ]
    for each in found:
        if each is not None:
            await each.ready()
    return found


def _arm_change(
    clock: RealClock, changes: Changes, around: "Sequence[Surroundings | None]", row: int
) -> None:
    def fire() -> None:
        changes.play(row, around)
        _arm_change(clock, changes, around, row + 1)

    if row < len(changes.time_ms):
        clock.at(float(changes.time_ms[row]) + _LEAD_MS, CHANGE, fire)
