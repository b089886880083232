"""Logs of others as traces: columns, units, bad rows, what is filled, and what is not plausible."""

import json

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmo import InputError, load
from cosmo.workload import FORMATS, plausibility, read_log, read_trace, tasks_of_log

LOG = """timestamp,device,size,cpu,limit
1700000002.5,cam-b,30,12,0.15
1700000001.0,cam-a,40,10,0.1
1700000001.0,cam-a,40,10,0.1
1700000004.0,cam-c,20,11,
"""
COLUMNS = ["time_ms=timestamp:epoch_s", "ue=device", "input_bytes=size:kB", "cycles=cpu:cpu_ms",
           "deadline_ms=limit:s"]  # fmt: skip


def _log(tmp_path, text=LOG, kind="csv"):
    path = tmp_path / f"log.{kind}"
    path.write_text(text)
    return read_log(path, kind)


def test_columns_units_order_and_what_is_missing_by_hand(tmp_path):
    paper = load("paper")
    found = tasks_of_log(_log(tmp_path), paper, COLUMNS, speed=18000.0)
    tasks = found.tasks
    assert tasks.time_ms.tolist() == [0.0, 0.0, 1500.0, 3000.0]
    assert tasks.ue.tolist() == [0, 0, 1, 2]
    assert tasks.input_bytes.tolist() == [40000.0, 40000.0, 30000.0, 20000.0]
    assert tasks.cycles.tolist() == [180000.0, 180000.0, 216000.0, 198000.0]
    assert tasks.deadline_ms[:3].tolist() == [100.0, 100.0, 150.0]
    assert 60.0 <= tasks.deadline_ms[3] <= 220.0
    assert found.notes == [
        "rows were not in order of time; they are sorted",
        "1 rows are like another one in all fields; duplicates = keep",
        "ue: 3 names on 3 UEs in each cell: cam-a is 0, cam-b is 1, cam-c is 2",
        "deadline_ms: 1 of 4 are made by the scenario's rule for deadlines (workload.deadline)",
    ]
    once = tasks_of_log(_log(tmp_path), paper, COLUMNS, speed=18000.0, duplicates="drop")
    assert len(once.tasks) == 3


def test_json_lines_and_parquet_say_the_same(tmp_path):
    rows = [
        {"at": f"2026-01-31T13:45:0{k}.250+01:00", "task": {"bytes": 30000 + k}} for k in (0, 3)
    ]
    text = "\n".join(map(json.dumps, rows))
    columns = ["time_ms=at:iso", "input_bytes=task.bytes"]
    first = tasks_of_log(_log(tmp_path, text, "jsonl"), load("paper"), columns).tasks
    assert first.time_ms.tolist() == [0.0, 3000.0]
    assert first.input_bytes.tolist() == [30000.0, 30003.0]
    table = polars.DataFrame({"at": [row["at"] for row in rows], "bytes": [30000, 30003]})
    table.with_columns(polars.col("at").str.to_datetime(time_zone="UTC")).write_parquet(
        tmp_path / "log.parquet"
    )
    columns = ["time_ms=at:iso", "input_bytes=bytes"]
    again = tasks_of_log(
        read_log(tmp_path / "log.parquet", "parquet"), load("paper"), columns
    ).tasks
    np.testing.assert_array_equal(first.time_ms, again.time_ms)
    np.testing.assert_array_equal(first.cycles, again.cycles)  # drawn, with the same seed


def test_dates_without_a_zone_have_the_one_that_is_given(tmp_path):
    from zoneinfo import ZoneInfo

    text = "at\n2026-03-29T01:59:59\n2026-03-29T03:00:00\n"  # the clock is put forward in between
    found = tasks_of_log(_log(tmp_path, text), load("paper"), ["time_ms=at:iso"],
                         zone=ZoneInfo("Europe/Berlin"))  # fmt: skip
    assert found.tasks.time_ms.tolist() == [0.0, 1000.0]


