"""Chooses the table and the horizon of `adaptive-prices` on training workloads alone.

First, at each load, the two parameters of a price that does not adapt: all of a grid are played on
the same workloads. Then the horizon over which arrivals are smoothed, with the table that came
out, on steady and on changing loads.

python examples/fit_adaptive_prices.py [episodes]
"""

import sys
from itertools import product

import numpy as np

from cosmo import Method, Scenario, episode, episode_metrics, load, play
from cosmo.policy.rules import adaptive

FIRST_RUN = 100  # evaluation has the runs from 0 on, far fewer than that
RATES = (120, 160, 200, 220, 240, 280, 320)
PROCESSES = ("deterministic", "poisson")
FROM_MS = (-60.0, -40.0, -25.0, -15.0, -10.0, -5.0, 0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0,
           40.0, 50.0, 70.0, 100.0)  # fmt: skip
PRICES = (0.002, 0.004, 0.007, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03, 0.04, 0.06, 0.1)
HORIZONS_MS = (60.0, 125.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0)


class Candidate(Method):
    """A horizon and a table of its own."""

    def __init__(self, horizon_ms, table):
        self._horizon_ms, self._table = horizon_ms, np.array(table)

    def dispatcher(self, site):
        """At work."""
        return adaptive.dispatcher(site, self._horizon_ms, self._table)


def scores(scenario: Scenario, candidates: list[Candidate], episodes: int) -> np.ndarray:
    """Mean success rate of each candidate; all of them play the same episodes."""
    worlds = [episode(scenario, FIRST_RUN + number, 0) for number in range(episodes)]
    found = [play(scenario, each, worlds) for each in candidates]
    rates = [[episode_metrics(scenario, each, 0)["success_rate"] for each in row] for row in found]
    return np.mean(rates, axis=1)


def at(process: str, rate: float) -> Scenario:
    """The paper's world at a load."""
    return load("paper", [f"workload.arrivals={process}", f"workload.rate={rate}"])


def middle(count: int) -> np.ndarray:
    """How far each of so many is from the middle one, as a share of the way to the ends."""
    return np.abs(np.linspace(-1.0, 1.0, count))


def best_at(rate: float, episodes: int) -> tuple[float, float, float]:
    """A row of the table: the share of the capacity that this rate asks for, and its best pair."""
    grid = list(product(FROM_MS, PRICES))
    total = np.zeros(len(grid))
    for process in PROCESSES:
        scenario = at(process, rate)
        # A table of one row is the same at every load.
        tried = [Candidate(1000.0, [[0.0, *pair]]) for pair in grid]
        total += scores(scenario, tried, episodes)
    total /= len(PROCESSES)
    mean_cycles = 0.5 * sum(scenario.workload.cycles)
    share = rate / 1000.0 * mean_cycles / scenario.capacity_cycles_per_ms
    # Below the capacity all pairs that refuse nothing are equally good: of equals the one nearest
    # to the middle of the grid.
    off = np.maximum(middle(len(FROM_MS))[:, None], middle(len(PRICES))).ravel()
    best = np.flatnonzero(total >= total.max() - 1e-12)
    chosen = best[off[best].argmin()]
    from_ms, price = grid[chosen]
    print(f"{rate}/s ({share:.4f}): {from_ms:g} ms, {price:g} a ms: {total[chosen]:.4f}", end="")
    edge = ", on the edge of the grid" if off[chosen] == 1.0 else ""
    print(f" ({len(best)} equally good){edge}", flush=True)
    return share, from_ms, price


def main(episodes: int = 6) -> None:
    """Print the best pair of every load, and the score of every horizon with these."""
    table = np.array([best_at(rate, episodes) for rate in RATES])
    compare_horizons(table, episodes)


def compare_horizons(table: np.ndarray, episodes: int) -> None:
    """Print the mean success rate of every horizon over steady and changing loads."""
    loads, total = list(product((*PROCESSES, "bursty", "steps"), RATES)), 0.0
    for process, rate in loads:
        scenario = at(process, rate)
        total += scores(scenario, [Candidate(each, table) for each in HORIZONS_MS], episodes)
    for horizon_ms, score in zip(HORIZONS_MS, total / len(loads), strict=True):
        print(f"horizon {horizon_ms:g} ms: {score:.5f}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
