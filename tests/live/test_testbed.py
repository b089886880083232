"""The engine `live`: episodes on daemons of this machine, in commands and studies."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import polars
import pytest

import cosmo as package
from cosmo import InputError, load, simulate
from cosmo.control import play
from cosmo.engine import ENGINES, worlds
from cosmo.measure import MACHINE, Regret
from cosmo.policy.rules.fixed import AllLocal
from cosmo.scenario.model import Engine
from cosmo.study import load_plan
from cosmo.workload import episode
from cosmo.world.records import FP, TP, UNDECIDED, UNJUDGED
from slow import usual_signals, wait_until

TINY = ["episode.window_ms=300", "episode.warmup_ms=0"]
PLANS = Path(__file__).parents[2] / "docs" / "plans"
CALM = ["engine=live", "live.most_late_ms=1000"]  # whatever else the machine does


def flags(*settings):
    return [part for each in settings for part in ("--set", each)]


def test_plans_of_the_docs_play_episodes_that_nothing_was_put_right_on():
    plans = sorted(PLANS.glob("live*.toml"))
    assert len(plans) > 2
    for plan in map(load_plan, plans):
        assert plan.engines == ("embedded", "live")
        assert min(plan.seeds) >= 100


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--set", "live.slower=0"], "live.slower = 0: must be"),
        (["--set", "live.fifo=51"], "live.fifo = 51: must be less than or equal to 50"),
        (["--set", "live.transport=air"], "live.transport = 'air': must be 'loopback' or 'netns'"),
        (["--set", "live.slow=2"], "live.slow: unknown field, did you mean slower?"),
        (["--set", "fading.factors=[0.9, 1.0]"], "fading.factors = [0.9, 1.0]: must be [1, 1] "),
        (["--set", "status.jitter_ms=1"], "status.jitter_ms = 1.0: must be 0 with the engine live"),
        (["--set", "status.loss_probability=0.1"], "status.loss_probability = 0.1: must be 0 "),
        (["--set", "en.count=32"], "en.count + sn.count = 33: must be at most 32 with the engine"),
        (["-m", "full-information"], "method = 'full-information': unknown; must be one of"),
    ],
)
def test_mistakes_are_one_line(arguments, line, cosmo):
    code, out, err = cosmo("simulate", "-m", "all-local", "--engine", "live", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"cosmo: {line}")
    assert err.count("\n") == 1


def test_what_nodes_that_decide_by_themselves_cannot_do_is_refused():
    scenario = load("paper", [*TINY, *CALM])
    with pytest.raises(InputError, match="it can neither be stepped nor watched nor trained on"):
        worlds(scenario, [episode(scenario, 0, 0)])
    with pytest.raises(InputError, match="without watchers"):
        play(scenario, "all-local", [episode(scenario, 0, 0)],
             watchers=[Regret(scenario, AllLocal())])  # fmt: skip
    with pytest.raises(InputError, match="play one by name"):
        simulate(scenario, AllLocal())
    with pytest.raises(InputError, match="'cosmo' would be trained first"):
        load_plan(PLANS / "live.toml", ['compare=[{methods=["cosmo"]}]'])
    with pytest.raises(InputError, match="tune on an engine that simulates"):
        package.tune(scenario, "periodic", {"interval_ms": (5.0, 50.0)}, trials=1)


def test_every_engine_that_a_scenario_can_name_is_there():
    assert set(ENGINES) == set(get_args(Engine))


def test_an_older_scenario_is_written_as_it_was():
    """Studies and trained controllers of before are still the same."""
    assert "live" not in load("paper").model_dump()
    changed = load("paper", ["live.slower=2"])
    assert changed.model_dump()["live"]["slower"] == 2.0
    assert package.scenario.scenario_from(changed.model_dump()) == changed


def test_a_task_on_daemons_ends_as_in_any_other_engine():
    settings = ["en.count=2", "sn.count=2", "backhaul.reach=[[1], [0, 1]]", "workload.rate=150"]
    scenario = load("campus", [*TINY, *CALM, *settings])
    found = simulate(scenario, "aoi-threshold", seeds=100)
    [outcome], [metrics] = found.outcomes, found.episodes
    assert set(np.unique(outcome.outcome)) <= {TP, FP, UNJUDGED, UNDECIDED}
    assert (outcome.outcome == TP).any()  # how many is a matter of how busy the machine is
    assert outcome.updates > 0
    assert outcome.update_decisions > 0
    few = outcome.tasks.en == 0  # reaches one SN, and rejects by the number of the other's third
    assert set(outcome.action[few].tolist()) <= {-1, 0, 1, 3}
    np.testing.assert_array_equal(outcome.action == 3, outcome.outcome == UNJUDGED)
    assert metrics.keys() >= MACHINE.keys()
    assert metrics["timer_late_ms_p99"] > 0.0
    assert np.isnan([metrics["decision_accuracy"], metrics["net_utility_per_task"]]).all()
    done = outcome.outcome == TP
    assert not np.isnan([outcome.decided_ms[done], outcome.finished_ms[done]]).any()


def test_engines_are_compared_kept_and_gone_on_with(cosmo, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "found"
    command = [
        *("compare", "aoi-threshold", "--engine", "embedded,live", "--rates", "220"),
        *("--seeds", "100", "--episodes", "1", "--out", folder),
        *flags(*TINY, "live.most_late_ms=1000"),
    ]
    code, out, err = cosmo(*command)
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= 80
    assert "Success on live minus embedded: " in out
    table = polars.read_parquet(folder / "metrics.parquet")
    assert table["scenario"].to_list() == ["paper", "paper-live"]
    assert table["fallbacks"].to_list() == [None, 0.0]
    assert "embedded → live" in (folder / "report" / "tables" / "engines.md").read_text()
    # What is finished is not played again.
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("units/*/metrics.parquet")}
    assert cosmo(*command)[0] == 0
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_what_cannot_be_trusted_is_no_result_and_is_tried_again(cosmo, tmp_path):
    command = [
        *("compare", "all-local", "--engine", "embedded,live", "--seeds", "100"),
        *("--episodes", "1", "--out", tmp_path / "found", *flags(*TINY, "live.most_late_ms=1e-9")),
    ]
    for _ in range(2):
        code, _, err = cosmo(*command)
        assert code == 1
        assert "failed: all-local-paper-live" in err
        assert "engine live, run 100: timers were late by " in err
        assert "1 of 2 units finished" in err
    table = polars.read_parquet(tmp_path / "found" / "metrics.parquet")
    assert table["scenario"].to_list() == ["paper"]


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="without setpriv daemons stay")
def test_daemons_end_with_a_study_that_is_killed(tmp_path):
    (tmp_path / "tmp").mkdir()
    long = flags("episode.window_ms=60000", "live.most_late_ms=1000")
    command = ["compare", "all-local", "--engine", "live", "--seeds", "100", "--episodes", "1"]

    def daemons():
        """Those whose files are in this test's folder."""
        own = str(tmp_path / "tmp").encode()
        return [path for path in Path("/proc").glob("[0-9]*/cmdline") if own in read(path)]

    with usual_signals():
        process = subprocess.Popen(
            [sys.executable, "-m", "cosmo", *command, *long, "--out", str(tmp_path / "out")],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        )
    try:
        # An EN, an SN, and the load generator.
        wait_until(lambda: len(daemons()) == 3, "all processes of an episode are there")
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not daemons(), "all of them are gone")


def read(path):
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


def test_where_namespaces_or_priority_are_not_permitted_that_is_one_line(
    cosmo, tmp_path, monkeypatch
):
    for name in ("ip", "chrt"):
        (tmp_path / name).write_text("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    live = ("simulate", "-m", "all-local", "--engine", "live")
    code, _, err = cosmo(*live, "--set", "live.transport=netns")
    assert code == 2
    assert err.splitlines()[-1] == (
        "cosmo: live.transport = 'netns': network namespaces are not permitted here, which takes"
        " root; use loopback (ip netns add: Operation not permitted)"
    )
    code, _, err = cosmo(*live, "--set", "live.fifo=10")
    assert code == 2
    assert "cosmo: live.fifo = 10: real-time priority is not permitted" in err


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
from cosmo.live.testbed.networks import namespaces
with namespaces(load("campus", ["en.count=1"]), 5.0) as network:
    inside = network.command("en0")
    told = subprocess.run([*inside, "tc", "qdisc", "show"], capture_output=True, text=True).stdout
    there = network.address("en0", "sn1", 0).partition(":")[0]
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
