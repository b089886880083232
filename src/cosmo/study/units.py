"""Pieces of a study's work: each needs nothing of the others and gives the same result anywhere.

A unit is carried out in a folder of its own, which its content names; `done.json` is written last
(`checks`), so that a folder with it is finished and one without it can be begun again or gone on
with.
"""

import hashlib
import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars

from cosmo.control import Simulation, evaluate, simulate_runs
from cosmo.control.arguments import MethodLike
from cosmo.engine import engine_of
from cosmo.learn.run import Config
from cosmo.measure import METRICS, clairvoyant_bound
from cosmo.policy.controller import Controller, load_controller
from cosmo.scenario import Scenario, changed
from cosmo.study.checks import BOUNDS_FILE, CHECKPOINT, CURVES_FILE, METRICS_FILE, write_done
from cosmo.study.method_files import digests, trace_digests
from cosmo.tables import read_parquet, write_table
from cosmo.workload import episode, mean_rate, recorded_windows, trace_of

KEYS = ("scenario", "arrivals", "rate", "method", "seed", "episode")
BOUNDS: dict[str, Any] = {
    "scenario": polars.String,
    "arrivals": polars.String,
    "rate": polars.Float64,
    "seed": polars.Int64,
    "episode": polars.Int64,
    "clairvoyant_bound": polars.Float64,
}

Report = Callable[[float], None]  # called with the share of the unit that is done, 0 to 1


class Unit(ABC):
    """A piece of work, named by its content, which is written beside the results at the end."""

    if TYPE_CHECKING:  # a field of some units, worked out by others

        @property
        def rates(self) -> tuple[float, ...]:
            """The loads in it."""

    @cached_property
    def name(self) -> str:
        """For people, and for the folder; differs for different content."""
        content = json.dumps(self._content(), sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(self._words())).strip("-.")[:80]
        return f"{plain}-{digest[:10]}"

    def carry_out(self, folder: Path, report: Report) -> None:
        """Do the work; results are in the folder when this returns."""
        start = time.monotonic()
        self._do(folder, report)
        write_done(folder, {**self._content(), "seconds": round(time.monotonic() - start, 3)})

    @abstractmethod
    def _words(self) -> tuple[str, ...]:
        """The part of its name that people read."""

    @abstractmethod
    def _content(self) -> dict[str, Any]:
        """All that its results depend on, as plain data."""

    @abstractmethod
    def _do(self, folder: Path, report: Report) -> None:
        """Write the results, all but `done.json`."""


def at_load(scenario: Scenario, arrivals: str, rate: float) -> Scenario:
    """The scenario with one load. A trace brings its own; what nodes know of it stays (R36)."""
    if scenario.workload.trace:
        return scenario
    return changed(scenario, {"workload.arrivals": arrivals, "workload.rate": rate})


@dataclass(frozen=True)
class PlayUnit(Unit):
    """A method that needs no training, at all rates of an arrival process."""

    scenario: Scenario
    arrivals: str
    rates: tuple[float, ...]
    method: str
    seeds: tuple[int, ...]
    episodes: int
    first_episode: int = 0  # evaluation counts from 0, validation from elsewhere (R25)

    @property
    def alone(self) -> bool:
        """Whether it needs the machine for itself, as what is played in real time does."""
        return engine_of(self.scenario).play is not None

    def _words(self) -> tuple[str, ...]:
        return self.method, self.scenario.name, self.arrivals

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "play",
            "scenario": self.scenario.model_dump(mode="json"),
            "arrivals": self.arrivals,
            "rates": self.rates,
            "method": self.method,
            "files": [*digests(self.method), *trace_digests([self.scenario])],
            "seeds": self.seeds,
            "episodes": self.episodes,
            # Left out of evaluation: what was finished before there was this field still is.
            **({"first_episode": self.first_episode} if self.first_episode else {}),
        }

    def _do(self, folder: Path, report: Report) -> None:
        rows = self.played(lambda name: name, report)
        write_table(folder / METRICS_FILE, result_table(rows))

    def played(
        self, make: Callable[[str], MethodLike], report: Report = lambda share: None
    ) -> list[dict[str, Any]]:
        """Rows (`result_table`) of all runs; each rate has a method of its own."""
        rows = []
        for done, rate in enumerate(self.rates, 1):
            scenario = at_load(self.scenario, self.arrivals, rate)
            rows += played_rows(
                scenario,
                self.method,
                make(self.method),
                self.seeds,
                self.episodes,
                self.first_episode,
            )
            report(done / len(self.rates))
        return rows


@dataclass(frozen=True)
class BoundUnit(Unit):
    """The clairvoyant bound (R34) of every episode at all rates of an arrival process."""

    scenario: Scenario
    arrivals: str
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    episodes: int

    def _words(self) -> tuple[str, ...]:
        return "bound", self.scenario.name, self.arrivals

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "bound",
            "scenario": self.scenario.model_dump(mode="json"),
            "arrivals": self.arrivals,
            "rates": self.rates,
            "files": trace_digests([self.scenario]),
            "seeds": self.seeds,
            "episodes": self.episodes,
        }

    def _do(self, folder: Path, report: Report) -> None:
        rows = []
        loads = list(product(self.rates, self.seeds, range(self.episodes)))
        for rate, seed, number in loads:
            scenario = at_load(self.scenario, self.arrivals, rate)
            bound = clairvoyant_bound(scenario, episode(scenario, seed, number)).success_rate
            rows.append((scenario.name, self.arrivals, _rate(scenario), seed, number, bound))
            report(len(rows) / len(loads))
        table = polars.DataFrame(rows, schema=BOUNDS, orient="row")
        write_table(folder / BOUNDS_FILE, table.fill_nan(None))


