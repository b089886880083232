"""A warning of traces on which no comparison says anything."""

import numpy as np
import pytest

from cosmo import load
from cosmo.cli.importing import triviality
from cosmo.workload import Tasks
from cosmo.workload.trace import write_trace

SITE = load("paper", ["en.slots=1", "en.cycles_per_ms=1000", "access.rate_mbps=400"])


@pytest.mark.parametrize(("late", "warned"), [(1, "99.9 %"), (2, None), (999, None)])
def test_tasks_that_any_rule_has_in_time_are_warned_of(tmp_path, late, warned):
    """A task every 50 ms, with 100 ms for it: 10 ms at the EN are in time, 20 s there and 740 ms at
    the SN are not. 1000 tasks are played; those that are late come last and hold up nobody.
    """
    path, count = tmp_path / "trace.csv", 1001
    nobody = np.zeros(count, np.int64)
    cycles = np.where(np.arange(count) >= 1000 - late, 2e7, 1e4)
    tasks = Tasks(
        50.0 * np.arange(count), nobody, nobody, np.full(count, 5e4), cycles, np.full(count, 100.0)
    )
    write_trace(path, tasks, 1)
    said = triviality(path, tasks, SITE)
    assert (said is not None) == (warned is not None)
    if said is not None:
        assert said.startswith("even all-local, which knows nothing of the SNs, has 99.9 % of the")
