"""`cosmo live run`: plans, their results, and the namespaces that daemons may stand in."""

import json
import os
import signal
import subprocess
import sys

import polars
import pytest

from cosmo.live.bed import conduct
from cosmo.live.bed.plan import bed_plan_names, load_bed_plan
from cosmo.live.bed.results import sentence, standings
from live.beds import row
from slow import usual_signals, wait_until

TINY = ["episode.window_ms=300", "episode.warmup_ms=0"]
CALM = ["fifo=0", "scales=[1.0]", "most_late_ms=1000", "rates=[220]", "within=1"]


def flags(*settings):
    return [part for each in settings for part in ("--set", each)]


def test_every_plan_of_the_package_can_be_played():
    for name in bed_plan_names():
        plan = load_bed_plan(name)
        assert plan.loads()
        assert min(plan.seeds) >= 100  # the test bed was put right on those of run 0
    assert {"held-out", "held-out-slow", "namespaces", "several"} <= set(bed_plan_names())


def test_settings_are_the_plan_s_or_the_scenario_s():
    plan = load_bed_plan("one", [*TINY, "episodes=2", "en.count=2"])
    assert plan.settings == (*TINY, "en.count=2")
    [scenario] = plan.loads()
    assert (scenario.en.count, scenario.episode.window_ms) == (2, 300.0)
    assert [unit.episode for unit in plan.units()] == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "PLAN: must be given, or at least one --method"),
        (["held-oud"], "plan = 'held-oud': no such preset or file (presets: held-out, "),
        (["one", "--set", "episode=3"], "episode: unknown field, did you mean episodes?"),
        (["one", "--set", "workload.rat=3"], "workload.rat: unknown field, did you mean rate?"),
        (["one", "--scale", "0"], "scales.0 = 0.0: must be greater than or equal to 0.1"),
        (["one", "--transport", "air"], "transport = 'air': must be 'loopback' or 'netns'"),
        (["one", "--rate", "x"], "rates = '[x]': must be a list"),
        (["one", "--method", "best"], "method = 'best': unknown; must be one of"),
        (["one", "--scenario", "shared-sn"], "scenario = 'shared-sn': has links that fade or"),
        (["one", "--set", "status.jitter_ms=1"], "scenario = 'paper': has statuses that are lost"),
        (["one", "--scenario", "city"], "scenario = 'city': has "),
        (["mine.toml"], "methods: 'mine.py:Mine' runs code of a file; add --trust to allow it"),
    ],
)
def test_mistakes_are_one_line(arguments, line, cosmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "base.toml").write_text('extends = "one"\nmethods = ["mine.py:Mine"]\n')
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\n')
    code, out, err = cosmo("live", "run", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"cosmo: {line}")
    assert err.count("\n") == 1


def test_a_plan_is_played_kept_shown_and_gone_on_with(cosmo, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "found"
    settings = flags(*TINY, *CALM)
    command = ["live", "run", "one", "--method", "aoi-threshold", *settings, "--out", folder]
    code, out, err = cosmo(*command)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert "in 1 of 1 comparisons" in " ".join(out.split())
    table = polars.read_parquet(folder / conduct.RESULTS)
    [found] = table.iter_rows(named=True)
    assert found["method"] == "aoi-threshold"
    assert found["tasks"] > 20
    assert found["live"] > 0.0  # how much is a matter of how busy the machine is
    assert found["errors"] == 0
    assert min(found["simulated_updates"], found["live_updates"]) > 0
    assert (folder / "live.html").stat().st_size > 100_000
    # What is there with a verdict is not played again; what has none is.
    played = []

    def noted(unit, ground, most_late_ms):
        played.append(unit.method)
        return row(unit.method, seed=unit.seed, scale=unit.scale)

    monkeypatch.setattr(conduct, "compared", noted)
    code, out, _ = cosmo(*command, "--json")
    assert (code, played) == (0, [])
    assert json.loads(out)[0]["live"] == found["live"]
    table.with_columns(valid=False).write_parquet(folder / conduct.RESULTS)
    code, out, _ = cosmo(*command, "--json")
    assert (code, played) == (0, ["aoi-threshold"])
    assert json.loads(out)[0]["live"] == 0.9
    code, _, err = cosmo(*command, "--set", "episodes=2")
    assert code == 2
    assert "has results of a plan with another episodes; choose another folder" in err


def test_there_is_no_verdict_where_the_machine_was_too_slow():
    plan = load_bed_plan("held-out", ['methods=["priced-books", "cosmo:checkpoint=a"]'])
    late = row("cosmo:checkpoint=a", 0.5, valid=False)
    found = standings(plan, [row(), row(live=0.89, episode=1), row(live=0.87, episode=2), late])
    assert [each.method for each in found] == ["priced-books", "cosmo"]
    assert [each.valid for each in found] == [True, False]
    assert found[0].difference.mean == pytest.approx(-0.04 / 3)
    assert not found[0].within(0.013)
    assert not found[1].within(1.0)
    assert sentence(plan, found) == (
        "Live nodes are within 0.02 of the simulator's share of tasks in time in 1 of 1"
        " comparisons; the largest difference is -0.013 (priced-books, 220 tasks/s, real"
        " time). 1 has no verdict: timers were late, or calls failed."
    )
    assert sentence(plan, found[1:]).startswith("No verdict: timers were late by more than 2 ms")


def test_where_namespaces_or_priority_are_not_permitted_that_is_one_line(
    cosmo, tmp_path, monkeypatch
):
    for name in ("ip", "chrt"):
        (tmp_path / name).write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    code, _, err = cosmo("live", "run", "one", "--transport", "netns")
    assert code == 2
    assert err.splitlines()[-1] == (
        "cosmo: transport = 'netns': network namespaces are not permitted here, which takes root;"
        " use loopback (ip netns add: Operation not permitted)"
    )
    code, _, err = cosmo("live", "run", "one", "--fifo", "10")
    assert code == 2
    assert "cosmo: fifo = 10: real-time priority is not permitted" in err


def _permitted():
    name = f"cosmo-test-{os.getpid()}"
    try:
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False
    if made:
        subprocess.run(["ip", "netns", "del", name], check=True)
    return made


HELD = """
import subprocess, sys, time
from cosmo import load
from cosmo.live.bed.namespaces import namespaces
with namespaces(load("campus", ["en.count=1"]), 5.0) as ground:
    inside = ground.command("en0")
    told = subprocess.run([*inside, "tc", "qdisc", "show"], capture_output=True, text=True).stdout
    there = ground.address("en0", "sn1", 0).partition(":")[0]
    reached = subprocess.run([*inside, "ping", "-c1", "-W9", there], capture_output=True)
    rates = [line.split(" rate ")[1].split()[0] for line in told.splitlines() if "tbf" in line]
    print(reached.returncode if "ping" not in str(reached.stderr) else 0, *rates, flush=True)
    subprocess.Popen([*inside, "sleep", "600"])
    time.sleep(600)
"""


def test_namespaces_are_gone_even_after_a_kill():
    if not _permitted():
        pytest.skip("network namespaces take root")
    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-c", HELD], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    try:
        answer, *rates = process.stdout.readline().split()
        own = f"cosmo-{process.pid}-0-"

        def there():
            told = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
            return sorted(line.split()[0] for line in told.splitlines() if line.startswith(own))

        assert answer == "0"
        # 96 Mbps of messages, five times slower, and the headers that every packet has.
        assert rates == ["20075Kbit", "20075Kbit"]
        assert there() == [f"{own}{name}" for name in ("en0", "sn0", "sn1", "ues")]
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    wait_until(lambda: not there(), "the namespaces are gone")