@dataclass(frozen=True)
class TrainUnit(Unit):
    """A stack of training runs, and their evaluation.

    Runs are `trained_on` × seeds. Each is played where it was trained (`played_on`, on the engine
    of the comparison), or, with `everywhere`, on all of `played_on`.
    """

    label: str  # the method's name in the study
    method: str
    trained_on: tuple[Scenario, ...]
    played_on: tuple[Scenario, ...]
    everywhere: bool
    seeds: tuple[int, ...]
    episodes: int
    config: Config

    @property
    def rates(self) -> tuple[float, ...]:
        """The loads in it, each once."""
        return tuple(sorted({float(scenario.workload.rate) for scenario in self.played_on}))

    def _words(self) -> tuple[str, ...]:
        load = "all" if self.everywhere else f"{self.rates[0]:g}"
        return self.label, self.played_on[0].name, load

    def _content(self) -> dict[str, Any]:
        return {
            "kind": "train",
            "label": self.label,
            "method": self.method,
            "trained_on": [scenario.model_dump(mode="json") for scenario in self.trained_on],
            "played_on": [scenario.model_dump(mode="json") for scenario in self.played_on],
            "everywhere": self.everywhere,
            "seeds": self.seeds,
            "episodes": self.episodes,
            "files": trace_digests(self.played_on),
            # Fields that came later have defaults; at these, what was finished before still is.
            "training": self.config.model_dump(mode="json", exclude_defaults=True),
        }

    def _do(self, folder: Path, report: Report) -> None:
        """Train, going on where an interrupted attempt was, then evaluate every run."""
        from cosmo.learn import session
        from cosmo.learn.run import Run

        runs = [Run(scenario, seed) for scenario in self.trained_on for seed in self.seeds]
        session.train(
            folder / CHECKPOINT,
            self.method,
            runs,
            self.config,
            resume=True,
            on_episode=lambda episode, _: report(0.9 * episode / self.config.episodes),
        )
        rows = self._played(load_controller(folder / CHECKPOINT), report)
        path = folder / CHECKPOINT / CURVES_FILE
        curves = read_parquet(path, f"'{path}': is damaged")
        named = curves.select(
            polars.lit(self.trained_on[0].name).alias("scenario"),
            polars.lit(self.label).alias("method"),
            polars.all(),
        )
        write_table(folder / CURVES_FILE, named)
        write_table(folder / METRICS_FILE, result_table(rows))
        report(1.0)

    def _played(self, controller: Controller, report: Report) -> list[dict[str, Any]]:
        """A row for every run and episode of every point."""
        count = len(controller.runs)
        each = [scenario for scenario in self.played_on for _ in self.seeds]
        points = [(scenario,) * count for scenario in self.played_on] if self.everywhere else [each]
        rows = []
        for done, scenarios in enumerate(points):
            found = evaluate(controller, scenario=scenarios, episodes=self.episodes)
            for scenario, seed, result in zip(scenarios, controller.seeds, found, strict=True):
                rows += result_rows(scenario, self.label, seed, result)
            report(0.9 + 0.1 * (done + 1) / len(points))
        return rows


def played_rows(
    scenario: Scenario,
    name: str,
    chosen: MethodLike,
    seeds: Sequence[int],
    episodes: int,
    first_episode: int = 0,
) -> list[dict[str, Any]]:
    """Rows of all runs of a method at one load, played here."""
    found = simulate_runs(scenario, chosen, seeds, episodes, first_episode=first_episode)
    rows = []
    for seed, result in zip(seeds, found, strict=True):
        rows += result_rows(scenario, name, seed, result, first_episode)
    return rows


def result_rows(
    scenario: Scenario, name: str, seed: int, result: Simulation, first_episode: int = 0
) -> list[dict[str, Any]]:
    """A row for every episode of a run: where, who, and all metrics.

    Of a trace also `trace_windows`, its length in windows, on which intervals depend.
    """
    load, trace = scenario.workload, {}
    if load.trace:
        trace["trace_windows"] = recorded_windows(scenario, trace_of(scenario))
    return [
        {
            "scenario": scenario.name,
            "arrivals": load.arrivals,
            "rate": _rate(scenario),
            "method": name,
            "seed": seed,
            "episode": number,
            **metrics,
            **trace,
        }
        for number, metrics in enumerate(result.episodes, first_episode)
    ]


def _rate(scenario: Scenario) -> float:
    """Tasks/s in each cell, as they are planned or, of a trace, as they came."""
    if scenario.workload.trace:
        return mean_rate(trace_of(scenario), scenario.en.count)
    return float(scenario.workload.rate)


def result_table(rows: list[dict[str, Any]]) -> polars.DataFrame:
    """Rows of `result_rows` as a table; null where nothing was measured."""
    types = {"seed": polars.Int64, "episode": polars.Int64, "rate": polars.Float64}
    types |= dict.fromkeys(METRICS, polars.Float64)
    return polars.DataFrame(rows, schema_overrides=types, infer_schema_length=None).fill_nan(None)
