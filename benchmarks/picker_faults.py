"""What goes wrong behind a stock Envoy, and what its clients notice of it.

Unmodified HTTP services with lognormal times that nobody knows stand behind real Envoys whose
endpoints a picker chooses. Services slow down and die, pickers are killed, hung and cut off; the
same site is played by the simulator, and behind more Envoys. Times are stretched so far that a busy
machine can keep up.

python benchmarks/picker_faults.py [recovery] [pickers] [simulator] [envoys] [--small]
"""

import asyncio
import signal
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

from cosmo import simulate
from cosmo.live.config import changed_config
from cosmo.live.picker.ext_proc import DESTINATION
from cosmo.live.processes import Running
from measured import sized
from picker_site import Record, Site, standing
from picker_success import DEADLINE_S, MEAN_S, SLOTS, SPREAD, envoy_program

METHOD = "in-flight"
FAULTY = 2  # the service that fails: 3 of 18 slots
SLOW = 0.4  # of its speed
CLOSE = 0.02  # as success must come to that of the good ones
HALF_S = sized(6.0, 2.5)  # that a service is well, and then is not
TIMES = sized(8, 1)
PHASE_S = sized(5.0, 0.7)
LOADS = sized((0.7, 0.9), (0.7,))
PLAYED_S = sized(60.0, 2.0)
ENVOYS = sized((2, 8), (2,))


def _rate(load: float, slots: tuple[int, ...] = SLOTS) -> float:
    return load * sum(slots) / MEAN_S


def _success(records: list[Record]) -> float:
    return statistics.fmean(each.in_time for each in records) if records else float("nan")


# Services that slow down or die.


async def _faults_in_turn(site: Site, deadly: bool) -> int:
    """Well and not well in turn; how many requests a dying service took along."""
    service, lost, loop = site.services[FAULTY], 0, asyncio.get_running_loop()
    start = loop.time()
    for number in range(TIMES):
        await asyncio.sleep(start + (2 * number + 1) * HALF_S - loop.time())
        if deadly:
            lost += service.die()
        else:
            service.speed = SLOW
        await asyncio.sleep(start + (2 * number + 2) * HALF_S - loop.time())
        if deadly:
            await service.start()
        service.speed = 1.0
    return lost


def _since_fault(records: list[Record]) -> list[tuple[float, Record]]:
    """(seconds since the service failed, request) of those that came while it was not well."""
    placed = [(each.due_s % (2.0 * HALF_S) - HALF_S, each) for each in records]
    return [(since, each) for since, each in placed if since >= 0.0]


def _recovered_s(placed: list[tuple[float, Record]], level: float) -> float:
    """From when on all later requests are as good as those of the good services, in s."""
    step = 0.25
    for number in range(int(HALF_S / step)):
        later = [each for since, each in placed if since >= number * step]
        if later and _success(later) >= level - CLOSE:
            return number * step
    return float("inf")


async def recovery(program: Path) -> None:
    """How soon success is that of the five good services when the sixth slows down or dies."""
    seconds, rate = 2.0 * HALF_S * TIMES, _rate(0.7)
    good = tuple(each for number, each in enumerate(SLOTS) if number != FAULTY)
    async with standing(program, METHOD, slots=good, rate=rate) as site:
        five = _since_fault(await site.play(rate, seconds))
    level = _success([each for _, each in five])
    print(f"one of six services fails {TIMES} times for {HALF_S:g} s; {METHOD}, two Envoys")
    print(f"  the five good ones alone: {level:.3f} of {len(five)} requests in time")
    for name, deadly in ((f"slows down to {SLOW:.0%}", False), ("dies", True)):
        async with standing(program, METHOD, rate=rate) as site:
            failing = asyncio.create_task(_faults_in_turn(site, deadly))
            records = await site.play(rate, seconds)
            taken = await failing
        placed = _since_fault(records)
        edges = [0.0, 1.0, 2.0, HALF_S]
        parts = [
            _success([each for since, each in placed if low <= since < high])
            for low, high in pairwise(edges)
        ]
        wrong = sum(each.status != 200 for each in records)
        later = sum(each.status != 200 for _, each in placed)
        print(
            f"  {name}: {parts[0]:.3f} in the first second, {parts[1]:.3f} in the next,"
            f" {parts[2]:.3f} after; within {CLOSE} after {_recovered_s(placed, level):g} s;"
            f" {wrong - later} errors of earlier requests, {later} of later ones"
            + (f"; {taken} requests were in the service when it died" if deadly else ""),
            flush=True,
        )


