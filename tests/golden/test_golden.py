"""The world of today is the world of yesterday, task by task."""

import polars
import pytest
from polars.testing import assert_frame_equal

from golden.cases import CASES, FOLDER, table


@pytest.mark.parametrize("case", CASES)
def test_every_task_is_as_it_was(case):
    kept = polars.read_csv(FOLDER / f"{case}.csv")
    assert len(kept) > 50
    assert_frame_equal(table(case), kept, check_dtypes=False, rel_tol=0, abs_tol=1e-9)
