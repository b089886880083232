"""The leaderboard of a study with tracks: each method at its own cost and at the focus's cost.

Values of a method on a track are arrays [training, workload]. A workload is one evaluation episode,
the same for all methods; trainings are a method and its `repeats`. Intervals and tests have both
spreads in them: the variance of a mean is that over workloads plus that over trainings, if there is
more than one. A method that the plan itself trains has one training for each seed, so that its
workloads differ in both.

*At equal cost*: the curve of a tuned method has the settings that no other one beat in both cost
and success on validation episodes, played on evaluation workloads. Between two neighbours of the
curve, a site could switch from one to the other for a share of the time: success at the focus's
mean update cost is interpolated between them, workload by workload. A method that is cheaper
everywhere counts with the dearest setting of its curve. One that is dearer everywhere counts with
the cheapest, which is in its favour, and is marked as dearer. The curve of a method that is not
tuned is the method as it is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from cosmo.errors import InputError
from cosmo.study.plan import Track
from cosmo.study.statistics import Difference
from cosmo.study.store import Study
from cosmo.study.tuning import SHOWN

YARDSTICK = "shared-knowledge"  # whose success regret is measured against (R40)
_RESAMPLES, _SEED = 2000, 20_260
_LEVEL = 0.05  # of all verdicts of a leaderboard together
AHEAD, BEHIND, UNCLEAR = "ahead", "behind", "not told apart"  # verdicts about the focus
_SAME_COST = 1e-9  # relative
Values = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean, its 95 % half-width (NaN if unknown), and how many workloads it is of."""

    mean: float
    ci95: float
    workloads: int


class Rank(NamedTuple):
    """A rank (1 is best) and its 95 % interval over workloads and trainings."""

    rank: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.rank:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True)
class Entry:
    """A method on a track."""

    method: str
    setting: str  # the tuned one; empty if the method is not tuned
    yardstick: bool
    default: dict[str, Values]  # [training, workload] of each of `SHOWN`
    tuned: dict[str, Values]  # the same as default if it is not tuned
    equal: Values  # success at the focus's cost, [training, workload]
    dearer: bool  # whether that is of a setting that costs more

    @property
    def trainings(self) -> int:
        """How many trainings there are; 1 of a rule."""
        return len(self.default["success_rate"])


@dataclass(frozen=True)
class Line:
    """An entry and what is said about it."""

    entry: Entry
    regret: Estimate | None  # success of the yardstick minus the tuned method's
    lead: Difference | None  # the focus minus it, success at equal cost; None of the focus
    verdict: str  # of the focus against it, corrected for all comparisons; empty of the focus
    own_rank: Rank | None  # by tuned success at its own cost; None of yardsticks
    equal_rank: Rank | None  # by success at equal cost


@dataclass(frozen=True)
class Board:
    """All tracks, and the ranks over all of them."""

    focus: str
    tracks: dict[str, list[Line]]
    costs: dict[str, float]  # the focus's mean update cost on each track
    own_ranks: dict[str, Rank]  # means over the tracks, by method
    equal_ranks: dict[str, Rank]

    def lines(self, method: str) -> list[Line]:
        """Of one method, track by track."""
        return [line for own in self.tracks.values() for line in own if line.entry.method == method]


def estimated(values: Values) -> Estimate:
    """The mean over trainings and workloads with Student's 95 % half-width."""
    error, freedom = _error(values.mean(axis=0), values)
    wide = float(stdtrit(freedom, 0.975)) * error if freedom else math.nan
    return Estimate(float(values.mean()), wide, values.shape[1])


def _error(by_workload: Values, *trained: Values) -> tuple[float, int]:
    """Standard error of a mean over workloads, with the spread of trainings; degrees of freedom."""
    spreads = [by_workload, *(each.mean(axis=1) for each in trained if len(each) > 1)]
    if len(by_workload) < 2:
        return math.nan, 0
    variance = sum(float(each.var(ddof=1)) / len(each) for each in spreads)
    return math.sqrt(variance), min(map(len, spreads)) - 1


