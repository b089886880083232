"""Relative gains over the best opponent: at every load and on average, with intervals.

A gain is value / best − 1, both means over runs. Its interval is a percentile bootstrap that draws
runs, then episodes within them, the same for all methods (they have equal workloads), and finds the
best opponent anew in every draw: who is best is itself uncertain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.measure import METRICS
from cosmo.report.table import Column, Table, difference, fixed, percent, short
from cosmo.study.paper_results import Claims, reported_gains
from cosmo.study.statistics import Difference, resampled_means, rivals_of, widened_at

Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Gain:
    """Of one method at one load, over the best of its opponents there."""

    arrivals: str
    rate: float
    value: float
    competitor: str
    best: float
    own: Draws  # the value in every draw of the bootstrap
    others: Draws  # the best opponent's, whoever that is in the draw

    @property
    def gain(self) -> float:
        """Relative; infinite over an opponent that has nothing."""
        return self.value / self.best - 1.0 if self.best else np.inf

    @property
    def difference(self) -> Difference:
        """Absolute, with its interval."""
        low, high = np.percentile(self.own - self.others, [2.5, 97.5])
        return Difference(self.value - self.best, float(low), float(high))

    @property
    def draws(self) -> Draws:
        """The gain in every draw."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.own / self.others - 1.0


def claims_beside(summary: polars.DataFrame) -> Claims:
    """The paper's competitors; what it says of its gains only beside its own world.

    `summary` is one scenario's, with the paper's numbers beside it (`with_paper`).
    """
    claims = reported_gains()
    own_world = summary["paper"].is_not_null().any()
    return claims if own_world else replace(claims, averages=(), points=())


def gains_at_loads(
    metrics: polars.DataFrame, focus: str, metric: str, opponents: Sequence[str]
) -> list[Gain]:
    """The focus against the best of `opponents` at every load where both were played.

    `metrics` has a row for every run and episode, of one scenario.
    """
    found = []
    points = widened_at(metrics).items()
    widened = {(process, rate): by for (_, process, rate, name), by in points if name == focus}
    names = [focus, *(name for name in opponents if name != focus)]
    for (process, rate), played in _played(metrics, metric).items():
        table = _values(played, names)
        if focus not in table or len(table) < 2:
            continue
        own, others = table.pop(focus), table
        means = {name: float(values.mean()) for name, values in others.items()}
        best = max(means, key=lambda name: means[name])
        values = np.stack([own, *others.values()])
        drawn = _drawn(values, widened.get((process, rate), 1.0))
        value = float(own.mean())
        found.append(Gain(process, rate, value, best, means[best], drawn[0], drawn[1:].max(axis=0)))
    return found


# Of one load: by method, then (seed, episode).
_Played = dict[str, dict[tuple[int, int], float | None]]


def _played(metrics: polars.DataFrame, metric: str) -> dict[tuple[str, float], _Played]:
    """By load (arrivals, rate), in order of the table; one pass, as tables may be large."""
    found: dict[tuple[str, float], _Played] = {}
    columns = ("arrivals", "rate", "method", "seed", "episode", metric)
    for process, rate, name, seed, episode, value in metrics.select(columns).iter_rows():
        found.setdefault((process, rate), {}).setdefault(name, {})[seed, episode] = value
    return found


def _values(played: _Played, names: Sequence[str]) -> dict[str, Draws]:
    """[run, episode] of every method that has a number for each run and episode of the first."""
    found: dict[str, Draws] = {}
    keys: list[tuple[int, int]] = []
    for name in names:
        own = sorted(played.get(name, {}))
        if not own or None in played[name].values() or own != (keys or own):
            continue
        keys = own
        runs = len({seed for seed, _ in own})
        found[name] = np.array([played[name][key] for key in own], float).reshape(runs, -1)
    return found


def _drawn(values: Draws, widened: float) -> Draws:
    """[method, draw]: means over runs and episodes drawn anew, so much farther from their mean.

    `values` is [method, run, episode].
    """
    methods, runs, episodes = values.shape
    means = resampled_means(values.reshape(methods, -1), (episodes,) * runs)
    centre = values.mean(axis=(1, 2))[:, None]
    return means if widened == 1.0 else np.asarray(centre + widened * (means - centre))


