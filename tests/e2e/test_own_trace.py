"""An own site with four ENs and three SNs, and an own trace of 20 000 tasks, in windows."""

import json

import numpy as np
import polars

SITE = """extends = "campus"
name = "mine"

[workload]
trace = "mine.parquet"

[episode]
window_ms = 5000.0
warmup_ms = 500.0

[en]
count = 4
slots = 2
cycles_per_ms = 18000.0
storage_bytes = 400000.0
queue_capacity = 12

[sn]
count = 3
slots = 4
cycles_per_ms = 27000.0
storage_bytes = 1600000.0
queue_capacity = 40

[backhaul]
up_mbps = 96.0
down_mbps = 192.0
"""


def test_an_own_site_with_an_own_trace(cosmo, tmp_path, monkeypatch):
    random, count = np.random.default_rng(0), 20_000
    polars.DataFrame(
        {
            "time_ms": np.cumsum(random.exponential(1000.0 / 560.0, count)),
            "en": random.integers(0, 4, count),
            "ue": random.integers(0, 4, count),
            "input_bytes": random.integers(20_000, 50_000, count),
            "cycles": random.integers(100_000, 1_200_000, count),
            "deadline_ms": random.uniform(60.0, 120.0, count),
        }
    ).write_parquet(tmp_path / "mine.parquet")
    (tmp_path / "mine.toml").write_text(SITE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    code, out, err = cosmo(
        "simulate", "--scenario", "../mine.toml", "--method", "aoi-threshold/estimate", "--json",
        "--tasks-out", "tasks.parquet",
    )  # fmt: skip
    assert code == 0, err
    told = json.loads(out)
    assert told["episodes"] == 7  # whole windows of 5 s in about 36 s
    assert 0.3 < told["metrics"]["success_rate"]["mean"] < 1.0
    assert told["metrics"]["success_rate"]["ci95"] > 0.0
    rows = polars.read_parquet("tasks.parquet")
    given = polars.read_parquet(tmp_path / "mine.parquet").filter(polars.col("time_ms") < 35_000)
    assert len(rows) == len(given)
    assert set(rows["en"]) == {0, 1, 2, 3}
    assert "none" not in set(rows["outcome"])  # nobody walks out of a cell of a trace
