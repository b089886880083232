"""The results that the paper reports, and what it states of its gains."""

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import polars


def reported() -> polars.DataFrame:
    """The paper's numbers.

    Returns:
        A row for each: arrivals, rate (tasks/s), method, metric, value, std (may be null), source.

    """
    path = resources.files("cosmo.study").joinpath("reported.csv")
    with resources.as_file(path) as file:
        return polars.read_csv(file, schema_overrides={"rate": polars.Float64})


@dataclass(frozen=True)
class Claims:
    """What a paper says of its method's relative gains over the best of its competitors."""

    competitors: tuple[str, ...] = ()
    loads: dict[str, tuple[float, ...]] = field(default_factory=dict)  # groups of rates, by name
    averages: tuple[dict[str, Any], ...] = ()  # method, metric, arrivals, loads; mean, least, most
    points: tuple[dict[str, Any], ...] = ()  # method, metric, arrivals, rate, gain

    def average(self, method: str, metric: str, arrivals: str, loads: str) -> dict[str, Any]:
        """What is said of a group of loads: any of mean, least, most; empty if nothing is."""
        where = {"method": method, "metric": metric, "arrivals": arrivals, "loads": loads}
        return next((each for each in self.averages if where.items() <= each.items()), {})

    def point(self, method: str, metric: str, arrivals: str, rate: float) -> float | None:
        """The gain at one load, if the text gives it."""
        where = {"method": method, "metric": metric, "arrivals": arrivals, "rate": rate}
        found = (each["gain"] for each in self.points if where.items() <= each.items())
        return next(found, None)


def reported_gains() -> Claims:
    """What the paper states of its gains over its competitors, at single loads and on average."""
    path = resources.files("cosmo.study").joinpath("reported_gains.toml")
    told = tomllib.loads(path.read_text(encoding="utf-8"))
    return Claims(
        tuple(told["competitors"]),
        {each["name"]: tuple(each["rates"]) for each in told["loads"]},
        tuple(told["gains"]),
        tuple(told["points"]),
    )
