"""Tuning as a unit of a study: parameters chosen on validation episodes, played on evaluation's.

The unit writes two tables. `trials.parquet` has a row for every setting that was tried, with means
over validation episodes. `tuned.parquet` has a row for every evaluation episode of the chosen
setting and of the method's trade-off curve: settings of which no other was both cheaper and better
on the validation episodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars

from cosmo.control import METHODS, registry
from cosmo.scenario import Scenario, changed, without_trace
from cosmo.study.checks import TRIALS_FILE, TUNED_FILE
from cosmo.study.focus import base_name, is_known_yardstick
from cosmo.study.method_files import digests, runs_code, trace_digests
from cosmo.study.plan import Plan, Tune
from cosmo.study.search import Search, ranges_of
from cosmo.study.tuning import SHOWN, tuned
from cosmo.study.units import KEYS, Report, Unit, at_load, played_rows, result_table
from cosmo.tables import write_table

_SEARCHED = 0.7  # of a unit's work


@dataclass(frozen=True)
class TuneUnit(Unit):
    """A method that is tuned for a scenario, over all its loads, and played there."""

    scenario: Scenario
    loads: tuple[tuple[str, float], ...]  # arrivals, rate
    method: str
    seeds: tuple[int, ...]
    episodes: int
    tune: Tune

    @property
    def rates(self) -> tuple[float, ...]:
        """The loads in it."""
        return tuple(rate for _, rate in self.loads)

    @property
    def over(self) -> Mapping[str, str] | None:
        """The ranges that the plan gives; None if it gives none."""
        return self.tune.over.get(self.method)

    def _words(self) -> tuple[str, ...]:
        return self.method, self.scenario.name, "tuned"

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "tune",
            "scenario": self.scenario.model_dump(mode="json"),
            "loads": self.loads,
            "method": self.method,
            "files": [*digests(self.method), *trace_digests([self.scenario])],
            "seeds": self.seeds,
            "episodes": self.episodes,
            "tune": self.tune.model_dump(mode="json", exclude={"over"}),
            "over": None if self.over is None else dict(self.over),
        }

    def search(self) -> Search:
        """What is searched; runs the code of a method from a file.

        Raises InputError in one line if a range is not allowed.
        """
        kind, fixed = registry.kind_of(self.method)
        over = ranges_of(kind, fixed) if self.over is None else self.over
        world, rates = without_trace(self.scenario), sorted(set(self.rates))
        if self.scenario.workload.trace:  # a trace is for evaluation alone
            world = changed(world, {"workload.rate": rates[0]})
        processes = dict.fromkeys(
            "poisson" if self.scenario.workload.trace else process for process, _ in self.loads
        )
        return Search(
            scenario=world,
            method=self.method,
            over=dict(over),
            arrivals=tuple(processes),
            rates=tuple(rates),
            seeds=self.tune.seeds,
            episodes=self.tune.episodes,
            metric=self.tune.metric,
            seed=0,
            trials=self.tune.settings,
        )

    def _do(self, folder: Path, report: Report) -> None:
        """Search, then play the chosen setting and the trade-off curve."""
        kind, fixed = registry.kind_of(self.method)
        chosen, curve, trials = self.method, [], polars.DataFrame()
        if self.over is not None or ranges_of(kind, fixed):
            found = tuned(self.search(), progress=lambda share: report(_SEARCHED * share))
            chosen, trials = found.method, found.to_frame()
            curve = frontier(trials, self.tune.metric, self.tune.curve)
        rows = []
        settings = list(dict.fromkeys([chosen, *curve]))
        for done, setting in enumerate(settings, 1):
            for process, rate in self.loads:
                here = at_load(self.scenario, process, rate)
                rows += [
                    {**row, "setting": setting, "chosen": setting == chosen}
                    for row in played_rows(
                        here, self.method, registry.method(setting), self.seeds, self.episodes
                    )
                ]
            report(_SEARCHED + (1.0 - _SEARCHED) * done / len(settings))
        shown = dict.fromkeys((*KEYS, "setting", "chosen", self.tune.metric, *SHOWN))
        write_table(folder / TUNED_FILE, result_table(rows).select(*shown))
        # Parameters are part of a setting's name; as columns they would differ between methods.
        kept = [name for name in ("failed", self.tune.metric, *SHOWN) if name in trials.columns]
        own = [polars.lit(self.scenario.name).alias("scenario")]
        own += [polars.lit(self.method).alias("method")]
        tried = trials.select(*own, setting="method", **{name: name for name in kept})
        if len(tried):
            tried = tried.with_columns(polars.col("failed").cast(polars.String))
            write_table(folder / TRIALS_FILE, tried)


def frontier(trials: polars.DataFrame, metric: str, most: int) -> list[str]:
    """The settings that form a trade-off curve, cheapest first: `most` of those of which no other
    one is as cheap and as good, the cheapest and the best among them.
    """
    known = trials.drop_nulls([metric, "update_cost_rate"]).unique("method", maintain_order=True)
    ranked = known.sort(["update_cost_rate", metric], descending=[False, True], maintain_order=True)
    best, found = float("-inf"), []
    for name, value in ranked.select("method", metric).iter_rows():
        if value > best:
            best = value
            found.append(name)
    count = min(most, len(found))
    places = {round(place * (len(found) - 1) / max(count - 1, 1)) for place in range(count)}
    return [found[place] for place in sorted(places)]


def tune_units(plan: Plan) -> list[TuneUnit]:
    """A unit for every scenario and method that is tuned; none of a plan without `tune`.

    Trained methods, yardsticks, methods that are part of a sweep, and methods of the registry
    without a parameter that can be tuned are left out.
    """
    if plan.tune is None:
        return []
    swept = {(scenario, name) for scenario, name, *_ in plan.axes()}
    loads: dict[tuple[str, str], list[tuple[str, float]]] = {}
    scenarios: dict[str, Scenario] = {}
    for scenario, process, rate, name in plan.points():
        if (scenario.name, name) not in swept and _is_tuned(plan, plan.tune, name):
            scenarios[scenario.name] = scenario
            loads.setdefault((scenario.name, name), []).append((process, rate))
    return [
        TuneUnit(scenarios[where], tuple(own), name, plan.seeds, plan.episodes, plan.tune)
        for (where, name), own in loads.items()
    ]


def check_searches(plan: Plan, runs: bool) -> None:
    """Refuse ranges and metrics that a search would refuse; InputError in one line.

    Methods from files are looked at only if their code may run.
    """
    seen = set()
    for unit in tune_units(plan):
        if unit.method not in seen and (runs or not runs_code(unit.method)):
            seen.add(unit.method)
            kind, fixed = registry.kind_of(unit.method)
            if unit.over is not None or ranges_of(kind, fixed):
                unit.search()


def _is_tuned(plan: Plan, tune: Tune, name: str) -> bool:
    if name in plan.trainings() or is_known_yardstick(name):
        return False
    if name in tune.over:
        return bool(tune.over[name])
    if base_name(name) not in METHODS:
        return True  # of a file, which is not run to ask
    return bool(ranges_of(*registry.kind_of(name)))
