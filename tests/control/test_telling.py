"""A warning of traces on which no comparison says anything."""

import numpy as np
import pytest

from cosmo import load
from cosmo.control.telling import triviality
from cosmo.workload import Tasks
from cosmo.workload.trace import write_trace

SITE = load("paper", ["en.slots=1", "en.cycles_per_ms=1000", "access.rate_mbps=400"])


@pytest.mark.parametrize(("cycles", "trivial"), [(1e4, True), (2e7, False)])
def test_tasks_that_any_rule_has_in_time_are_warned_of(tmp_path, cycles, trivial):
    """A task every 50 ms, with 100 ms for it: 10 ms at the EN are in time, 20 s there and
    740 ms at the SN are not.
    """
    path, count = tmp_path / "trace.csv", 40
    nobody = np.zeros(count, np.int64)
    rows = (np.full(count, value) for value in (50000.0, cycles, 100.0))
    tasks = Tasks(50.0 * np.arange(count), nobody, nobody, *rows)
    write_trace(path, tasks, 1)
    said = triviality(path, tasks, SITE)
    assert (said is not None) == trivial
    if said:
        assert said.startswith("even all-local, which knows nothing of the SNs, has 100.0 % of")
