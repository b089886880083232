"""Comparisons: equal workloads, any number of workers, the paper's numbers where they belong."""

import polars
import pytest
from polars.testing import assert_frame_equal

from cosmo import InputError
from cosmo.study import compare, reported

SHORT = ["episode.window_ms=3000", "episode.warmup_ms=500"]


def _compare(source, settings, workers, methods=("all-local", "aoci-online", "random")):
    return compare(
        source, settings, ("poisson",), (120.0, 320.0), methods, seed=3, episodes=2, workers=workers
    )


def test_the_result_does_not_depend_on_the_number_of_workers():
    shares = []
    alone = compare(
        "paper", SHORT, ("poisson",), (120.0, 320.0), ("all-local", "aoci-online"), 3, 2,
        shares.append, workers=1,
    )  # fmt: skip
    many = compare(
        "paper", SHORT, ("poisson",), (120.0, 320.0), ("all-local", "aoci-online"), 3, 2, workers=3
    )
    assert_frame_equal(alone.table, many.table, check_exact=True)
    assert_frame_equal(alone.bounds, many.bounds, check_exact=True)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize(
    ("source", "settings", "numbers"),
    [
        ("paper", [], 2),
        ("paper", ["workload.rate=99"], 2),
        ("shared-sn", [], 0),
        ("paper", SHORT, 0),
    ],
)
def test_the_papers_numbers_stand_only_beside_the_papers_world(source, settings, numbers):
    table = _compare(source, settings, workers=1, methods=("all-local",)).table
    assert table.filter(polars.col("paper").is_not_null()).height == numbers


def test_a_wrong_method_is_refused_before_any_work():
    with pytest.raises(InputError, match="unknown"):
        _compare("paper", [], workers=2, methods=("all-local", "nope"))


def test_the_papers_numbers_are_all_there():
    table = reported()
    assert table.height == 79
    assert set(table["arrivals"]) == {"deterministic", "poisson"}
    assert table["value"].null_count() == 0