# Pickers that are not there.


def _told(name: str, records: list[Record], picked: int | None = None) -> None:
    statuses = Counter(each.status for each in records)
    added = sorted(1000.0 * (each.took_s - each.work_s) for each in records if each.status == 200)
    times = "no answers"
    if added:
        times = f"{statistics.median(added):.0f} ms beside the work (median), {added[-1]:.0f} most"
    counted = ", ".join(f"{count} × {status}" for status, count in sorted(statuses.items()))
    print(f"  {name:28} {counted}; {times}", flush=True)


async def _forged(site: Site, rate: float) -> tuple[list[Record], float]:
    """Requests that name the first service; the share that it served."""
    target, before = site.services[0], sum(each.served for each in site.services)
    own = target.served
    site.headers = f"{DESTINATION}: {target.address}\r\n"
    records = await site.play(rate, PHASE_S)
    site.headers = ""
    return records, (target.served - own) / (sum(each.served for each in site.services) - before)


async def pickers(program: Path) -> None:
    """Errors and delays while the picker is not there, or knows of no endpoint."""
    rate = _rate(0.3)
    print(f"a picker fails behind one Envoy at 30 % load, {PHASE_S:g} s each")
    async with standing(program, METHOD, envoys=1, rate=rate) as site:
        [picker], [network] = site.pickers, site.networks
        config = changed_config(picker.config, {"listen": picker.address})
        _told("all is well", await site.play(rate, PHASE_S))
        records, share = await _forged(site, rate)
        _told(f"forged, {share:.0%} honoured at most", records)
        picker.process.send_signal(signal.SIGSTOP)
        _told("hung", await site.play(rate, PHASE_S))
        picker.process.send_signal(signal.SIGCONT)
        _told("goes on", await site.play(rate, PHASE_S))
        network.cut()
        _told("cut off", await site.play(rate, PHASE_S))
        network.heal()
        _told("healed", await site.play(rate, PHASE_S))
        picker.process.kill()
        picker.process.wait()
        _told("killed", await site.play(rate, PHASE_S))
        records, share = await _forged(site, rate)
        _told(f"killed, forged, {share:.0%} at most", records)
        second = Running(config, site.folder, label="second")
        try:
            await asyncio.to_thread(second.wait_for, "serving")
            _told("restarted", await site.play(rate, PHASE_S))
            endpoints = site.folder / "endpoints"
            listed = endpoints.read_text()
            endpoints.write_text("# nobody\n")
            await asyncio.to_thread(_wait_for_count, second, 0)
            _told("endpoints all gone", await site.play(rate, PHASE_S))
            endpoints.write_text(listed)
            await asyncio.to_thread(_wait_for_count, second, len(SLOTS))
            _told("endpoints are back", await site.play(rate, PHASE_S))
        finally:
            second.end()


def _wait_for_count(picker: Running, count: int) -> None:
    """Until the picker has said last that it knows so many endpoints."""
    until = time.monotonic() + 60.0
    while not (said := picker.said("endpoints")) or said[-1]["count"] != count:
        if time.monotonic() > until:
            raise TimeoutError(f"the picker never had {count} endpoints")
        time.sleep(0.02)


# The same site in the simulator, and behind more Envoys.


