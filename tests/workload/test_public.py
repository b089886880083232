"""Public formats: hand-written rows as the documentation of each trace describes them."""

import importlib.util
from pathlib import Path

import numpy as np
import polars
import pytest

from cosmo import InputError, load
from cosmo.workload import FORMATS, imported, read_trace

AZURE = """app,func,end_timestamp,duration
a1,f1,100.5,0.5
a2,f1,103.0,2.0
a1,f2,102.25,0.25
a1,f1,104.0,40.0
a3,f9,110.0,0.0
"""
ALIBABA = """M1,2,j_1,1,Terminated,86400,86402,100,0.3
R2_1,1,j_1,1,Terminated,86402,86410,50,0.2
M1,1,j_2,1,Running,86403,0,100,0.3
task_Nzg3,1,j_3,12,Terminated,86401,86405,,0.3
M9,1,j_4,1,Terminated,0,86405,100,0.3
M1,1,j_5,1,Failed,86401,86405,100,0.3
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "azure.csv").write_text(AZURE)
    (tmp_path / "alibaba.csv").write_text(ALIBABA)
    return tmp_path


def test_azure_functions(files):
    found = FORMATS["azure-functions-2021"](files / "azure.csv")
    np.testing.assert_allclose(found.start_s, [100.0, 101.0, 102.0, 64.0, 110.0])
    assert found.work_s.tolist() == [0.5, 2.0, 0.25, 40.0, 0.0]
    assert found.group == ["a1", "a2", "a1", "a1", "a3"]
    assert found.member == ["a1/f1", "a2/f1", "a1/f2", "a1/f1", "a3/f9"]


def test_alibaba_batch(files):
    found = FORMATS["alibaba-batch-2018"](files / "alibaba.csv")
    assert found.start_s.tolist() == [86400.0, 86402.0, 86401.0]
    assert found.work_s.tolist() == [2.0, 4.0, 4.0]  # half a core; one if nothing is said
    assert found.group == ["j_1", "j_1", "j_3"]
    assert found.member == ["j_1/M1", "j_1/R2_1", "j_3/task_Nzg3"]


def test_what_is_recorded_stays_and_the_scenario_gives_the_rest(files):
    campus = load("campus")
    recorded = FORMATS["azure-functions-2021"](files / "azure.csv")
    tasks = imported(recorded, campus, rate=100.0)
    # 46 s from first to last start become four gaps of 1000 / (3 · 100) ms, in proportion.
    np.testing.assert_allclose(tasks.time_ms, np.array([0, 36, 37, 38, 46]) / 46 * 40 / 3)
    assert tasks.en.tolist() == [0, 0, 1, 0, 2]  # a1 comes first
    assert tasks.ue.tolist() == [0, 0, 1, 2, 3]
    low, high = campus.workload.cycles
    middle = 0.5 * (low + high)
    scale = middle / 1.25  # of work above 0
    expected = np.clip(np.round(np.array([40.0, 0.5, 2.0, 0.25, 0.0]) * scale), low, high)
    assert tasks.cycles.tolist() == expected.tolist()
    sizes, limits = campus.workload.input_bytes, campus.workload.deadline.clip_ms
    assert ((tasks.input_bytes >= sizes[0]) & (tasks.input_bytes <= sizes[1])).all()
    assert ((tasks.deadline_ms >= limits[0]) & (tasks.deadline_ms <= limits[1])).all()
    assert imported(recorded, campus, 100.0, most=2).en.tolist() == [0, 0]


def test_whole_seconds_are_spread(files):
    recorded = FORMATS["alibaba-batch-2018"](files / "alibaba.csv")
    times = imported(recorded, load("paper"), 1.0, seed=1).time_ms
    assert times[0] == 0.0
    assert (np.diff(times) > 0.0).all()


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("azure-functions-2021", "app,func,duration\n1,2,3\n", "column end_timestamp is missing"),
        (
            "azure-functions-2021",
            AZURE + "a,b,x,1\n",
            "line 7: end_timestamp = 'x': must be a number, 0 or greater",
        ),
        ("azure-functions-2021", "", "is no CSV file"),
        ("alibaba-batch-2018", "M1,1,j,1,Terminated,5,9,-3,1\n", "line 1: plan_cpu = '-3'"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, kind, text, line):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        FORMATS[kind](path)
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_writes_a_trace_of_the_scenario(files, cosmo):
    out = files / "out.parquet"
    arguments = ("import", "azure-functions-2021", files / "azure.csv", "--out", out)
    code, _, err = cosmo(*arguments, "--scenario", "campus", "--rate", "50")
    assert (code, "wrote 5 tasks" in err) == (0, True)
    assert len(read_trace(out, load("campus"))) == 5
    for wrong, line in (
        (("import", "borg", files / "azure.csv", "--out", out), "format = 'borg': must be one of"),
        ((*arguments[:2], files / "no.csv", "--out", out), "cannot be read"),
        ((*arguments, "--most", "0"), "--most = 0: must be"),
        ((*arguments, "--rate", "-1"), "rate = -1: must be greater than 0"),
    ):
        code, _, err = cosmo(*wrong)
        assert (code, line in err) == (2, True), err


def test_the_example_is_what_its_script_writes(tmp_path):
    root = Path(__file__).parents[2] / "examples"
    shipped = root / "traces" / "serverless.parquet"
    assert shipped.stat().st_size <= 200_000
    spec = importlib.util.spec_from_file_location("make_trace", root / "make_trace.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    count = script.main(str(tmp_path / "again.parquet"))
    again, table = polars.read_parquet(tmp_path / "again.parquet"), polars.read_parquet(shipped)
    assert again.equals(table)
    assert count == len(read_trace(shipped, load("paper")))
