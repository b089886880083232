"""A load generator: replays the tasks of an episode at its ENs, as UEs would send them."""

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

import grpc
import numpy as np
from numpy.typing import NDArray

from cosmo.live.client import AsyncClient
from cosmo.live.clock import EN_DECISION
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

    def columns(self) -> dict[str, NDArray[Any]]:
        """All of them by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


@dataclass
class Replayed:
    """What became of the tasks, in their order."""

    fate: NDArray[np.int8]  # codes of `Fate`; 0: no answer, or never at its EN
    where: list[str]
    delay_ms: Floats  # on the generator's clock
    errors: dict[str, int] = field(default_factory=dict)  # calls that failed as calls, by code
    late_p99_ms: float = 0.0  # of the generator's own timers, in real ms
    late_most_ms: float = 0.0


async def replayed(load: Load, addresses: Sequence[str], scale: float) -> Replayed:
    """Send every task when it reaches its EN (R6), with what has gone of its deadline by then."""
    loop = asyncio.get_running_loop()
    count = len(load.time_ms)
    found = Replayed(np.zeros(count, np.int8), [""] * count, np.full(count, np.nan))
    clients = [AsyncClient(address, scale=scale) for address in addresses]
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
                content[: int(load.input_bytes[task])],
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
    return found
