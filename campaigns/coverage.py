"""How often do intervals of a resampled trace hold the truth?

    python campaigns/coverage.py [--traces 60]

Traces of 60 s are drawn from bursty arrivals, as if somebody had recorded each of them, and played
as users play traces: run 0 as recorded, the others resampled in blocks. The truth is the mean of
many independent episodes. A 95 % interval should hold it in 95 % of the traces.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from cosmo import load, method
from cosmo.control import simulate_runs
from cosmo.measure import interval
from cosmo.scenario import Scenario, changed
from cosmo.workload import episode, write_trace

METHOD, WINDOW_MS, TRACE_MS = "self-tracking", 5000.0, 60_000.0
PLAYED = ((3, 4), (3, 12), (10, 12))  # runs, episodes of each
_TRUE_RUNS, _RECORDED = range(1000, 1040), 5000  # seeds that nothing else here uses


def run_means(scenario: Scenario, seeds: range, episodes: int) -> list[float]:
    """The mean success rate of each run."""
    found = simulate_runs(scenario, method(METHOD), seeds, episodes)
    return [float(np.mean([each["success_rate"] for each in run.episodes])) for run in found]


def main() -> None:
    """A row for each amount of playing."""
    options = argparse.ArgumentParser()
    options.add_argument("--traces", type=int, default=60)
    count = options.parse_args().traces
    world = load("paper", ["workload.arrivals=bursty", f"episode.window_ms={WINDOW_MS}"])
    world = changed(world, ["workload.rate=220", "episode.warmup_ms=0"])
    truth = float(np.mean(run_means(world, _TRUE_RUNS, 12)))
    whole = changed(world, {"episode.window_ms": TRACE_MS})
    held: dict[tuple[int, int], list[bool]] = {played: [] for played in PLAYED}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder) / f"{number}.parquet"
            write_trace(path, episode(whole, _RECORDED + number, 0).tasks, 1)
            recorded = changed(world, {"workload.trace": str(path)})
            for runs, episodes in PLAYED:
                mean, half = interval(run_means(recorded, range(runs), episodes))
                held[runs, episodes].append(abs(mean - truth) <= half)
    print("| runs × episodes | played, of 60 s recorded | intervals that hold the truth |")
    print("|---|---|---|")
    for (runs, episodes), holds in held.items():
        played_s = runs * episodes * WINDOW_MS / 1000.0
        print(f"| {runs} × {episodes} | {played_s:.0f} s | {np.mean(holds):.0%} |")


if __name__ == "__main__":
    main()
