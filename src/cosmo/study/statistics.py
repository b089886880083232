"""From episodes to what is reported: intervals over runs, paired differences, gains, t90."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.control import METHODS
from cosmo.measure import METRICS, fluid_bound, interval, mean_bound
from cosmo.policy.learned_methods import LEARNED
from cosmo.scenario import Scenario, load
from cosmo.study.paper_results import reported
from cosmo.study.plan import Plan
from cosmo.study.units import at_load
from cosmo.workload import widening

POINT = ["scenario", "arrivals", "rate", "method"]
_RESAMPLES = 10_000
# Below so many pairs there is no interval: five that all have the same sign have it by chance in
# more than 5 % of cases (2 · 2⁻⁵).
FEWEST_PAIRS = 6


def summarise(metrics: polars.DataFrame) -> polars.DataFrame:
    """Columns: POINT, metric, mean, ci95, runs, std.

    As in the paper: a run's episodes are averaged; mean, standard deviation and two-sided 95 %
    Student-t half-width are over runs. Half-widths of traces are widened by what resampling costs
    (`cosmo.workload.widening`).
    """
    names = [name for name in METRICS if name in metrics.columns]
    runs = metrics.group_by([*POINT, "seed"], maintain_order=True).agg(
        polars.col(name).mean() for name in names
    )
    widened = widened_at(metrics)
    rows = []
    for key, group in runs.group_by(POINT, maintain_order=True):
        for name in names:
            values = [math.nan if value is None else value for value in group[name].to_list()]
            known = [value for value in values if not math.isnan(value)]
            mean, ci95 = interval(values, widened.get(key, 1.0))
            std = float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
            rows.append((*key, name, mean, ci95, std, len(known)))
    columns = [*POINT, "metric", "mean", "ci95", "std", "runs"]
    table = polars.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    numbers = [polars.col(name).cast(polars.Float64).fill_nan(None) for name in columns[5:8]]
    return table.with_columns(*numbers)


def widened_at(metrics: polars.DataFrame) -> dict[tuple[Any, ...], float]:
    """How much wider intervals are at those points (`POINT`) that are of a trace."""
    if "trace_windows" not in metrics.columns:
        return {}
    traces = metrics.filter(polars.col("trace_windows").is_not_null())
    return {
        key: widening(rows["trace_windows"][0], rows.select("seed", "episode").iter_rows())
        for key, rows in traces.group_by(POINT)
    }


def with_paper(summary: polars.DataFrame, plan: Plan) -> polars.DataFrame:
    """The same with the paper's numbers (`paper`, `paper_std`) beside those of its own world."""
    worlds = {scenario.name: scenario for scenario, *_ in plan.points()}
    own = [name for name, scenario in worlds.items() if is_papers_world(scenario)]
    paper = reported().select(
        "arrivals", "rate", "method", "metric", paper="value", paper_std="std"
    )
    where = polars.DataFrame({"scenario": own}, schema={"scenario": polars.String})
    paper = paper.join(where, how="cross")
    return summary.join(paper, on=[*POINT, "metric"], how="left", maintain_order="left")


def is_papers_world(scenario: Scenario) -> bool:
    """The same in all but its name, the loads to look at and the engine with its settings."""
    paper = load("paper")
    loads = {"rate", "arrivals", "rates_of_interest"}
    but: Any = {"name": True, "description": True, "engine": True, "live": True}
    but["workload"] = loads
    return scenario.model_dump(exclude=but) == paper.model_dump(exclude=but)


def bounds(plan: Plan, clairvoyant: polars.DataFrame | None = None) -> polars.DataFrame:
    """All bounds at every load: scenario, arrivals, rate, mean_bound, fluid_bound, and the mean of
    the clairvoyant bounds of its episodes (null where there are none).

    The first two know the demands of generated tasks; a trace has the last alone.
    """
    seen = {}
    for scenario, process, rate, _ in plan.points():
        key = scenario.name, process, rate
        if key not in seen and not scenario.workload.trace:
            here = at_load(scenario, process, rate)
            seen[key] = (mean_bound(here), fluid_bound(here))
    rows = [(*key, *values) for key, values in seen.items()]
    numbers = dict.fromkeys(("rate", "mean_bound", "fluid_bound"), polars.Float64)
    columns = {"scenario": polars.String, "arrivals": polars.String, **numbers}
    found = polars.DataFrame(rows, schema=columns, orient="row")
    if clairvoyant is None:
        return found.with_columns(clairvoyant_bound=polars.lit(None, polars.Float64))
    load = list(columns)[:3]
    means = clairvoyant.group_by(load).agg(polars.col("clairvoyant_bound").mean())
    return found.join(means, on=load, how="full", coalesce=True, maintain_order="left_right")


