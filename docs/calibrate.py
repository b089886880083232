"""The embedded channel (R6) fitted to what ns-3's Wi-Fi does with a scenario's tasks.

Overhead and rate are what a task finds on an idle channel; the cost of contention is what then
brings the mean delays under load closest, in the sense of their ratios. This is how the numbers of
R6 and the table of ns3.md were found; settings of the scenario may follow.

    python docs/calibrate.py wifi.mcs=6
"""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import theilslopes

from cosmo.errors import InputError
from cosmo.node.units import BYTES_PER_MS
from cosmo.ns3.worlds import Ns3Worlds
from cosmo.scenario import Scenario, changed, load
from cosmo.workload import Episode, Tasks, episode

Floats = NDArray[np.float64]

_IDLE_RATE = 20.0  # tasks a second in a cell: nearly all find the channel idle
_DIGITS = 4  # of what is written down
_MOST_CONTENTION_MS = 20.0


@dataclass(frozen=True, slots=True)
class Uplink:
    """Tasks of one cell and their delays to the EN on ns-3; NaN if they never arrived."""

    tasks: Tasks
    delay_ms: Floats

    @property
    def arrives(self) -> bool:
        """Whether any task does."""
        return bool(np.isfinite(self.delay_ms).any())


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the embedded channel does at one rate."""

    rate: float
    tasks: int
    lost: int
    mean_ms: float
    p95_ms: float
    embedded_mean_ms: float
    embedded_p95_ms: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fields of `access` that fit, and what they leave unexplained."""

    overhead_ms: float
    contention_ms: float
    rate_mbps: float
    fits: list[Fit]


def calibrate(scenario: Scenario, rates: Sequence[float], seed: int, episodes: int) -> Calibration:
    """Measure the uplink of a scenario's first cell on ns-3 and fit the embedded channel to it.

    Rates are in tasks/s; so many `episodes` are played at each, and on an idle channel. Raises
    InputError if no task arrives at a rate, or too few do on an idle channel.
    """
    on_ns3 = changed(scenario, {"engine": "ns3"})

    def measured(load: Scenario) -> list[Uplink]:
        return [_measure(load, episode(load, seed, number)) for number in range(episodes)]

    idle = changed(on_ns3, {"workload.arrivals": "deterministic", "workload.rate": _IDLE_RATE})
    overhead, speed = _idle_channel(measured(idle))
    uplinks = []
    for rate in rates:
        uplinks.append(measured(changed(on_ns3, {"workload.rate": rate})))
        if not any(each.arrives for each in uplinks[-1]):
            raise InputError(f"workload.rate = {rate:g}: no task arrives at the first EN on ns-3")
    loaded = [each for some in uplinks for each in some if each.arrives]

    def mismatch(contention: float) -> float:
        return sum(
            math.log(
                np.nanmean(channel_delays(each.tasks, overhead, contention, speed))
                / np.nanmean(each.delay_ms)
            )
            ** 2
            for each in loaded
        )

    best = minimize_scalar(mismatch, bounds=(0.0, _MOST_CONTENTION_MS), method="bounded")
    contention = round(float(best.x), _DIGITS)
    fits = []
    for rate, some in zip(rates, uplinks, strict=True):
        real = np.concatenate([each.delay_ms for each in some])
        ours = np.concatenate(
            [channel_delays(each.tasks, overhead, contention, speed) for each in some]
        )
        fits.append(
            Fit(
                rate=float(rate),
                tasks=len(real),
                lost=int(np.isnan(real).sum()),
                mean_ms=float(np.nanmean(real)),
                p95_ms=float(np.nanquantile(real, 0.95)),
                embedded_mean_ms=float(ours.mean()),
                embedded_p95_ms=float(np.quantile(ours, 0.95)),
            )
        )
    return Calibration(overhead, contention, speed, fits)


def _measure(scenario: Scenario, chosen: Episode) -> Uplink:
    """Every task of the first cell travels to its EN and is rejected there; others are silent."""
    chosen = replace(chosen, tasks=chosen.tasks.taken(chosen.tasks.en == 0))
    worlds = Ns3Worlds(scenario, [chosen])
    turn = worlds.advance()
    while not turn.over:
        worlds.answer(action=[turn.dispatch.reject])
        turn = worlds.advance()
    return Uplink(chosen.tasks, worlds.outcome(0).decided_ms - chosen.tasks.time_ms)


def _idle_channel(uplinks: list[Uplink]) -> tuple[float, float]:
    """Overhead in ms and rate in Mbps; robust against the few tasks that meet a beacon."""
    sizes = np.concatenate([each.tasks.input_bytes for each in uplinks])
    delays = np.concatenate([each.delay_ms for each in uplinks])
    there = np.isfinite(delays)
    if there.sum() < 2 or np.ptp(sizes[there]) == 0:
        raise InputError("access: too few tasks, or all of one size, arrive on an idle channel")
    slope, intercept, *_ = theilslopes(delays[there], sizes[there], method="joint")
    if slope <= 0:
        raise InputError("access: delays on an idle channel do not grow with the input")
    return max(0.0, round(float(intercept), _DIGITS)), round(1.0 / slope / BYTES_PER_MS, _DIGITS)


def channel_delays(
    tasks: Tasks, overhead_ms: float, contention_ms: float, rate_mbps: float
) -> Floats:
    """R6: the delays of one cell's tasks, all in range."""
    free, delays = 0.0, np.empty(len(tasks))
    holds = overhead_ms + tasks.input_bytes / (rate_mbps * BYTES_PER_MS)
    for task, (now, hold) in enumerate(zip(tasks.time_ms.tolist(), holds.tolist(), strict=True)):
        free = free + hold + contention_ms if free > now else now + hold
        delays[task] = free - now
    return delays


def described(scenario: Scenario) -> dict[str, Any]:
    """The fitted fields and how well they do at the scenario's rates, with seeds of no study."""
    found = calibrate(scenario, scenario.workload.rates_of_interest, seed=1000, episodes=2)
    names = ("rate_mbps", "overhead_ms", "contention_ms")
    return {
        "access": {name: getattr(found, name) for name in names},
        "rates": [asdict(fit) for fit in found.fits],
    }


if __name__ == "__main__":
    print(json.dumps(described(load("paper", sys.argv[1:])), indent=1))
