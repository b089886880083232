"""Engines compared: the same methods on the same workloads, on the first engine and on each other.

Whether the simulator can be trusted on ns-3 or on live nodes is such a comparison.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars

from cosmo.measure import MACHINE
from cosmo.report.table import Column, Form, Table, difference, fixed, short
from cosmo.study.statistics import Difference, paired
from cosmo.study.store import Study

_PLAYED = ["arrivals", "rate", "seed", "episode"]
_SHOWN = ("timer_late_ms_p99", "decision_ms_p99", "fallbacks")  # of `MACHINE`


@dataclass(frozen=True)
class EngineDifference:
    """One method at one load, on two engines, over the episodes that both have played."""

    engines: tuple[str, str]
    scenario: str  # by its name on the first engine
    arrivals: str
    rate: float
    method: str
    success: tuple[float, float]  # on each engine
    cost: tuple[float, float]  # of updates, in units per second
    difference: Difference  # in success, the other engine minus the first
    machine: dict[str, float]  # the worst of the other engine's episodes; empty if not in real time


def engine_differences(study: Study) -> list[EngineDifference]:
    """Every method and load that was played on several engines, in the plan's order."""
    worlds: dict[str, dict[str, str]] = {}  # {what is the same: {engine: name}}
    for scenario, *_ in study.plan.points():
        same = scenario.model_dump_json(exclude={"name", "engine"})
        worlds.setdefault(same, {})[scenario.engine] = scenario.name
    return [
        each
        for names in worlds.values()
        for engine in list(names)[1:]
        for each in _differences(study.metrics, names, (next(iter(names)), engine))
    ]


def _differences(
    metrics: polars.DataFrame, names: dict[str, str], engines: tuple[str, str]
) -> list[EngineDifference]:
    first, other = (names[engine] for engine in engines)
    found = []
    here = metrics.filter(polars.col("scenario").is_in([first, other]))
    for method in here["method"].unique(maintain_order=True):
        # What `paired` calls a method is an engine here.
        own = here.filter(method=method).filter(polars.len().over(_PLAYED) == 2)
        own = own.with_columns(method="scenario", scenario=polars.lit(first))
        for row in paired(own, other, first).iter_rows(named=True):
            at = own.filter(arrivals=row["arrivals"], rate=row["rate"])
            both = [at.filter(method=name) for name in (first, other)]
            found.append(
                EngineDifference(
                    engines,
                    first,
                    row["arrivals"],
                    row["rate"],
                    method,
                    _means(both, "success_rate"),
                    _means(both, "update_cost_rate"),
                    Difference(row["difference"], _known(row["low"]), _known(row["high"])),
                    {
                        metric: float(both[1][metric].max())  # type: ignore[arg-type]
                        for metric in _SHOWN
                        if metric in at.columns and not both[1][metric].has_nulls()
                    },
                )
            )
    return found


def _means(both: list[polars.DataFrame], metric: str) -> tuple[float, float]:
    here, there = (_known(rows[metric].mean()) for rows in both)
    return here, there


def _known(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def sentences(found: Sequence[EngineDifference]) -> list[str]:
    """The verdict on each pair of engines: how far apart they are, and whether that is chance."""
    return [
        _sentence([each for each in found if each.engines == engines])
        for engines in dict.fromkeys(each.engines for each in found)
    ]


def _sentence(found: Sequence[EngineDifference]) -> str:
    first, other = found[0].engines
    worst = max(found, key=lambda each: abs(each.difference.mean))
    mean = sum(each.difference.mean for each in found) / len(found)
    where = f"{worst.method}, {worst.arrivals}, {worst.rate:g} tasks/s"
    known = [each.difference for each in found if each.difference.known]
    apart = sum(each.low > 0.0 or each.high < 0.0 for each in known)
    sure = f"; {apart} of {len(known)} 95 % intervals do not contain 0" if known else ""
    return (
        f"Success on {other} minus {first}: {mean:+.3f} on average of {len(found)}"
        f" comparison{'s' * (len(found) > 1)}, at most {worst.difference} ({where}){sure}."
    )


def engine_table(found: Sequence[EngineDifference]) -> Table:
    """Success and update cost on both engines, and how well the machine did, a row a load."""
    machine = [name for name in _SHOWN if any(name in each.machine for each in found)]
    columns = (
        Column("scenario"), Column("arrivals"), Column("tasks/s", form=short),
        Column("method", is_code=True), Column("engines", form=_both(str)),
        Column("success", form=_both(fixed(3))), Column("difference", form=difference(3)),
        Column("update cost", "units/s", _both(fixed(1))),
        *(Column(MACHINE[name].label, form=fixed(MACHINE[name].digits)) for name in machine),
    )  # fmt: skip
    rows = [
        (
            *(each.scenario, each.arrivals, each.rate, each.method, each.engines),
            *(each.success, each.difference, each.cost),
            *(each.machine.get(name) for name in machine),
        )
        for each in found
    ]
    return Table("The same workloads on several engines", columns, tuple(rows))


def _both(form: Form) -> Form:
    """A pair, the first engine's and the other's: `0.912 → 0.905`."""
    return lambda pair: " → ".join(form(value) for value in pair)
