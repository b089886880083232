"""`cosmo.compare`: methods on equal workloads, from Python, as one object to look at."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars

from cosmo.control.arguments import (
    MethodLike,
    ScenarioLike,
    as_method,
    as_scenario,
    as_settings,
    several,
    several_seeds,
    whole_number,
)
from cosmo.device import environment_of
from cosmo.documents import Settings
from cosmo.errors import InputError
from cosmo.files import temporary_folder
from cosmo.node import Method
from cosmo.policy.learned_methods import LEARNED
from cosmo.report import figures, tables
from cosmo.report.page import write_page
from cosmo.report.recorded import recordings
from cosmo.report.sweeps import OF_A_METHOD, sweep_figure, sweep_table, swept_scenarios
from cosmo.report.verdict import Verdict, verdict
from cosmo.scenario import Scenario, changed
from cosmo.study import store
from cosmo.study.conduct import conduct
from cosmo.study.plan import Plan
from cosmo.study.plan_checks import check_focus, check_plan, check_seeds, check_sweeps
from cosmo.study.plan_files import plan_from
from cosmo.study.pool import LocalExecutor, environment
from cosmo.study.statistics import bounds, paired_with, summarise, with_paper
from cosmo.study.store import Study
from cosmo.study.units import at_load, played_rows, result_table

_A_SWEEP = '{"sn.slots": [2, 4, 8]}'


@dataclass(frozen=True, repr=False)
class Comparison:
    """The results of `compare`: a data frame, paired differences, a figure, a page, a verdict."""

    study: Study
    _own: Mapping[str, Method] = field(default_factory=dict)

    def to_frame(self) -> polars.DataFrame:
        """A row for every method, load, run and episode (`.to_pandas()` for pandas).

        Columns: `scenario`, `arrivals`, `rate`, `method`, `seed`, `episode`, then every metric; of
        a sweep also `swept` (the scenario or method that was varied), `sweep` (the field) and
        `sweep_value` (its number), of a trace `trace_windows` (its length).
        """
        return self.study.metrics

    def summary(self) -> polars.DataFrame:
        """Means over runs, a row a load, method and metric: `mean`, `ci95`, `std`, `runs`."""
        return summarise(self.study.metrics)

    def paired(self, focus: str | None = None, metric: str = "success_rate") -> polars.DataFrame:
        """The focus minus each other method on equal workloads, a row a method and load.

        Columns: `method`, `scenario`, `arrivals`, `rate`, `difference`, `low`, `high`, `pairs`; low
        and high are a 95 % bootstrap interval that draws runs, then episodes.
        """
        one = self._about(focus).focus
        others = [name for name in self.methods if name != one]
        return paired_with(self.study.metrics, one, others, metric)

    def verdict(self, focus: str | None = None) -> Verdict:
        """Who wins, by how much and at what cost; `.sentence()` says it in words.

        InputError if a field of the scenario was swept: then there are several (`verdicts`).
        """
        found = self.verdicts(focus)
        if len(found) > 1:
            raise InputError(f"there is a verdict for each of {', '.join(found)}: see verdicts()")
        return next(iter(found.values()))

    def verdicts(self, focus: str | None = None) -> dict[str, Verdict]:
        """A verdict for each value of a field that was swept, by `field=value`; else one."""
        study = self._about(focus)
        told = {}
        for (name,), rows in study.metrics.group_by("scenario", maintain_order=True):
            found = verdict(rows, study.focus, study.is_yardstick)
            assert found is not None, "the focus is one of the methods"
            told[self._values().get(str(name), str(name))] = found
        return told

    def swept(self) -> polars.DataFrame:
        """Means over runs at each value of what was swept, a row a value, method and metric.

        Columns: `field`, `value` (text), `number`, `line` (the method), `metric`, `mean`, `ci95`,
        `std`, `runs` and some more (`cosmo.report.sweeps.sweep_table`). Empty without a sweep.
        """
        return sweep_table(self.study)

    def plot(self, metric: str = "success_rate", focus: str | None = None) -> Any:
        """The metric of every method as a matplotlib `Figure`: over the load, or over the sweep."""
        study = self._about(focus)
        table = with_paper(self.summary(), study.plan)
        if metric not in set(table["metric"]):
            raise InputError(f"metric = {metric!r}: must be one of {', '.join(self._metrics())}")
        if study.plan.compare[0].sweep is not None:
            return sweep_figure(study, study.plan.compare[0].sweep.field, metric)
        yardsticks = [name for name in self.methods if study.is_yardstick(name)]
        limits = bounds(study.plan)
        return figures.metric_over_load(
            table, limits, metric, focus=study.focus, yardsticks=yardsticks
        )

    def page(self, path: str | Path) -> Path:
        """Write one HTML file with everything, to be forwarded; the page's path."""
        summary = with_paper(self.summary(), self.study.plan)
        shown = recordings(self.study, trust=True, own=self._own)
        write_page(self.study, summary, bounds(self.study.plan), shown, Path(path))
        return Path(path)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order in which they were given."""
        return self.study.metrics["method"].unique(maintain_order=True).to_list()

    @property
    def focus(self) -> str:
        """The method that the verdict is about."""
        return self.study.focus

    def _about(self, focus: str | None) -> Study:
        return self.study if focus is None else self.study.about_method(focus)

    def _metrics(self) -> list[str]:
        return self.summary()["metric"].unique(maintain_order=True).to_list()

    def _values(self) -> dict[str, str]:
        """`field=value` of every scenario that is a value of a sweep."""
        table = self.swept()
        if not len(table):
            return {}
        rows = table.select("scenario", "field", "value").unique(maintain_order=True).iter_rows()
        fields = swept_scenarios(self.study)
        return {name: f"{field}={value}" for name, field, value in rows if name in fields}

    def __repr__(self) -> str:
        found = self.verdicts()
        several = len(found) > 1
        told = [f"{each}: " * several + one.sentence() for each, one in found.items()]
        return f"<Comparison of {len(self.methods)} methods: {' '.join(told)}>"

    def _repr_html_(self) -> str:
        found = self.verdicts()
        return "".join(
            (f"<h4>{html.escape(name)}</h4>" if len(found) > 1 else "") + self._standings(each)
            for name, each in found.items()
        )

    def _standings(self, found: Verdict) -> str:
        """A verdict and its table in HTML."""
        return (
            f"<p><b>{html.escape(found.sentence())}</b><br>{html.escape(found.where())}</p>"
            f"{tables.standings_table(found).html()}"
        )


def compare(
    scenario: ScenarioLike,
    methods: Sequence[MethodLike],
    *,
    rates: float | Iterable[float] | None = None,
    arrivals: str | Sequence[str] | None = None,
    seeds: int | Iterable[int] = (0, 1, 2),
    episodes: int = 5,
    focus: str | None = None,
    settings: Settings = (),
    training: Settings = (),
    trace: str | Path | None = None,
    sweep: Mapping[str, Sequence[bool | int | float | str]] | None = None,
    workers: int | None = None,
    device: str | None = None,
) -> Comparison:
    """Compare methods on equal workloads; names that learn (`"cosmo"`) are trained first.

    Args:
        scenario: A scenario, a preset's name or the path of a TOML file.
        methods: Names as on the command line (`"periodic:interval_ms=37"`, `"mine.py:Mine"`,
            `"cosmo-next:checkpoint=trained"`), methods or classes; an object has the name of its
            class.
        rates: Tasks/s in each cell, one or several; the scenario's by default.
        arrivals: One or several arrival processes; the scenario's by default.
        seeds: One or several, one run a seed.
        episodes: Evaluation episodes of each run.
        focus: The method that the verdict is about; the first by default.
        settings: Fields of the scenario, `{"sn.slots": 6}` or `["sn.slots=6"]`.
        training: Fields of the training of methods that learn, `{"episodes": 20}` or as a list.
        trace: A CSV or Parquet file of tasks to play instead (`cosmo.workload.windows`).
        sweep: One field of the scenario and its values, `{"sn.slots": [2, 4, 8]}`, or a parameter
            of methods that are named, `{"method.interval_ms": [10, 40]}`: all are compared at each.
        workers: Processes for trainings, all cores by default; everything else is played in this
            process.
        device: "cpu" or "gpu", where rules are played, with the same results; by default, what
            `COSMO_DEVICE` says. Training stays on the CPU.

    Returns:
        The comparison: its text is the verdict; tables, figures and the report are its methods.

    Raises:
        InputError: In one line, for what is not there or not allowed.

    """
    where, place = as_scenario(scenario, settings), environment_of(device)
    if trace is not None:
        where = changed(where, {"workload.trace": str(trace)})
    named = _named(methods)
    axis = None if sweep is None else _axis(sweep)
    of_methods = axis is not None and axis["field"].startswith(OF_A_METHOD)
    plan = plan_from(
        {
            "name": "compare",
            "description": f"{', '.join(named)} on {where.name}",
            "scenarios": [where.name],
            **_loads(where, arrivals, rates),
            "seeds": several_seeds(seeds),
            "episodes": whole_number("episodes", episodes),
            # Each value of a swept parameter is a method by another name.
            "focus": focus or (None if of_methods else next(iter(named))),
            "training": {"settings": as_settings(training)},
            "compare": [{"methods": list(named)} | ({"sweep": axis} if axis else {})],
        },
        {"scenarios": {where.name: where.model_dump(mode="json")}, "training": {}},
    )
    check_seeds(plan)
    check_sweeps(plan)
    if of_methods:
        named = _swept_names(plan, named)
    check_focus(plan)
    objects = {name: as_method(given) for name, given in named.items() if not _learns(name, given)}
    learners = [name for name in named if name not in objects]
    with environment(place):
        metrics, curves = _trained(plan, learners, workers) if learners else (None, None)
        parts = [_played(plan, name, named[name]) for name in objects]
    together = polars.concat([*parts, *([] if metrics is None else [metrics])], how="diagonal")
    order = {name: place for place, name in enumerate(plan.methods)}
    together = together.sort(
        polars.col("method").replace_strict(order, return_dtype=polars.Int64), maintain_order=True
    )
    together = together.drop("swept", "sweep", "sweep_value", strict=False)
    if axis is not None:
        together = store.with_axes(together, plan)
    study = Study(
        folder=Path(),
        plan=plan,
        about=store.made_here(),
        metrics=together,
        curves=polars.DataFrame(schema=store.NO_CURVES) if curves is None else curves,
        yardsticks=tuple(name for name, chosen in objects.items() if chosen.privileged),
    )
    return Comparison(study, objects)


def _loads(
    scenario: Scenario,
    arrivals: str | Sequence[str] | None,
    rates: float | Iterable[float] | None,
) -> dict[str, Any]:
    """Fields of a plan; none if the scenario has a trace, which has one load of its own."""
    if scenario.workload.trace:
        for name, given in (("arrivals", arrivals), ("rates", rates)):
            if given is not None:
                raise InputError(f"{name}: not with a trace, which settles when tasks come")
        return {}
    return {
        "arrivals": [arrivals]
        if isinstance(arrivals, str)
        else arrivals or [scenario.workload.arrivals],
        "rates": [scenario.workload.rate] if rates is None else several(rates),
    }


def _axis(sweep: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """A sweep as a plan has it."""
    if len(sweep) != 1:
        raise InputError(f"sweep = {dict(sweep)!r}: must have one field, as in " + _A_SWEEP)
    [(name, values)] = sweep.items()
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"sweep = {dict(sweep)!r}: must have a list of values, as in " + _A_SWEEP)
    return {"field": name, "values": list(values)}


def _swept_names(plan: Plan, named: Mapping[str, MethodLike]) -> dict[str, MethodLike]:
    """Methods with each value of a parameter that is swept, by their names in the results."""
    for name, given in named.items():
        if not isinstance(given, str):
            raise InputError(
                f"sweep: {name!r} is an object, whose parameters are set; name a method, or give"
                " several objects"
            )
    return {name: name for name in plan.methods}


def _learns(name: str, given: MethodLike) -> bool:
    return isinstance(given, str) and name in LEARNED


def _named(methods: Sequence[MethodLike]) -> dict[str, MethodLike]:
    """The methods by the names that they have in the results; InputError for two of one name."""
    if isinstance(methods, str) or not methods:
        raise InputError(f"methods = {methods!r}: must be a list with at least one method")
    found: dict[str, MethodLike] = {}
    for each in methods:
        kind = each if isinstance(each, type) else type(each)
        name = each if isinstance(each, str) else kind.__name__
        if name in found and isinstance(each, str):
            raise InputError(f"methods: {name!r} is there twice")
        number = 2
        while name in found:  # two objects of one class
            name, number = f"{kind.__name__} {number}", number + 1
        found[name] = each
    return found


def _played(plan: Plan, name: str, chosen: MethodLike) -> polars.DataFrame:
    """Every run of one method at every load, played here."""
    rows: list[dict[str, Any]] = []
    for scenario, process, rate, method in plan.points():
        if method == name:
            here = at_load(scenario, process, rate)
            rows += played_rows(here, name, chosen, plan.seeds, plan.episodes)
    return result_table(rows)


def _trained(
    plan: Plan, learners: list[str], workers: int | None
) -> tuple[polars.DataFrame, polars.DataFrame]:
    """Metrics and curves of methods that are trained first, by the study's own machinery."""
    part = plan.compare[0].model_copy(update={"methods": tuple(learners)})
    own = plan.model_copy(update={"compare": (part,), "focus": None})
    check_plan(own)
    with temporary_folder() as folder:
        progress = conduct(own, folder / "study", LocalExecutor(workers))
        if progress.failed:
            name, cause = next(iter(progress.failed.items()))
            raise InputError(f"{name}: {cause}")
        study = store.load_study(folder / "study")
    return study.metrics, study.curves
