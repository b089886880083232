"""Whether tables of a study can be what a study writes: columns, kinds, ranges, points of the plan.

A digest says that a table is as it was written, not who wrote it; older studies have none.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars

from cosmo.errors import InputError
from cosmo.measure import MACHINE, METRICS
from cosmo.study.plan import Plan

_PLACE = ("scenario", "arrivals", "rate", "method")
_MOST = 1e100  # squares of numbers are finite
_ROUNDING = 1e-9


def check_table(
    path: Path, table: polars.DataFrame, kinds: Mapping[str, Any], needed: Iterable[str]
) -> None:
    """Raise InputError in one line for the first column that cannot be a study's.

    `kinds` are Polars types by column; other columns than `needed` may be absent, or all null.
    """
    for name in needed:
        if name not in table.columns:
            raise InputError(f"'{path}': column {name} is missing; the file is damaged")
    if not len(table):
        raise InputError(f"'{path}': has no rows; the file is damaged")
    metrics = METRICS | MACHINE
    for column in table:
        kind = kinds.get(column.name, polars.Float64 if column.name in metrics else None)
        if kind is None or (column.dtype == polars.Null and column.name not in needed):
            continue
        if column.dtype != kind and not (kind.is_numeric() and column.dtype.is_numeric()):
            raise InputError(
                f"'{path}': column {column.name} has the type {column.dtype}, must be {kind}"
            )
        if kind.is_numeric():
            _check_numbers(path, column, column.name in METRICS and METRICS[column.name].is_share)


def _check_numbers(path: Path, column: polars.Series, is_share: bool) -> None:
    low, high = (-_ROUNDING, 1.0 + _ROUNDING) if is_share else (-_MOST, _MOST)
    numbers = column.cast(polars.Float64).drop_nulls().drop_nans()
    wrong = numbers.filter(~numbers.is_between(low, high))
    if len(wrong):
        allowed = "from 0 to 1" if is_share else "a finite number"
        raise InputError(f"'{path}': {column.name} = {wrong[0]:g}: must be {allowed}")


def check_points(path: Path, table: polars.DataFrame, plan: Plan) -> None:
    """Raise InputError for a row that is of no point of the plan."""
    points = [(scenario.name, *rest) for scenario, *rest in plan.points()]
    known = polars.DataFrame(points, schema=dict(zip(_PLACE, _KINDS, strict=True)), orient="row")
    strangers = table.with_columns(polars.col("rate").cast(polars.Float64)).join(
        known, on=_PLACE, how="anti", nulls_equal=True
    )
    if len(strangers):
        names = ", ".join(f"{name} = {strangers[name][0]!r}" for name in _PLACE)
        raise InputError(f"'{path}': {names} is not in the plan; the file is damaged")


_KINDS = (polars.String, polars.String, polars.Float64, polars.String)