class Difference(NamedTuple):
    """A mean of paired differences and its 95 % bootstrap interval; NaN of few (`FEWEST_PAIRS`)."""

    mean: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not math.isnan(self.low)

    def text(self, digits: int = 3) -> str:
        """`+0.021 [+0.012, +0.030]`, or the mean alone."""
        form = f"+.{digits}f"
        bounds = f" [{self.low:{form}}, {self.high:{form}}]" if self.known else ""
        return f"{self.mean:{form}}{bounds}"

    def __str__(self) -> str:
        return self.text()


def paired(
    metrics: polars.DataFrame, one: str, other: str, metric: str = "success_rate"
) -> polars.DataFrame:
    """`one` minus `other` on equal workloads: scenario, arrivals, rate, difference, low, high.

    Pairs have the same seed and episode. The interval is a percentile bootstrap that draws runs,
    then episodes within them: episodes of a run share its trained policy. On traces it is widened
    as `summarise` says. `low` and `high` are null of fewer than `FEWEST_PAIRS` pairs.
    """
    table = paired_with(metrics, one, [other], metric)
    return table.drop("method")


def paired_with(
    metrics: polars.DataFrame, one: str, others: Sequence[str], metric: str = "success_rate"
) -> polars.DataFrame:
    """The same for several others, whose names are in the first column, `method`."""
    loads: dict[str, dict[tuple[str, str, float], list[_Pair]]] = {name: {} for name in others}
    leads = _leads(metrics, one, others, metric)
    for name, *key, seed, episode, lead, windows in leads.iter_rows():
        loads[name].setdefault(tuple(key), []).append((seed, episode, lead, windows))
    rows = [
        (name, *key, *_difference(pairs), len(pairs))
        for name, own in loads.items()
        for key, pairs in own.items()
    ]
    schema: dict[str, Any] = dict.fromkeys(("method", "scenario", "arrivals"), polars.String)
    schema |= dict.fromkeys(("rate", "difference", "low", "high"), polars.Float64)
    table = polars.DataFrame(rows, schema=schema | {"pairs": polars.Int64}, orient="row")
    return table.with_columns(polars.col("low", "high").fill_nan(None))


def paired_over_loads(
    metrics: polars.DataFrame, one: str, other: str, metric: str = "success_rate"
) -> Difference | None:
    """`one` minus `other`, first averaged over the loads that both were played at.

    None if they have no workload in common. Both must be of one scenario; only the episodes that
    exist at every common load are used.
    """
    pairs = _leads(metrics, one, [other], metric)
    loads = pairs.select("arrivals", "rate").n_unique() if len(pairs) else 0
    means = (
        pairs.group_by("seed", "episode", maintain_order=True)
        .agg(polars.col("lead", "trace_windows").mean(), polars.len())
        .filter(polars.col("len") == loads)
        .drop("len")
    )
    return _difference(means.rows()) if len(means) else None


def mean_over_loads(rows: polars.DataFrame, metric: str) -> float:
    """Of one method's rows: over the loads, each the mean of its episodes; NaN if there is none."""
    if metric not in rows.columns:
        return math.nan
    # In order: sums in another order round differently.
    loads = rows.group_by("arrivals", "rate", maintain_order=True)
    means = loads.agg(polars.col(metric).mean())[metric]
    value = means.drop_nulls().mean()
    return float(value) if isinstance(value, float) else math.nan


# Seed, episode, lead, and the length of the trace in windows if there is one.
_Pair = tuple[int, int, float, float | None]


def _leads(
    metrics: polars.DataFrame, one: str, others: Sequence[str], metric: str
) -> polars.DataFrame:
    """A row a `method` of the others and workload that it and one were played on, with the `lead`
    of one and `trace_windows`.
    """
    keys = ["scenario", "arrivals", "rate", "seed", "episode"]
    known = "trace_windows" in metrics.columns
    windows = polars.col("trace_windows") if known else polars.lit(None, polars.Float64)
    mine = metrics.filter(method=one).select(*keys, windows.alias("trace_windows"), a=metric)
    theirs = metrics.filter(polars.col("method").is_in(others)).select(*keys, "method", b=metric)
    both = mine.join(theirs, on=keys, maintain_order="left").drop_nulls(["a", "b"])
    lead = polars.col("a") - polars.col("b")
    return both.select("method", *keys, lead=lead, trace_windows="trace_windows")


