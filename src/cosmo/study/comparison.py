"""Methods side by side on equal workloads, over rates and arrival processes."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product

import polars

from cosmo.control import method, simulate
from cosmo.measure import fluid_bound, mean_bound
from cosmo.scenario import Scenario, load
from cosmo.study.reported import reported


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rows: arrivals, rate, method, metric, mean, ci95, paper (null where it gives no number)."""

    scenario: Scenario
    table: polars.DataFrame
    bounds: polars.DataFrame  # arrivals, rate, mean, fluid


@dataclass(frozen=True, slots=True)
class _Point:
    """One method at one load: a piece of work that needs nothing else."""

    source: str
    settings: tuple[str, ...]
    arrivals: str
    rate: float
    method: str
    seed: int
    episodes: int

    def scenario(self) -> Scenario:
        load_ = f"workload.arrivals={self.arrivals}", f"workload.rate={self.rate}"
        return load(self.source, [*self.settings, *load_])


Row = tuple[str, float, str, str, float, float]


def _play(point: _Point) -> list[Row]:
    result = simulate(point.scenario(), method(point.method), point.seed, point.episodes)
    return [
        (point.arrivals, point.rate, point.method, name, value.mean, value.ci95)
        for name, value in result.metrics.items()
    ]


def compare(
    source: str,
    settings: Sequence[str],
    arrivals: Sequence[str],
    rates: Sequence[float],
    methods: Sequence[str],
    seed: int,
    episodes: int,
    share_done: Callable[[float], None] = lambda share: None,
    workers: int | None = None,
) -> Comparison:
    """Play every method at every point; the same seed gives all of them the same workloads.

    The work is spread over `workers` processes (as many as cores by default); the result does not
    depend on how many there are.
    """
    points = [
        _Point(source, tuple(settings), process, rate, name, seed, episodes)
        for process, rate, name in product(arrivals, rates, methods)
    ]
    for name in methods:
        method(name)  # a wrong one is refused here, not in a worker
    bounds = [
        (process, rate, mean_bound(scenario), fluid_bound(scenario))
        for process, rate in product(arrivals, rates)
        for scenario in [_Point(source, tuple(settings), process, rate, "", 0, 0).scenario()]
    ]
    rows = [row for part in _spread(points, share_done, workers) for row in part]
    columns = ["arrivals", "rate", "method", "metric", "mean", "ci95"]
    table = polars.DataFrame(rows, schema=columns, orient="row").fill_nan(None)
    scenario = load(source, settings)
    paper = reported().select("arrivals", "rate", "method", "metric", paper="value")
    if not _is_the_papers_world(scenario):
        paper = paper.clear()  # its numbers are about another world
    keys = ["arrivals", "rate", "method", "metric"]
    return Comparison(
        scenario=scenario,
        table=table.join(paper, on=keys, how="left", maintain_order="left"),
        bounds=polars.DataFrame(bounds, schema=["arrivals", "rate", "mean", "fluid"], orient="row"),
    )


def _is_the_papers_world(scenario: Scenario) -> bool:
    """The same in all but its name and the loads to look at."""
    paper = load("paper")
    loads = {"rate", "arrivals", "rates_of_interest"}
    ours = scenario.model_dump(exclude={"name": True, "description": True, "workload": loads})
    return ours == paper.model_dump(exclude={"name": True, "description": True, "workload": loads})


def _spread(
    points: list[_Point], share_done: Callable[[float], None], workers: int | None
) -> list[list[Row]]:
    count = min(workers or os.cpu_count() or 1, len(points))
    if count == 1:
        parts = []
        for done, point in enumerate(points):
            share_done(done / len(points))
            parts.append(_play(point))
        share_done(1.0)
        return parts
    with ProcessPoolExecutor(
        count,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),  # an interrupt is the parent's to handle
    ) as pool:
        futures = [pool.submit(_play, point) for point in points]
        try:
            for done, _ in enumerate(as_completed(futures), start=1):
                share_done(done / len(points))
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
