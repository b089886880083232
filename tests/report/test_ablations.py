"""The tables of a method and its ablation, from means and deviations given by hand."""

import polars

from cosmo.report.tables import ABLATION, Results, ablation_table


def test_what_was_not_measured_of_an_ablation_is_a_dash():
    rows = [
        ("cosmo", "success_rate", 0.62, 0.0104),
        ("cosmo", "decision_accuracy", None, None),  # measured, and never a number
        ("cosmo-flat", "success_rate", 0.5, None),  # of one run
        ("periodic", "success_rate", 0.4, 0.1),  # has no ablation
    ]
    columns = ["method", "metric", "mean", "std"]
    summary = polars.DataFrame(rows, schema=columns, orient="row").with_columns(
        arrivals=polars.lit("poisson"), rate=polars.lit(320.0)
    )
    none = polars.DataFrame()
    table = ablation_table(Results(none, summary, none, "cosmo", lambda _: False), ABLATION)
    assert table.texts() == [
        ["poisson", "320", "cosmo", "0.620 ± 0.010", "–"],
        ["poisson", "320", "cosmo-flat", "0.500", "–"],
    ]