def _difference(pairs: Sequence[_Pair]) -> Difference:
    """Of the pairs of one load, or of their means over loads."""
    runs: dict[int, list[float]] = {}
    for seed, _, lead, _ in pairs:
        runs.setdefault(seed, []).append(lead)
    mean, low, high = _difference_of(tuple(tuple(run) for run in runs.values()))
    if len(pairs) < FEWEST_PAIRS:
        return Difference(mean, math.nan, math.nan)
    windows = pairs[0][3]
    if windows is None:
        return Difference(mean, low, high)
    widened = widening(windows, [(seed, episode) for seed, episode, _, _ in pairs])
    return Difference(mean, mean + widened * (low - mean), mean + widened * (high - mean))


@lru_cache(maxsize=4096)
def _difference_of(leads: tuple[tuple[float, ...], ...]) -> Difference:
    """Of the leads in each run's episodes. Kept: a report shows the same in several tables."""
    values = np.concatenate([np.array(run) for run in leads])
    [means] = resampled_means(values[None], tuple(map(len, leads)))
    low, high = np.percentile(means, [2.5, 97.5])
    return Difference(float(values.mean()), float(low), float(high))


def resampled_means(values: NDArray[np.float64], sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """The bootstrap: means of runs drawn anew, and of episodes drawn anew within them.

    `values` is [row, episode], the episodes run after run, of which `sizes` says how many each has;
    the result is [row, draw]. Draws are the same for all rows, and the same every time.
    """
    means: NDArray[np.float64] = np.einsum("dk,rk->rd", _weights(sizes), values)
    return means


@lru_cache(maxsize=2)  # a study has the same runs and episodes nearly everywhere
def _weights(sizes: tuple[int, ...]) -> NDArray[np.float64]:
    """[draw, episode] how much each episode counts in each draw; rows sum to 1."""
    random = np.random.default_rng(0)  # of the bootstrap alone: the same data, the same interval
    runs = len(sizes)
    inner = [random.integers(0, size, (_RESAMPLES, runs, size)) for size in sizes]
    chosen = random.integers(0, runs, (_RESAMPLES, runs))
    found = []
    for run, size in enumerate(sizes):
        draws, places = np.nonzero(chosen == run)
        flat = draws[:, None] * size + inner[run][draws, places]
        counts = np.bincount(flat.ravel(), minlength=_RESAMPLES * size)
        found.append(counts.reshape(_RESAMPLES, size) / (runs * size))
    return np.hstack(found)


def rivals_of(table: polars.DataFrame, method: str) -> list[str]:
    """The other methods of a table that can be deployed and were not trained."""
    others = [name for name in table["method"].unique(maintain_order=True) if name != method]
    return [name for name in others if not _not_a_rival(name)]


def _not_a_rival(name: str) -> bool:
    family = name.partition("/")[0]  # a training's own name begins with its method's
    return family in LEARNED or (name in METHODS and METHODS[name].privileged)


def smoothed(rewards: Sequence[float], window: int = 5) -> list[float]:
    """Moving average over the last `window` episodes, as in the paper's reward figures."""
    values = np.asarray(rewards, dtype=float)
    sums = np.cumsum(np.concatenate([[0.0], values]))
    counts = np.minimum(np.arange(1, len(values) + 1), window)
    ends = np.arange(1, len(values) + 1)
    averages: list[float] = ((sums[ends] - sums[ends - counts]) / counts).tolist()
    return averages


def t90(rewards: Sequence[float]) -> int | None:
    """The paper's stabilisation time, in episodes; None if the reward never stays there.

    The first episode at which the smoothed reward reaches 90 % of the change from its initial value
    to its mean over the last ten episodes, and stays beyond that level for five episodes.
    """
    curve = np.array(smoothed(rewards))
    first, last = curve[0], curve[-10:].mean()
    level = first + 0.9 * (last - first)
    beyond = curve >= level if last >= first else curve <= level
    for episode in range(len(curve)):
        if beyond[episode : episode + 5].all() and episode + 5 <= len(curve):
            return episode + 1
    return None


def stabilisation(curves: polars.DataFrame) -> polars.DataFrame:
    """Median t90 over runs: scenario, method, arrivals, rate, t90, stable, runs."""
    rows = []
    keys = ["scenario", "method", "arrivals", "rate"]
    for key, group in curves.group_by(keys, maintain_order=True):
        times = [
            t90(run.sort("episode")["reward"].to_list())
            for _, run in group.group_by("seed", maintain_order=True)
        ]
        # A run that never stays there counts as one that takes for ever.
        median = float(np.median([math.inf if time is None else time for time in times]))
        stable = sum(time is not None for time in times)
        rows.append((*key, None if math.isinf(median) else median, stable, len(times)))
    schema: dict[str, Any] = dict.fromkeys(keys[:3], polars.String)
    schema |= {"rate": polars.Float64, "t90": polars.Float64}
    schema |= {"stable": polars.Int64, "runs": polars.Int64}
    return polars.DataFrame(rows, schema=schema, orient="row")
