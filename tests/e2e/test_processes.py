"""Whole processes: interruption, big traces, a read-only place."""

import json
import signal
import subprocess
import sys

import numpy as np
import polars

from slow import check_interrupted, slow_simulation


def _cosmo(*arguments):
    return [sys.executable, "-m", "cosmo", *map(str, arguments)]


def test_an_interrupt_leaves_no_partial_file_and_says_so(tmp_path):
    process = slow_simulation(tmp_path)
    process.send_signal(signal.SIGINT)
    check_interrupted(process, tmp_path)


def test_a_hundred_thousand_tasks_of_a_trace_go_through(tmp_path):
    count = 100_000
    random = np.random.default_rng(0)
    polars.DataFrame(
        {
            "time_ms": np.cumsum(random.exponential(1000.0 / 220.0, count)),
            "ue": np.arange(count) % 4,
            "input_bytes": random.integers(20_000, 50_000, count),
            "cycles": random.integers(100_000, 1_200_000, count),
            "deadline_ms": random.uniform(60.0, 120.0, count),
        }
    ).write_csv(tmp_path / "trace.csv")
    done = subprocess.run(
        _cosmo(
            "simulate", "--method", "local-until-full", "--trace", "trace.csv", "--json",
            "--tasks-out", "tasks.parquet", "--set", "episode.window_ms=500000.0",
        ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )  # fmt: skip
    rows = polars.read_parquet(tmp_path / "tasks.parquet")
    assert len(rows) == count
    assert set(rows["outcome"]) == {"TP", "FP"}
    measured = rows.filter(polars.col("generated_ms") >= 2000)
    share = (measured["outcome"] == "TP").mean()
    assert json.loads(done.stdout)["metrics"]["success_rate"]["mean"] == share