def simulated(method: str, rate: float, envoys: int, tenant_rate: float = 0.0) -> float:
    """Success in the simulator, with demand that nobody knows (R35); rates of all requests, and of
    a tenant's at the first service, a second.
    """
    work_ms, deadline_ms = 1000.0 * MEAN_S, 1000.0 * DEADLINE_S
    others = [[0.0, 0.0]] * (len(SLOTS) - 1)
    settings = {
        "background.rates": [[tenant_rate, tenant_rate], *others],
        "episode.window_ms": 1000.0 * sized(120.0, 5.0),
        "workload.input_bytes": [100.0, 101.0],
        "workload.cycles": [work_ms, work_ms + 1e-3],
        "workload.demand.spread": SPREAD,
        "workload.demand.declared": False,
        "workload.deadline.clip_ms": [deadline_ms, deadline_ms + 1e-3],
        "mobility.at_edge": "turn",
        "en.count": envoys,
        "en.slots": 1,
        "en.cycles_per_ms": 1.0,
        "en.storage_bytes": 1.0,  # nothing runs at a picker
        "en.queue_capacity": 1,
        "sn.count": len(SLOTS),
        "sn.slots": list(SLOTS),
        "sn.cycles_per_ms": 1.0,
        "sn.storage_bytes": 1e9,
        "sn.queue_capacity": 1000,
        "backhaul.up_mbps": 1e4,
        "backhaul.down_mbps": 1e4,
        "backhaul.hops": 1,
        "backhaul.hop_delay_ms": 0.0,
    }
    found = simulate("paper", method, episodes=sized(4, 1), rates=rate / envoys, settings=settings)
    return found.metrics["success_rate"].mean


async def _played(
    program: Path, method: str, load: float, envoys: int, shed: bool = False
) -> float:
    rate, told = _rate(load), {"picker.shed": shed}
    # A timeout that a busy machine does not reach: what is compared is choosing.
    async with standing(program, method, envoys, rate=rate, timeout_s=1.0, told=told) as site:
        records = await site.play(rate, PLAYED_S)
    return _success(records[len(records) // 10 :])


async def simulator(program: Path) -> None:
    """Success of the same rule in the simulator and behind Envoys."""
    print(f"{METHOD} behind two Envoys and in the simulator, {PLAYED_S:g} s; rejected is 429")
    for load in LOADS:
        there = simulated(METHOD, _rate(load), 2)
        here = await _played(program, METHOD, load, 2, shed=True)
        print(f"  load {load:.0%}: simulator {there:.3f}, Envoys {here:.3f}", flush=True)


async def envoys(program: Path) -> None:
    """Success behind two and eight Envoys, which know nothing of one another."""
    print(f"requests in time behind several Envoys, {PLAYED_S:g} s")
    for load in LOADS:
        for count in ENVOYS:
            alone = await _played(program, "", load, count)
            chosen = await _played(program, METHOD, load, count)
            print(
                f"  load {load:.0%}, {count} Envoys: LEAST_REQUEST {alone:.3f},"
                f" {METHOD} {chosen:.3f}",
                flush=True,
            )


PARTS: dict[str, Callable[[Path], Coroutine[Any, Any, None]]] = {
    "recovery": recovery, "pickers": pickers, "simulator": simulator, "envoys": envoys,
}  # fmt: skip


def main() -> None:
    wanted = [each for each in sys.argv[1:] if not each.startswith("--")] or list(PARTS)
    odd = [each for each in wanted if each not in PARTS]
    if odd:
        raise SystemExit(f"{odd[0]!r}: must be one of {', '.join(PARTS)}")
    program = envoy_program()
    if program is None:
        print("Envoy is left out: run `make test-integrations` once, which fetches it")
        return
    started = time.perf_counter()
    for each in wanted:
        asyncio.run(PARTS[each](program))
    print(f"took {time.perf_counter() - started:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
