"""Relative gains over the best opponent: at every load and on average, with intervals.

A gain is value / best − 1, both means over runs. Its interval is a percentile bootstrap that draws
runs, then episodes within them, the same for all methods (they have equal workloads), and finds the
best opponent anew in every draw: who is best is itself uncertain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars
from numpy.typing import NDArray

from cosmo.study.reported import Claims, reported_gains
from cosmo.study.statistics import rivals_of, widened_at
from cosmo.study.tables import markdown

_DRAWS = 2000
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
    run, episode = _resamples(*values.shape[1:])
    means: Draws = values[:, run[:, :, None], episode].mean(axis=(2, 3))
    if widened == 1.0:
        return means
    centre = values.mean(axis=(1, 2))[:, None]
    return np.asarray(centre + widened * (means - centre))


@lru_cache(maxsize=4)  # the same at every load of a study
def _resamples(runs: int, episodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs [draw, place], and episodes of each [draw, place, episode]."""
    random = np.random.default_rng(0)  # of the bootstrap alone: the same data, the same interval
    run = random.integers(0, runs, (_DRAWS, runs))
    return run, random.integers(0, episodes, (_DRAWS, runs, episodes))


def _shown(gain: float, draws: Draws) -> str:
    if not np.isfinite(draws).all() or not np.isfinite(gain):
        return "–"
    low, high = np.percentile(draws, [2.5, 97.5])
    return f"{100 * gain:+.1f} % [{100 * low:+.1f}, {100 * high:+.1f}]"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:+.1f} %"


def gains_table(metrics: polars.DataFrame, focus: str, metric: str, claims: Claims) -> str:
    """A row a load: over the best of the paper's competitors, beside its own, and of all.

    All are the deployable methods that were not trained. `claims` without anything in it leaves the
    paper's columns empty.
    """
    theirs = {
        (each.arrivals, each.rate): each
        for each in gains_at_loads(metrics, focus, metric, claims.competitors)
    }
    rows = []
    for each in gains_at_loads(metrics, focus, metric, rivals_of(metrics, focus)):
        their = theirs.get((each.arrivals, each.rate))
        claim = claims.point(focus, metric, each.arrivals, each.rate)
        row = [each.arrivals, f"{each.rate:g}", f"{each.value:.3f}"]
        if their is None:
            row += ["–", "–"]
        else:
            row += [f"{their.competitor} {their.best:.3f}", _shown(their.gain, their.draws)]
        row += [_percent(claim), f"{each.competitor} {each.best:.3f}"]
        rows.append([*row, _shown(each.gain, each.draws)])
    header = (
        "arrivals", "tasks/s", focus, "best of the paper's", "gain [95 %]", "paper's gain",
        "best deployable", "gain [95 %]",
    )  # fmt: skip
    return markdown(header, rows)


def net_utility_table(metrics: polars.DataFrame, focus: str, claims: Claims) -> str:
    """The same in the paper's objective (R32); it may be negative, so these are differences."""
    metric = "net_utility_per_task"
    some = [
        {
            (each.arrivals, each.rate): each
            for each in gains_at_loads(metrics, focus, metric, opponents)
        }
        for opponents in (claims.competitors, rivals_of(metrics, focus))
    ]
    rows = []
    for place, each in some[1].items():
        row = [place[0], f"{place[1]:g}", f"{each.value:.1f}"]
        for found in (some[0].get(place), each):
            row += ["–", "–"] if found is None else _differing(found)
        rows.append(row)
    header = (
        "arrivals", "tasks/s", focus, "best of the paper's", "difference [95 %]",
        "best deployable", "difference [95 %]",
    )  # fmt: skip
    return markdown(header, rows)


def _differing(found: Gain) -> list[str]:
    low, high = np.percentile(found.own - found.others, [2.5, 97.5])
    difference = f"{found.value - found.best:+.1f} [{low:+.1f}, {high:+.1f}]"
    return [f"{found.competitor} {found.best:.1f}", difference]


def average_gains_table(metrics: polars.DataFrame, focus: str, metric: str, claims: Claims) -> str:
    """A row for every arrival process and group of loads: mean and range, ours and the paper's.

    A group is shown where all its loads were played.
    """
    theirs = gains_at_loads(metrics, focus, metric, claims.competitors)
    everyone = gains_at_loads(metrics, focus, metric, rivals_of(metrics, focus))
    rows = []
    for process in metrics["arrivals"].unique(maintain_order=True):
        for name, rates in claims.loads.items():
            groups = [
                [each for each in some if each.arrivals == process and each.rate in rates]
                for some in (theirs, everyone)
            ]
            if any(len(group) < len(rates) for group in groups):
                continue
            (mean, spread), (mean_of_all, _) = (_over_loads(group) for group in groups)
            claim = claims.average(focus, metric, process, name)
            said = ("least", "most")
            claimed = " to ".join(_percent(claim[end]) for end in said) if "least" in claim else "–"
            rows.append(
                (process, name, mean, _percent(claim.get("mean")), spread, claimed, mean_of_all)
            )
    header = (
        "arrivals", "tasks/s", "mean gain [95 %]", "paper's", "from … to", "paper's",
        "mean gain over the best deployable [95 %]",
    )  # fmt: skip
    return markdown(header, rows)


def _over_loads(group: Sequence[Gain]) -> tuple[str, str]:
    """Mean gain with its interval, and the range; runs are drawn alike at all loads."""
    draws = np.mean([each.draws for each in group], axis=0)
    mean = float(np.mean([each.gain for each in group]))
    least, most = (find(each.gain for each in group) for find in (min, max))
    return _shown(mean, draws), f"{_percent(least)} to {_percent(most)}"