def gains_table(metrics: polars.DataFrame, focus: str, metric: str, claims: Claims) -> Table:
    """A row a load: over the best of the paper's competitors, beside its own, and of all.

    All are the deployable methods that were not trained. `claims` without anything in it leaves the
    paper's columns empty.
    """
    theirs, everyone = _both(metrics, focus, metric, claims)
    digits = METRICS[metric].digits
    rows = []
    for place, each in everyone.items():
        their = theirs.get(place)
        claim = claims.point(focus, metric, *place)
        beaten = (None, None) if their is None else (_named(their, digits), _relative(their))
        rows.append((*place, each.value, *beaten, claim, _named(each, digits), _relative(each)))
    columns = (
        *_LOAD, Column(focus, form=fixed(digits)), Column("best of the paper's"),
        Column("gain [95 %]", form=_percents), Column("paper's gain", form=percent),
        Column("best untrained"), Column("gain [95 %]", form=_percents),
    )  # fmt: skip
    return Table(f"Relative gain of {focus} in {METRICS[metric].title}", columns, tuple(rows))


def net_utility_table(metrics: polars.DataFrame, focus: str, claims: Claims) -> Table:
    """The same in the paper's objective (R32); it may be negative, so these are differences."""
    metric = "net_utility_per_task"
    theirs, everyone = _both(metrics, focus, metric, claims)
    digits = METRICS[metric].digits
    rows = []
    for place, each in everyone.items():
        found = (theirs.get(place), each)
        cells = [
            (None, None) if one is None else (_named(one, digits), one.difference) for one in found
        ]
        rows.append((*place, each.value, *cells[0], *cells[1]))
    columns = (
        *_LOAD, Column(focus, form=fixed(digits)), Column("best of the paper's"),
        Column("difference [95 %]", form=difference(digits)), Column("best untrained"),
        Column("difference [95 %]", form=difference(digits)),
    )  # fmt: skip
    return Table(f"Difference of {focus} in {METRICS[metric].title}", columns, tuple(rows))


def average_gains_table(
    metrics: polars.DataFrame, focus: str, metric: str, claims: Claims
) -> Table:
    """A row for every arrival process and group of loads: mean and range, ours and the paper's.

    A group is shown where all its loads were played.
    """
    both = _both(metrics, focus, metric, claims)
    rows = []
    for process, (name, rates) in product(
        metrics["arrivals"].unique(maintain_order=True), claims.loads.items()
    ):
        groups = [
            [some[process, rate] for rate in rates if (process, rate) in some] for some in both
        ]
        if any(len(group) < len(rates) for group in groups):
            continue
        claim = claims.average(focus, metric, process, name)
        claimed = (claim["least"], claim["most"]) if "least" in claim else None
        gains = [each.gain for each in groups[0]]
        mean, mean_of_all = map(_over_loads, groups)
        spread = (min(gains), max(gains))
        rows.append((process, name, mean, claim.get("mean"), spread, claimed, mean_of_all))
    columns = (
        Column("arrivals"), Column("tasks/s"), Column("mean gain [95 %]", form=_percents),
        Column("paper's", form=percent), Column("from … to", form=_range),
        Column("paper's", form=_range),
        Column("mean gain over the best untrained [95 %]", form=_percents),
    )  # fmt: skip
    title = f"Relative gain of {focus} in {METRICS[metric].title}, mean over groups of loads"
    return Table(title, columns, tuple(rows))


_LOAD = (Column("arrivals"), Column("tasks/s", form=short))


def _both(
    metrics: polars.DataFrame, focus: str, metric: str, claims: Claims
) -> list[dict[tuple[str, float], Gain]]:
    """Over the paper's competitors, and over all that can be deployed: gains by load."""
    return [
        {
            (each.arrivals, each.rate): each
            for each in gains_at_loads(metrics, focus, metric, opponents)
        }
        for opponents in (claims.competitors, rivals_of(metrics, focus))
    ]


def _named(gain: Gain, digits: int) -> str:
    return f"{gain.competitor} {gain.best:.{digits}f}"


def _relative(gain: Gain) -> Difference | None:
    return _interval(gain.gain, gain.draws)


def _over_loads(group: Sequence[Gain]) -> Difference | None:
    """Mean gain with its interval; runs are drawn alike at all loads."""
    draws = np.mean([each.draws for each in group], axis=0)
    return _interval(float(np.mean([each.gain for each in group])), draws)


def _interval(value: float, draws: Draws) -> Difference | None:
    if not np.isfinite(draws).all() or not np.isfinite(value):
        return None
    low, high = np.percentile(draws, [2.5, 97.5])
    return Difference(value, float(low), float(high))


def _percents(found: Difference) -> str:
    return f"{percent(found.mean)} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]"


def _range(ends: tuple[float, float]) -> str:
    return " to ".join(map(percent, ends))
