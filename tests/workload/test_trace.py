"""Trace files in and out."""

import numpy as np
import polars
import pytest

from cosmo import InputError, load
from cosmo.tables import write_table
from cosmo.workload import episode, read_trace, unread_columns, write_trace

HEADER = "time_ms,ue,input_bytes,cycles,deadline_ms\n"
ROW = "1.5,0,20000,100000,60\n"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("preset", ["paper", "campus"])
def test_a_written_trace_reads_back_to_the_last_bit(preset, suffix, tmp_path):
    scenario = load(preset)
    tasks = episode(scenario, 3, 1).tasks
    path = tmp_path / f"trace.{suffix}"
    write_trace(path, tasks, scenario.en.count)
    back = read_trace(path, scenario)
    for name in ("time_ms", "en", "ue", "input_bytes", "cycles", "deadline_ms"):
        np.testing.assert_array_equal(getattr(back, name), getattr(tasks, name))
    assert list(tmp_path.iterdir()) == [path]
    assert back.as_declared


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_true_cycles_travel_in_a_column_of_their_own(suffix, tmp_path):
    """R35; the column wins over a spread."""
    scenario = load("paper", ["workload.demand.spread=1.0"])
    tasks = episode(scenario, 3, 1).tasks
    path = tmp_path / f"trace.{suffix}"
    write_trace(path, tasks, 1)
    back = read_trace(path, scenario)
    np.testing.assert_array_equal(back.true_cycles, tasks.true_cycles)
    played = load("paper", ["workload.demand.spread=2.0", f'workload.trace="{path}"'])
    np.testing.assert_array_equal(episode(played, 0, 0).tasks.true_cycles, tasks.true_cycles)
    # Blocks that are resampled keep what belongs together.
    other = episode(played, 1, 0).tasks
    factors = tasks.true_cycles / tasks.cycles
    assert np.isin(other.true_cycles / other.cycles, factors).all()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_are_not_read_are_named(suffix, tmp_path):
    path = tmp_path / f"trace.{suffix}"
    columns = {name: [1.0] for name in HEADER.strip().split(",")}
    table = polars.DataFrame({**columns, "true_cycles": [2.0], "en": [0], "note": ["a"]})
    write_table(path, table)
    assert unread_columns(path, load("paper")) == ["en", "note"]
    assert unread_columns(path, load("campus")) == ["note"]
    assert unread_columns(tmp_path / f"none.{suffix}", load("paper")) == []


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_are_separators_where_the_header_has_no_comma(separator, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("\n" + (HEADER + ROW).replace(",", separator))
    assert read_trace(path, load("paper")).input_bytes.tolist() == [20_000.0]
    assert unread_columns(path, load("campus")) == []


def test_column_order_extra_columns_blank_lines_and_a_byte_order_mark_do_not_matter(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(
        "\ufeffue,deadline_ms,note,cycles,input_bytes,time_ms\n1,60,a,5,7,3\n\n2,61,b,6,8,4\n"
    )
    tasks = read_trace(path, load("paper"))
    np.testing.assert_array_equal(tasks.time_ms, [3.0, 4.0])
    np.testing.assert_array_equal(tasks.ue, [1, 2])
    np.testing.assert_array_equal(tasks.cycles, [5.0, 6.0])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (HEADER + ROW + "2,x,1,1,1\n", "line 3: ue = 'x': must be a number"),
        (
            HEADER + ROW + "2,4,1,1,1\n",
            "line 3: ue = 4: must be a whole number from 0 to 3 (ue.count = 4)",
        ),
        (HEADER + ROW + "2,0.5,1,1,1\n", "line 3: ue = 0.5: must be a whole number from 0 to 3"),
        (HEADER + ROW + "1,0,1,1,1\n", "line 3: time_ms = 1: must not be less than in the row"),
        (HEADER + ROW + "\n2,0,0,1,1\n", "line 4: input_bytes = 0: must be greater than 0"),
        (HEADER + ROW + "2,0,1,-1,1\n", "line 3: cycles = -1: must be greater than 0"),
        (HEADER + ROW + "2,0,1,1,inf\n", "line 3: deadline_ms = inf: must be a finite number"),
        (HEADER + ROW + "2,0,1,1,nan\n", "line 3: deadline_ms = nan: must be a finite number"),
        (HEADER + ROW + "2,0,1,1\n", "line 3: 4 values, must be 5 as in the header"),
        (HEADER + "-1,0,1,1,1\n" + ROW, "line 2: time_ms = -1: must be 0 or greater"),
        (
            HEADER.replace("\n", ",true_cycles\n") + "2,0,1,1,1,0\n",
            "line 2: true_cycles = 0: must be greater than 0",
        ),
        ("time_ms,ue\n1,2\n", "column input_bytes is missing"),
        ("", "column time_ms is missing"),
        ("time_ms,ue,input_bytes,cycles,deadline_ms\n", "has no tasks"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_the_reason(text, reason, tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_trace(path, load("paper"))
    assert reason in str(caught.value)


def test_a_bad_row_of_parquet_is_named_too(tmp_path):
    path = tmp_path / "trace.parquet"
    columns = {"time_ms": [1.0, 2.0], "ue": [0, 9], "input_bytes": [1, 1], "cycles": [1, 1]}
    polars.DataFrame({**columns, "deadline_ms": [5.0, 5.0]}).write_parquet(path)
    with pytest.raises(InputError, match="row 2: ue = 9"):
        read_trace(path, load("paper"))
    polars.DataFrame({**columns, "deadline_ms": [5.0, None]}).write_parquet(path)
    with pytest.raises(InputError, match="row 2: deadline_ms = nan: must be a finite number"):
        read_trace(path, load("paper"))
    polars.DataFrame({**columns, "deadline_ms": ["a", "b"]}).write_parquet(path)
    with pytest.raises(InputError, match="row 1: deadline_ms = 'a': must be a number"):
        read_trace(path, load("paper"))


def test_several_ens_need_their_column(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER + ROW)
    with pytest.raises(InputError, match="column en is missing"):
        read_trace(path, load("campus"))


def test_unreadable_files(tmp_path):
    (tmp_path / "not.parquet").write_text("hello")
    (tmp_path / "not.csv").write_bytes(b"\xff\xfe\x00")
    for name, reason in (
        ("none.csv", "No such file"),
        ("none.parquet", "cannot be read"),
        ("not.parquet", "not a Parquet file"),
        ("not.csv", "not a text file"),
        ("trace.txt", "must end in .csv or .parquet"),
    ):
        with pytest.raises(InputError, match=reason):
            read_trace(tmp_path / name, load("paper"))


def test_an_en_that_does_not_exist_is_refused(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(HEADER.strip() + ",en\n" + ROW.strip() + ",2\n" + ROW.strip() + ",3\n")
    with pytest.raises(InputError, match="line 3: en = 3: must be a whole number from 0 to 2"):
        read_trace(path, load("campus"))


def test_a_panic_in_a_parquet_file_is_one_line(tmp_path, monkeypatch):
    """What Polars raises at some flipped bits is no Exception."""

    def panic(file):
        raise polars.exceptions.PanicException("index out of bounds\nat thrift.rs")

    path = tmp_path / "trace.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(polars, "read_parquet", panic)
    with pytest.raises(InputError, match=r"not a Parquet file \(index out of bounds\)$"):
        read_trace(path, load("paper"))