def compared(one: Values, other: Values) -> tuple[Difference, float]:
    """`one` minus `other` on equal workloads, and the p-value of a paired two-sided t-test."""
    leads = one.mean(axis=0) - other.mean(axis=0)
    mean = float(leads.mean())
    error, freedom = _error(leads, one, other)
    if not freedom:
        return Difference(mean, math.nan, math.nan), 1.0
    wide = float(stdtrit(freedom, 0.975)) * error
    if error == 0.0:
        return Difference(mean, mean, mean), 1.0 if mean == 0.0 else 0.0
    return Difference(mean, mean - wide, mean + wide), 2.0 * float(
        stdtr(freedom, -abs(mean) / error)
    )


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for how many there are (Holm's step-down method)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    found, least = [1.0] * len(values), 0.0
    for done, place in enumerate(order):
        least = max(least, min(1.0, (len(values) - done) * values[place]))
        found[place] = least
    return found


def at_cost(curve: Sequence[tuple[float, Values]], cost: float) -> tuple[Values, bool]:
    """Success [workload] at an update cost along a curve of (mean cost, success [workload]).

    If every setting is dearer, that of the cheapest one; the second value says so.
    """
    points = sorted(curve, key=lambda point: point[0])
    below = [point for point in points if point[0] <= cost * (1.0 + _SAME_COST)]
    if not below:
        return points[0][1], True
    low, first = below[-1]
    if len(below) == len(points):
        return first, False
    high, second = points[len(below)]
    share = (cost - low) / (high - low)
    return (1.0 - share) * first + share * second, False


def resampled_ranks(values: Iterable[Values | None], seed: int) -> tuple[Values, Values]:
    """Ranks of methods by their means: as measured [method], and resampled [draw, method].

    Workloads are drawn anew for all methods together, trainings for each by itself. Methods
    without values share the last ranks.
    """
    random = np.random.default_rng([_SEED, seed])
    weights: Values | None = None
    measured, drawn = [], []
    for own in values:
        if own is None:
            measured.append(-math.inf)
            drawn.append(np.full(_RESAMPLES, -math.inf))
            continue
        trainings, workloads = own.shape
        if weights is None:
            counts = random.multinomial(workloads, [1.0 / workloads] * workloads, _RESAMPLES)
            weights = counts / workloads
        of_trainings = random.multinomial(trainings, [1.0 / trainings] * trainings, _RESAMPLES)
        means = np.einsum("dt,tw,dw->d", of_trainings / trainings, own, weights)
        measured.append(float(own.mean()))
        drawn.append(np.round(means, 12))  # sums in another order must not break a tie
    return _ranks(np.round([measured], 12))[0], _ranks(np.stack(drawn, axis=1))


def _ranks(means: Values) -> Values:
    """[draw, method]; 1 is the greatest, equal ones share the mean of their ranks."""
    greater = (means[:, None, :] > means[:, :, None]).sum(axis=2)
    equal = (means[:, None, :] == means[:, :, None]).sum(axis=2)
    ranks: Values = greater + (equal + 1) / 2.0
    return ranks


def _rank(measured: float, drawn: Values) -> Rank:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Rank(float(measured), float(low), float(high))


def board_of(study: Study) -> Board:
    """The leaderboard of a study; InputError if it has no tracks, or the focus is not there."""
    if not study.plan.tracks:
        raise InputError(
            f"plan = {study.plan.name!r}: has no tracks, so that it has no leaderboard"
        )
    places, costs = {}, {}
    for track in study.plan.tracks:
        own = _entries(study, track)
        focus = [entry for entry in own if entry.method == study.focus]
        if not focus:
            raise InputError(f"focus = {study.focus!r}: has no results on track {track.name!r}")
        places[track.name] = own
        costs[track.name] = float(focus[0].default["update_cost_rate"].mean())
    tests = [
        (name, entry.method, *compared(_focus(own, study.focus), entry.equal))
        for name, own in places.items()
        for entry in own
        if not entry.yardstick and entry.method != study.focus
    ]
    corrected = holm([p for *_, p in tests])
    told = {(t, m): (lead, p) for (t, m, lead, _), p in zip(tests, corrected, strict=True)}
    names = list(dict.fromkeys(e.method for own in places.values() for e in own if not e.yardstick))
    ranks = {
        track: [_track_ranks(own, names, place, at_equal) for at_equal in (False, True)]
        for place, (track, own) in enumerate(places.items())
    }
    tracks = {
        track: [
            _line(entry, own, told.get((track, entry.method)), names, ranks[track]) for entry in own
        ]
        for track, own in places.items()
    }
    overall = [_over_tracks(names, [each[which] for each in ranks.values()]) for which in (0, 1)]
    return Board(study.focus, tracks, costs, *overall)


_TrackRanks = tuple[Values, Values]


def _track_ranks(own: list[Entry], names: list[str], seed: int, at_equal: bool) -> _TrackRanks:
    by_name = {entry.method: entry for entry in own}
    values = []
    for name in names:
        entry = by_name.get(name)
        values.append(
            None if entry is None else entry.equal if at_equal else entry.tuned["success_rate"]
        )
    return resampled_ranks(values, seed)


def _over_tracks(names: list[str], ranks: list[_TrackRanks]) -> dict[str, Rank]:
    measured = np.mean([each for each, _ in ranks], axis=0)
    drawn = np.mean([each for _, each in ranks], axis=0)
    return {name: _rank(measured[place], drawn[:, place]) for place, name in enumerate(names)}


def _focus(own: list[Entry], focus: str) -> Values:
    [entry] = [entry for entry in own if entry.method == focus]
    return entry.default["success_rate"]


def _line(
    entry: Entry,
    own: list[Entry],
    test: tuple[Difference, float] | None,
    names: list[str],
    ranks: list[_TrackRanks],
) -> Line:
    ideal = [each for each in own if each.method == YARDSTICK]
    regret = None
    if ideal and not entry.yardstick:
        success = ideal[0].tuned["success_rate"].mean(axis=0) - entry.tuned["success_rate"]
        regret = estimated(success)
    verdict = ""
    if test is not None:
        lead, p = test
        verdict = UNCLEAR if p >= _LEVEL else AHEAD if lead.mean > 0.0 else BEHIND
    own_rank = equal_rank = None
    if entry.method in names:
        place = names.index(entry.method)
        own_rank, equal_rank = (_rank(each[place], drawn[:, place]) for each, drawn in ranks)
    return Line(entry, regret, test[0] if test else None, verdict, own_rank, equal_rank)


def _entries(study: Study, track: Track) -> list[Entry]:
    """Every method that was played on all workloads of a track, repeated trainings as one."""
    scenario = study.plan.scenario(track.scenario).name
    metrics, tuned = (each.filter(scenario=scenario) for each in (study.metrics, study.tuned))
    repeated = {name for names in study.plan.repeats.values() for name in names}
    count = len(study.plan.seeds) * study.plan.episodes
    groups = {
        name: [name, *study.plan.repeats.get(name, ())]
        for name in metrics["method"].unique(maintain_order=True)
        if name not in repeated
    }
    parts = {
        name: [
            own
            for own in (_played(metrics, tuned, each) for each in names)
            if len(own.default) == count
        ]
        for name, names in groups.items()
    }
    focus = parts.get(study.focus, [])
    cost = float(np.mean([own.default[:, _COST] for own in focus])) if focus else math.nan
    found = []
    for name, own in parts.items():
        if not own:
            continue
        equal = [each.success_at(cost) for each in own]
        if name == study.focus:
            equal = [(each.default[:, _SUCCESS], False) for each in own]
        found.append(
            Entry(
                method=name,
                setting=own[0].setting,
                yardstick=study.is_yardstick(name),
                default=_stacked([each.default for each in own]),
                tuned=_stacked([each.tuned for each in own]),
                equal=np.stack([success for success, _ in equal]),
                dearer=any(dearer for _, dearer in equal),
            )
        )
    return found


_SUCCESS, _COST = SHOWN.index("success_rate"), SHOWN.index("update_cost_rate")


class _Played(NamedTuple):
    """One training of a method on a track; arrays are [workload, `SHOWN`]."""

    default: Values
    tuned: Values
    setting: str
    curve: list[Values]

    def success_at(self, cost: float) -> tuple[Values, bool]:
        return at_cost([(float(p[:, _COST].mean()), p[:, _SUCCESS]) for p in self.curve], cost)


def _played(metrics: polars.DataFrame, tuned: polars.DataFrame, name: str) -> _Played:
    default, own = _array(metrics.filter(method=name)), tuned.filter(method=name)
    settings = own.select("setting", "chosen").unique(maintain_order=True).rows()
    arrays = {setting: _array(own.filter(setting=setting)) for setting, _ in settings}
    chosen = next((setting for setting, is_chosen in settings if is_chosen), "")
    return _Played(default, arrays.get(chosen, default), chosen, [*arrays.values()] or [default])


def _array(rows: polars.DataFrame) -> Values:
    return rows.sort("seed", "episode").select(SHOWN).to_numpy().astype(np.float64)


def _stacked(parts: list[Values]) -> dict[str, Values]:
    whole = np.stack(parts)
    return {metric: whole[:, :, place] for place, metric in enumerate(SHOWN)}
