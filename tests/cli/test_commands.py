"""Commands as a user types them."""

import json
import os

import polars
import pytest
from small import SHORT

from columns import METRIC_NAMES, TASK_COLUMNS
from cosmo import METHODS, preset_names
from cosmo.device import VARIABLE


def test_simulate_prints_a_table(cosmo):
    code, out, _ = cosmo("simulate", "--method", "all-local", "--rate", "120", "--episodes", "2")
    assert code == 0
    for name in METRIC_NAMES:
        assert name in out


def test_simulate_json_is_one_document_and_nothing_else(cosmo):
    code, out, err = cosmo(
        "simulate", "--scenario", "paper", "--method", "all-local", "--arrivals", "poisson",
        "--rate", "120", "--seed", "0", "--episodes", "5", "--json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["scenario"] == "paper"
    assert document["method"] == "all-local"
    assert (document["episodes"], document["seed"]) == (5, 0)
    assert set(METRIC_NAMES) <= set(document["metrics"])
    for value in document["metrics"].values():
        assert set(value) == {"mean", "ci95"}
    assert document["metrics"]["success_rate"]["mean"] == pytest.approx(0.27, abs=0.03)


def test_json_has_null_where_there_is_no_number(cosmo):
    code, out, _ = cosmo("simulate", "--method", "all-local", "--json")
    assert code == 0
    assert json.loads(out)["metrics"]["success_rate"]["ci95"] is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_trace_goes_in_and_tasks_come_out(cosmo, tmp_path, suffix):
    trace, tasks = tmp_path / f"trace.{suffix}", tmp_path / f"tasks.{suffix}"
    assert cosmo("workload", "--rate", "300", "--seed", "4", "--out", trace)[0] == 0
    code, out, _ = cosmo(
        "simulate", "--method", "local-until-full", "--trace", trace, "--tasks-out", tasks, "--json"
    )
    assert code == 0
    read = polars.read_csv if suffix == "csv" else polars.read_parquet
    rows, given = read(tasks), read(trace)
    assert rows.columns == TASK_COLUMNS
    assert len(rows) == len(given)
    assert rows["generated_ms"].to_list() == given["time_ms"].to_list()
    assert set(rows["action"]) == {"local", "offload"}
    measured = rows.filter(polars.col("generated_ms") >= 2000)
    share = (measured["outcome"] == "TP").mean()
    assert json.loads(out)["metrics"]["success_rate"]["mean"] == pytest.approx(share)
    # The same workload without the detour gives the same result.
    code, direct, _ = cosmo(
        "simulate", "--method", "local-until-full", "--rate", "300", "--seed", "4", "--json"
    )
    assert (
        json.loads(direct)["metrics"]["success_rate"]
        == (json.loads(out)["metrics"]["success_rate"])
    )


def test_several_ens_sns_and_episodes_show_in_the_task_table(cosmo, tmp_path):
    path = tmp_path / "tasks.csv"
    code, _, _ = cosmo(
        "simulate", "-s", "campus", "-m", "random", "--episodes", "2", "--tasks-out", path
    )
    assert code == 0
    rows = polars.read_csv(path)
    assert rows.columns[-2:] == ["en", "episode"]
    assert set(rows["action"]) == {"local", "offload:1", "offload:2", "reject"}
    assert set(rows["en"]) == {0, 1, 2}


def test_undecided_tasks_are_reported(cosmo, tmp_path):
    path = tmp_path / "tasks.csv"
    code, _, err = cosmo(
        "simulate", "-m", "all-local", "--tasks-out", path,
        "--set", "mobility.radius_m=6", "--set", "mobility.speed_m_per_s=0",
    )  # fmt: skip
    assert code == 0
    assert (
        "their UEs were outside the cell (R7); to keep UEs in reach: --set mobility.radius_m=7"
        in err
    )
    rows = polars.read_csv(path).filter(polars.col("action") == "none")
    assert set(rows["outcome"]) == {"none"}
    assert rows["decided_ms"].null_count() == len(rows) > 0


def test_methods_lists_the_registry(cosmo):
    code, out, _ = cosmo("methods")
    assert code == 0
    for name in METHODS:
        assert name in out
    code, out, _ = cosmo("methods", "--json")
    assert [row["method"] for row in json.loads(out)] == list(METHODS)


def test_scenario_list_show_check(cosmo, tmp_path):
    code, out, _ = cosmo("scenario", "list")
    assert code == 0
    for name in preset_names():
        assert name in out
    code, out, _ = cosmo("scenario", "show", "paper", "--set", "workload.rate=99")
    assert code == 0
    assert "rate = 99.0" in out
    path = tmp_path / "mine.toml"
    path.write_text(out)
    assert cosmo("scenario", "check", path)[0] == 0
    code, out, _ = cosmo("scenario", "show", path, "--json")
    assert json.loads(out)["workload"]["rate"] == 99.0
    path.write_text('extends = "paper"\n[sn]\nslot = 3\n')
    code, out, err = cosmo("scenario", "check", path)
    assert (code, out) == (2, "")
    assert err == "cosmo: sn.slot: unknown field, did you mean slots?\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["simulate"], "Missing option '--method' / '-m'."),
        (["simulate", "-m", "nope"], "method = 'nope': unknown"),
        (["simulate", "-m", "all-local", "--rate", "0"], "workload.rate = 0: must be greater"),
        (
            ["simulate", "-m", "all-local", "--seed", "-1"],
            "--seeds = '-1': must be different whole numbers below 2^63",
        ),
        (["simulate", "-m", "all-local", "--episodes", "0"], "--episodes = 0: must be from 1"),
        (["simulate", "-m", "all-local", "--episodes", "x"], "Invalid value for '--episodes'"),
        (["simulate", "-m", "all-local", "--wrong"], "No such option: --wrong"),
        (["simulate", "-m", "all-local", "--trace", "no.csv"], "trace = 'no.csv': cannot be read"),
        (["simulate", "-m", "all-local", "--tasks-out", "x.txt"], "must end in .csv or .parquet"),
        (["simulate", "-m", "all-local", "--tasks-out", "no/x.csv"], "in an existing folder"),
        (["simulate", "-m", "all-local", "-s", "nope"], "no such preset or file"),
        (["workload", "--out", "x.txt"], "must end in .csv or .parquet"),
        (["workload", "--out", "x.csv", "--episode", "-5"], "--episode = -5: must be from 0"),
        (["simulate", "-m", "all-local", "--set", "max-delay=3"], "max-delay: unknown field"),
        (["simulate", "-m", "all-local", "--seed", 2**63], "whole numbers below 2^63"),
        (["train", "--out", "out", "--seeds", "0,00"], "--seeds = '0,00': must be different"),
        (["train", "--out", "out", "--seeds", "9" * 5000], "must be different whole numbers"),
        (["train", "--out", "out", "--seeds", 2**63], "must be different whole numbers below"),
        (["simulate", "-m", "all\nlocal\x1b[31m"], "unknown"),
        (["simulate", "-m", "all-local", "--set", "a\nb=3"], "a\\u000ab: unknown field"),
        (["scenario", "show", "nope"], "no such preset or file"),
        (["wrong"], "No such command 'wrong'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(cosmo, arguments, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cosmo(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("cosmo: ")
    assert line in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_survives_a_failed_run(cosmo, tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("mine")
    trace = tmp_path / "trace.csv"
    trace.write_text("time_ms,ue,input_bytes,cycles,deadline_ms\n1,0,5,5,-5\n")
    code, _, err = cosmo("simulate", "-m", "all-local", "--trace", trace, "--tasks-out", path)
    assert code == 2
    assert "line 2: deadline_ms = -5" in err
    assert path.read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_no_command_shows_help(cosmo):
    code, out, _ = cosmo()
    assert code == 0
    assert "simulate" in out
    code, out, _ = cosmo("--version")
    assert out.startswith("cosmo 0.")


@pytest.mark.parametrize("before", [None, "cpu"])
def test_a_device_is_chosen_for_one_command(cosmo, monkeypatch, before):
    monkeypatch.delenv(VARIABLE, raising=False)
    if before is not None:
        monkeypatch.setenv(VARIABLE, before)
    short = [part for item in SHORT for part in ("--set", item)]
    code, out, _ = cosmo("simulate", "-m", "never", "--device", "gpu", *short)
    assert code == 0
    assert out
    assert os.environ.get(VARIABLE) == before
