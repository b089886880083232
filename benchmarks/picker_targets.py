"""What a picker in front of services must reach, measured one after another, and what is missed.

Processor time for a request, what asking adds to the 99th percentile of one client's requests, and
requests in time behind two and eight Envoys. A yardstick that knows all queues plays the same site
in the simulator. On a calm machine; needs Envoy, which `make test-integrations` fetches.

python benchmarks/picker_targets.py [--small]
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from measured import sized
from picker import costs
from picker_faults import simulated
from picker_success import (
    HOT_BIT,
    IN_FLIGHT,
    LEAST_REQUEST,
    MEAN_S,
    NEXT,
    PUSHED,
    SCRAPED,
    SLOTS,
    TENANT_LOAD,
    Chooser,
    Clients,
    Played,
    compare,
    envoy_program,
    standing,
    workload,
)

COSTS_US = {"no-op": 100.0, "in-flight": 100.0, "power-of-d:keep=6": 150.0, "cosmo-next": 200.0}
ADDED_P99_MS = 1.0
GAIN, SHARE, BELOW = 0.05, 0.1, 0.005  # over LEAST_REQUEST; of scraping's messages; of in-flight
BUSY = 0.9  # the load at which the gain is asked for
LOADS, ENVOYS = sized((0.7, BUSY), (BUSY,)), sized((2, 8), (2,))
REQUESTS, ALONE, ROUNDS = sized(3000, 60), sized(3000, 50), sized(3, 1)
YARDSTICK = "shared-knowledge"
OURS = (IN_FLIGHT, HOT_BIT, PUSHED, NEXT)


async def _p99_ms(program: Path, chooser: Chooser) -> float:
    """Of one client that asks again as soon as it is answered; services answer at once."""
    async with standing(program, chooser, 100.0, 1) as site:
        clients, took = Clients(site.ports), []
        loop = asyncio.get_running_loop()
        for number in range(ALONE + ALONE // 10):
            began = loop.time()
            await clients.send(number, 0.0, began)
            took.append(loop.time() - began)
        clients.close()
    assert all(clients.in_time), "a request failed"
    return float(np.quantile(took[ALONE // 10 :], 0.99)) * 1000.0


def added_p99_ms(program: Path) -> float:
    """Print and return what the picker adds, in ms: the median of several rounds in turn."""
    added = []
    for _ in range(ROUNDS):
        alone, asked = (asyncio.run(_p99_ms(program, each)) for each in (LEAST_REQUEST, IN_FLIGHT))
        added.append(asked - alone)
        print(f"p99 of one client: Envoy alone {alone:.2f} ms, with a picker {asked:.2f} ms")
    return statistics.median(added)


def misses_of(found: Mapping[Chooser, Played], load: float) -> list[str]:
    """What each way to choose of ours misses at a load, in lines."""
    scraped, alone = found[SCRAPED], found[IN_FLIGHT].success
    lines = []
    for ours in OURS:
        success, messages = found[ours].success, found[ours].messages
        wanted = [
            ("scraping", scraped.success),
            (f"in-flight - {BELOW}", alone - BELOW),
        ]
        if load == BUSY:
            wanted.append((f"LEAST_REQUEST + {GAIN}", found[LEAST_REQUEST].success + GAIN))
        lines += [
            f"{ours.name}: {success:.3f} in time, {what} has {least:.3f}"
            for what, least in wanted
            if success < least
        ]
        if messages > SHARE * scraped.messages:
            lines.append(
                f"{ours.name}: {messages:.1f} messages/s, a tenth of scraping's are"
                f" {SHARE * scraped.messages:.1f}"
            )
    return lines


def main() -> None:
    program = envoy_program()
    if program is None:
        print("Envoy is left out: run `make test-integrations` once, which fetches it")
        return
    started, misses = time.perf_counter(), []
    for name, cost_us in costs().items():
        if cost_us > COSTS_US.get(name, np.inf):
            misses.append(f"{name}: {cost_us:.0f} µs for a request, {COSTS_US[name]:.0f} asked")
    added_ms = added_p99_ms(program)
    print(f"added: {added_ms:.2f} ms")
    if added_ms > ADDED_P99_MS:
        misses.append(f"{added_ms:.2f} ms added to the 99th percentile, {ADDED_P99_MS:g} asked")
    for envoys in ENVOYS:
        every = compare(program, (LEAST_REQUEST, SCRAPED, *OURS), LOADS, REQUESTS, envoys)
        for load, found in every.items():
            rate, tenant_rate = workload(load, REQUESTS).rate, TENANT_LOAD * SLOTS[0] / MEAN_S
            yardstick = simulated(YARDSTICK, rate, envoys, tenant_rate)
            print(f"  load {load:.0%}: {YARDSTICK} in the simulator: {yardstick:.3f}", flush=True)
            misses += [f"{envoys} Envoys, {load:.0%}: {each}" for each in misses_of(found, load)]
    print("\n".join(["missed:", *(f"  {each}" for each in misses)]) if misses else "nothing missed")
    print(f"took {time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
