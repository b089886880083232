"""How often do intervals of a resampled trace hold the truth?

    python campaigns/trace_coverage.py [--traces 100]

Traces of 60 s are drawn from bursty arrivals, as if somebody had recorded each of them, and played
as users play traces: run 0 as recorded, the others resampled in blocks. The truth is the mean of
many independent episodes. A 95 % interval should hold it in 95 % of the traces. A row is an amount
of playing; intervals are those of a study (Student's t of a method, bootstrap of the difference of
two), and beside them those that take all runs for independent.
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import polars

from cosmo import load, method
from cosmo.scenario import Scenario, changed
from cosmo.study.statistics import paired, summarise
from cosmo.study.units import played_rows, result_table
from cosmo.workload import episode, write_trace

METHODS = ("self-tracking", "local-until-full")
WINDOW_MS, TRACE_MS = 5000.0, 60_000.0
PLAYED = ((3, 4), (3, 12), (5, 12), (10, 12))  # runs, episodes of each
_TRUE_RUNS, _RECORDED = range(1000, 1060), 5000  # seeds that nothing else here uses
_KINDS = tuple(product(("a method", "a difference"), ("widened", "as if independent")))


def played(scenario: Scenario, seeds: range, episodes: int) -> polars.DataFrame:
    """The metrics of both methods, as a study has them."""
    rows = []
    for name in METHODS:
        rows += played_rows(scenario, name, method(name), list(seeds), episodes)
    return result_table(rows)


def holds(metrics: polars.DataFrame, truth: float, difference: float) -> list[bool]:
    """Whether the truth is in each of `_KINDS`."""
    found = []
    for table in (metrics, metrics.drop("trace_windows")):
        own = summarise(table).row(by_predicate=_is_own, named=True)
        ahead = paired(table, *METHODS).row(0, named=True)
        found.append(
            (
                abs(own["mean"] - truth) <= own["ci95"],
                ahead["low"] <= difference <= ahead["high"],
            )
        )
    return [found[way][kind] for kind, way in product(range(2), range(2))]


_is_own = (polars.col("metric") == "success_rate") & (polars.col("method") == METHODS[0])


def main() -> None:
    """A row for each amount of playing."""
    options = argparse.ArgumentParser()
    options.add_argument("--traces", type=int, default=100)
    count = options.parse_args().traces
    world = load("paper", ["workload.arrivals=bursty", f"episode.window_ms={WINDOW_MS}"])
    world = changed(world, ["workload.rate=220", "episode.warmup_ms=0"])
    true = played(world, _TRUE_RUNS, 12).group_by("method").agg(polars.col("success_rate").mean())
    means = dict(true.iter_rows())
    truth = (means[METHODS[0]], means[METHODS[0]] - means[METHODS[1]])
    whole = changed(world, {"episode.window_ms": TRACE_MS})
    held: dict[tuple[int, int], list[list[bool]]] = {amount: [] for amount in PLAYED}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder) / f"{number}.parquet"
            write_trace(path, episode(whole, _RECORDED + number, 0).tasks, 1)
            recorded = changed(world, {"workload.trace": str(path)})
            most = played(recorded, range(max(runs for runs, _ in PLAYED)), 12)
            for runs, episodes in PLAYED:
                some = most.filter(polars.col("seed") < runs, polars.col("episode") < episodes)
                held[runs, episodes].append(holds(some, *truth))
    titles = (f"{kind}, {way}" for kind, way in _KINDS)
    print(f"| runs × episodes | played, of 60 s recorded | {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|")
    for (runs, episodes), rows in held.items():
        played_s = runs * episodes * WINDOW_MS / 1000.0
        shares = " | ".join(f"{share:.0%}" for share in np.mean(rows, axis=0))
        print(f"| {runs} × {episodes} | {played_s:.0f} s | {shares} |")


if __name__ == "__main__":
    main()
