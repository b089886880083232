"""Every number that the paper reports."""

from importlib import resources

import polars


def reported() -> polars.DataFrame:
    """Columns: arrivals, rate, method, metric, value, std (may be null), source."""
    path = resources.files("cosmo.study").joinpath("reported.csv")
    with resources.as_file(path) as file:
        return polars.read_csv(file, schema_overrides={"rate": polars.Float64})