def test_bad_rows_are_named_with_their_line_or_left_out(tmp_path):
    text = "time_ms,cycles\n0,1e5\n5,soon\n7,-3\n9,1e5,7\nx,1e5\n12,2e5\n"
    log = _log(tmp_path, text)
    with pytest.raises(
        InputError, match=r"^line 3: cycles = 'soon': must be a number \(and 3 more"
    ):
        tasks_of_log(log, load("paper"))
    found = tasks_of_log(log, load("paper"), bad_rows="skip")
    assert found.tasks.time_ms.tolist() == [0.0, 12.0]
    assert found.notes[0].startswith(
        "4 of 6 rows are left out: line 3: cycles = 'soon': must be a number; line 4: cycles = '-3'"
    )
    nothing = _log(tmp_path, "time_ms\nx\n")
    with pytest.raises(InputError, match="has no row that is a task"):
        tasks_of_log(nothing, load("paper"), bad_rows="skip")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["when=timestamp"], "field must be one of time_ms, input_bytes"),
        (["time_ms=timestmp"], "has no column 'timestmp', did you mean timestamp"),
        (["time_ms=timestamp:weeks"], "unit 'weeks' must be one of ms, s, us"),
        (["time_ms"], "must look like time_ms=timestamp:epoch_s"),
        (["time_ms=timestamp:s", "time_ms=cpu:s"], "time_ms is there twice"),
        (["time_ms=timestamp:s", "cycles=cpu:cpu_ms"], "give --speed"),
        ([], "no column says when tasks came"),
    ],
)
def test_a_mapping_that_is_wrong_is_one_line(tmp_path, columns, said):
    with pytest.raises(InputError, match=said) as caught:
        tasks_of_log(_log(tmp_path), load("paper"), columns)
    assert "\n" not in str(caught.value)


def test_names_of_ens_need_a_site_with_as_many(tmp_path):
    text = "time_ms,en\n0,east\n1,west\n2,east\n"
    with pytest.raises(InputError, match=r"names 2, the scenario has 1; add --set en\.count=2"):
        tasks_of_log(_log(tmp_path, text), load("paper"))
    found = tasks_of_log(_log(tmp_path, text), load("campus"))
    assert found.tasks.en.tolist() == [0, 1, 0]
    assert found.tasks.ue.tolist() == [0, 0, 1]  # in turn within each cell


def test_devices_are_numbered_within_their_cell(tmp_path):
    text = "time_ms,en,ue\n0,east,cam-a\n1,west,cam-b\n2,east,cam-c\n3,west,cam-a\n4,west,cam-b\n"
    log, site = _log(tmp_path, text), load("campus", {"en.count": 2, "ue.count": 2})
    found = tasks_of_log(log, site)
    assert found.tasks.en.tolist() == [0, 1, 0, 1, 1]
    assert found.tasks.ue.tolist() == [0, 0, 1, 1, 0]  # cam-a is seen in two cells
    assert "ue: 4 names on 2 UEs in each cell: cam-a is 0, cam-b is 0, cam-c is 1, …" in found.notes
    narrow = tasks_of_log(log, load("campus", {"en.count": 2, "ue.count": 1}))
    assert narrow.tasks.ue.tolist() == [0] * 5
    assert any("(--set ue.count=2 gives each its own)" in note for note in narrow.notes)


def test_kilobytes_taken_for_bytes_are_noticed(tmp_path):
    paper = load("paper")
    text = "time_ms,input_bytes,cycles,deadline_ms\n" + "".join(
        f"{10 * k},35,600000,120\n" for k in range(300)
    )
    found = plausibility(tasks_of_log(_log(tmp_path, text), paper).tasks, paper)
    assert found.warnings == [
        "input_bytes has a median of 35, tasks of the scenario have 20000 to 50000; is the unit kB?"
    ]
    # 100 tasks of 600000 cycles a second on 2 · 18000 + 4 · 27000 cycles/ms.
    assert found.load == pytest.approx(100 * 600000 / 1000 / 144000)
    right = tasks_of_log(_log(tmp_path, text), paper, ["input_bytes=input_bytes:kB"]).tasks
    assert plausibility(right, paper).warnings == []


@pytest.mark.parametrize(
    ("cells", "told"),
    [([0, 1, 2], "cell(s);"), ([0, 0, 0, 1, 2, 2], "cell(s) on average, from 50 to 150;")],
)
def test_cells_with_unequal_rates_are_told_with_their_extremes(tmp_path, cells, told):
    campus = load("campus")
    text = "time_ms,en,input_bytes,cycles,deadline_ms\n" + "".join(
        f"{10 * k / 3:.6f},{cells[k % len(cells)]},35000,600000,120\n" for k in range(600)
    )
    found = plausibility(tasks_of_log(_log(tmp_path, text), campus).tasks, campus)
    assert f"100 tasks/s in each of 3 {told}" in found.lines[0]


