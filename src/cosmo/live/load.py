"""A load generator: replays the tasks of an episode at its ENs, as UEs would send them."""

import asyncio
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import grpc
import numpy as np
from numpy.typing import NDArray

from cosmo.live.cell import arrivals_at_ens
from cosmo.live.client import AsyncClient
from cosmo.live.host import EN_DECISION
from cosmo.live.items import Fate
from cosmo.live.realtime import RealHost
from cosmo.scenario import Scenario
from cosmo.workload import Tasks

_LEAD_MS = 50.0  # before the first task


@dataclass
class Replayed:
    """What became of the tasks, in their order."""

    fate: NDArray[np.int8]  # codes of `Fate`; 0: no answer, or never at its EN
    where: list[str]
    delay_ms: NDArray[np.float64]  # on the generator's clock
    errors: dict[str, int] = field(default_factory=dict)  # calls that failed as calls, by code
    late_p99_ms: float = 0.0  # of the generator's own timers, in real ms
    late_most_ms: float = 0.0


async def replayed(
    scenario: Scenario, tasks: Tasks, addresses: Sequence[str], scale: float
) -> Replayed:
    """Send every task when it reaches its EN (R6), with what has gone of its deadline by then."""
    loop = asyncio.get_running_loop()
    reached = arrivals_at_ens(scenario, tasks)
    count = len(tasks)
    found = Replayed(np.zeros(count, np.int8), [""] * count, np.full(count, np.nan))
    clients = [AsyncClient(address, scale=scale) for address in addresses]
    content = bytes(int(tasks.input_bytes.max(initial=1.0)) + 1)
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(5e-4)
    gc.collect()
    gc.freeze()  # a full collection over a laboratory's objects takes longer than tasks can bear
    host = RealHost(loop, scale)
    running: set[asyncio.Task[None]] = set()

    async def send(task: int) -> None:
        now = host.now()
        elapsed_ms = now - _LEAD_MS - float(tasks.time_ms[task])
        try:
            answer = await clients[int(tasks.en[task])].submit(
                content[: int(tasks.input_bytes[task])],
                deadline_ms=float(tasks.deadline_ms[task]),
                cycles=float(tasks.cycles[task]),
                elapsed_ms=elapsed_ms,
                residual_ms=float(reached.residual_ms[task]),
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

    known = np.flatnonzero(~np.isnan(reached.time_ms))
    order = known[np.argsort(reached.time_ms[known], kind="stable")].tolist()

    def arm(place: int) -> None:
        """The next task leaves so early that it is at its EN in time; the way is part of R6's."""
        if place < len(order):
            task = order[place]
            way_ms = clients[int(tasks.en[task])].one_way_ms / scale
            due = float(reached.time_ms[task]) + _LEAD_MS - way_ms
            host.at(due, EN_DECISION, partial(fire, place))

    def fire(place: int) -> None:
        start(order[place])
        arm(place + 1)

    arm(0)
    last = float(np.nanmax(reached.time_ms)) if len(known) else 0.0
    until = time.monotonic() + (last + _LEAD_MS) * scale / 1000.0
    while time.monotonic() < until or running:
        await asyncio.sleep(0.05)
    found.late_p99_ms = host.lateness_ms.quantile(0.99)
    found.late_most_ms = host.lateness_ms.most
    gc.unfreeze()
    sys.setswitchinterval(switch_s)
    host.close()
    for client in clients:
        await client.close()
    return found


def success(found: Replayed, tasks: Tasks, warmup_ms: float) -> float:
    """Share of the measured tasks (R17) that were done in time."""
    measured = tasks.time_ms >= warmup_ms
    return float((found.fate[measured] == Fate.DONE).mean()) if measured.any() else float("nan")
