"""Methods side by side on equal workloads, over rates and arrival processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

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


def compare(
    source: str,
    settings: Sequence[str],
    arrivals: Sequence[str],
    rates: Sequence[float],
    methods: Sequence[str],
    seed: int,
    episodes: int,
    share_done: Callable[[float], None] = lambda share: None,
) -> Comparison:
    """Play every method at every point; the same seed gives all of them the same workloads."""
    rows, bounds = [], []
    points = [(process, rate) for process in arrivals for rate in rates]
    for place, (process, rate) in enumerate(points):
        changes = [*settings, f"workload.arrivals={process}", f"workload.rate={rate}"]
        scenario = load(source, changes)
        bounds.append((process, rate, mean_bound(scenario), fluid_bound(scenario)))
        for number, name in enumerate(methods):
            share_done((place + number / len(methods)) / len(points))
            metrics = simulate(scenario, method(name), seed, episodes).metrics
            rows += [
                (process, rate, name, metric, value.mean, value.ci95)
                for metric, value in metrics.items()
            ]
    share_done(1.0)
    columns = ["arrivals", "rate", "method", "metric", "mean", "ci95"]
    table = polars.DataFrame(rows, schema=columns, orient="row").fill_nan(None)
    paper = reported().select("arrivals", "rate", "method", "metric", paper="value")
    keys = ["arrivals", "rate", "method", "metric"]
    return Comparison(
        scenario=load(source, settings),
        table=table.join(paper, on=keys, how="left", maintain_order="left"),
        bounds=polars.DataFrame(bounds, schema=["arrivals", "rate", "mean", "fluid"], orient="row"),
    )