@pytest.mark.parametrize(("gap_ms", "trivial"), [(15.0, True), (4.5, False)])
def test_the_command_plays_the_trace_to_see_whether_methods_differ(
    tmp_path, cosmo, gap_ms, trivial
):
    """A quarter of the capacity was no warning by itself."""
    random = np.random.default_rng(0)
    times = np.cumsum(random.exponential(gap_ms, 1500)).round(3)
    rows = (
        f"{time},{kilobytes:.1f},{demand:.0f},140\n"
        for time, kilobytes, demand in zip(
            times, random.uniform(20, 50, 1500), random.uniform(1e5, 1.1e6, 1500), strict=True
        )
    )
    log = tmp_path / "log.csv"
    log.write_text("time_ms,size,cycles,deadline_ms\n" + "".join(rows))
    mapped = ["--column", "input_bytes=size:kB", "--out", tmp_path / "t.parquet", "--json"]
    code, out, _ = cosmo("import", "csv", log, *mapped)
    assert code == 0
    warnings = json.loads(out)["warnings"]
    assert len(warnings) == trivial, warnings
    assert all("knows nothing of the SNs, has " in each for each in warnings)
    assert all("success will be about 1" in each for each in warnings)


def test_a_trace_on_which_success_is_trivial_is_noticed(tmp_path):
    paper = load("paper")
    easy = "time_ms,cycles,deadline_ms\n" + "".join(f"{100 * k},2e5,200\n" for k in range(50))
    told = plausibility(tasks_of_log(_log(tmp_path, easy), paper).tasks, paper)
    assert told.feasible == 1.0
    assert "success will be about 1" in told.warnings[0]
    hard = easy.replace(",200\n", ",2\n")
    told = plausibility(tasks_of_log(_log(tmp_path, hard), paper).tasks, paper)
    assert told.feasible == 0.0
    assert "success will be about 0" in told.warnings[0]


def test_the_command_writes_a_trace_that_can_be_played_or_nothing(tmp_path, cosmo):
    (tmp_path / "log.csv").write_text(LOG)
    out = tmp_path / "trace.csv"
    mapped = [part for each in COLUMNS for part in ("--column", each)]
    code, _, err = cosmo("import", "csv", tmp_path / "log.csv", *mapped, "--out", out)
    assert (code, out.exists()) == (2, False)
    assert "give --speed" in err
    given = ["import", "csv", tmp_path / "log.csv", *mapped, "--speed", "18000"]
    code, text, _ = cosmo(*given, "--out", out, "--json")
    told = json.loads(text)
    assert (code, told["tasks"], told["seconds"]) == (0, 4, 4.0)
    assert len(read_trace(out, load("paper"))) == 4
    for wrong in (["--bad-rows", "hide"], ["--time-zone", "Mars/Olympus"], ["--rate", "5"]):
        code, _, err = cosmo(*given, "--out", tmp_path / "no.csv", *wrong)
        assert (code, len(err.strip().splitlines())) == (2, 1), err
    assert not (tmp_path / "no.csv").exists()


def test_public_traces_of_language_models(tmp_path):
    (tmp_path / "azure.csv").write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n"
    )
    found = FORMATS["azure-llm-2023"](tmp_path / "azure.csv")
    assert np.diff(found.start_s)[0] == pytest.approx(4.314579, abs=1e-5)
    assert found.work_s.tolist() == [44.0, 109.0]
    (tmp_path / "burst.csv").write_text(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,0,1087,Conversation log\n"
        "118,GPT-4,417,276,693,API log\n"
    )
    found = FORMATS["burstgpt"](tmp_path / "burst.csv")
    assert found.start_s.tolist() == [5.0, 118.0]  # what failed has no response
    assert (found.work_s.tolist(), found.clock_s) == ([18.0, 276.0], 1.0)
    assert found.member == ["ChatGPT/Conversation log", "GPT-4/API log"]


@given(st.text(max_size=200), st.sampled_from(["csv", "jsonl"]), st.sampled_from(["fail", "skip"]))
def test_any_text_is_tasks_or_one_line(tmp_path_factory, text, kind, rule):
    path = tmp_path_factory.mktemp("any") / f"log.{kind}"
    path.write_text("time_ms,cycles\n" * (kind == "csv") + text, encoding="utf-8", newline="")
    paper = load("paper")
    try:
        tasks = tasks_of_log(read_log(path, kind), paper, bad_rows=rule).tasks
    except InputError as error:
        said = str(error)
    else:
        said = ""
        assert len(tasks) > 0
        assert plausibility(tasks, paper).lines
    assert "\n" not in said


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_are_separators_where_the_header_has_no_comma(tmp_path, separator):
    paper = load("paper")
    usual = tasks_of_log(_log(tmp_path, LOG), paper, COLUMNS, speed=18_000.0).tasks
    other = _log(tmp_path, LOG.replace(",", separator))
    found = tasks_of_log(other, paper, COLUMNS, speed=18_000.0).tasks
    for one, same in zip(usual.columns, found.columns, strict=True):
        np.testing.assert_array_equal(one, same)
