"""Files of events: what is drawn, written, read and played again is the same."""

import numpy as np
import polars
import pytest

from cosmo import InputError, load, method, play
from cosmo.workload import episode, from_tasks, write_events
from cosmo.workload.event_files import EVENT_COLUMNS, read_events

WILD = [
    "en.count=2", "sn.count=3", "episode.window_ms=3000", "episode.warmup_ms=0",
    "workload.demand.spread=0.5", "background.rates=[20, 200]", "background.dwell_ms=[200, 100]",
    "en.speed={factors = [1.0, 0.5], dwell_ms = [300, 200]}",
    "sn.speed={factors = [1.2, 0.4], dwell_ms = [300, 200]}",
    "sn.outage={up_ms = 700, down_ms = 200}",
]  # fmt: skip
DRAWN = ("background.rates=[0, 0]", "en.speed", "sn.speed", "sn.outage")


def _same(first, second):
    for name in ("time_ms", "node", "what", "factor"):
        np.testing.assert_array_equal(getattr(first.events, name), getattr(second.events, name))
    for name in ("time_ms", "sn", "input_bytes", "cycles", "work_cycles"):
        theirs = getattr(first.background, name), getattr(second.background, name)
        np.testing.assert_array_equal(*theirs)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_what_was_drawn_is_read_back_bit_for_bit_and_plays_the_same(suffix, tmp_path):
    scenario = load("paper", WILD)
    drawn = episode(scenario, 5, 2)
    assert {0, 1, 2} == set(drawn.events.what.tolist())
    path = tmp_path / f"events.{suffix}"
    write_events(path, drawn, 2)
    calm = [setting for setting in WILD if not setting.startswith(DRAWN)]
    given = load("paper", [*calm, f'workload.events="{path}"'])
    read = from_tasks(given, drawn.tasks, 99, 7)  # other seeds: nothing is drawn any more
    _same(drawn, read)
    assert read.expires  # as SNs fail in it
    [one] = play(scenario, method("back-off"), [drawn])
    [two] = play(given, method("back-off"), [read])
    np.testing.assert_array_equal(one.finished_ms, two.finished_ms)
    np.testing.assert_array_equal(one.heard(), two.heard())


def test_every_episode_gets_the_events_of_the_file(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("time_ms,event,node,factor\n5,speed,sn:0,0.5\n")
    scenario = load("paper", [f'workload.events="{path}"', "background.rates=[300, 300]"])
    for seed, number in ((0, 0), (3, 4)):
        made = episode(scenario, seed, number)
        assert made.events.factor.tolist() == [0.5]
        assert len(made.background) == 0
        assert not made.expires
    path.write_text("time_ms,event,node,factor\n5,speed,sn:0,0.25\n5.5,down,sn:0,\n")
    assert episode(scenario, 0, 0).events.factor[0] == 0.25  # a changed file is read again


def test_cells_that_an_event_does_not_need_are_not_read(tmp_path):
    path = tmp_path / "events.csv"
    rows = ["0,down,sn:1,nonsense,,,", "1,up,sn:1,0,-3,,", "1,task,sn:0,,100,5e4,"]
    path.write_text("\n".join([",".join(EVENT_COLUMNS), *rows]))
    found = read_events(path, 1, 2)
    assert found.nodes.node.tolist() == [2, 2]
    assert found.tenants.as_declared
    assert found.tenants.cycles.tolist() == [5e4]
    path.write_text("\n".join([",".join(EVENT_COLUMNS), *rows, "2,task,sn:1,,100,5e4,7e4"]))
    found = read_events(path, 1, 2)
    assert found.tenants.work_cycles.tolist() == [5e4, 7e4]


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ("-1,down,sn:0,,,,", "line 3: time_ms = '-1': must be 0 or greater, up to 1e+09"),
        ("2,down,sn:0,,,,", "line 3: time_ms = '2': must not be less than in the row before"),
        ("x,down,sn:0,,,,", "line 3: time_ms = 'x': must be a number"),
        ("nan,down,sn:0,,,,", "line 3: time_ms = 'nan': must be 0 or greater, up to 1e+09"),
        ("9,fail,sn:0,,,,", "line 3: event = 'fail': must be speed, down, up or task"),
        ("9,down,sn:2,,,,", "line 3: node = 'sn:2': must be from sn:0 to sn:1"),
        ("9,down,SN0,,,,", "line 3: node = 'SN0': must look like en:0 or sn:1"),
        ("9,down,en:0,,,,", "line 3: node = 'en:0': must be an SN (ENs never fail, and have no"),
        ("9,task,en:0,,1,1,", "line 3: node = 'en:0': must be an SN"),
        ("9,up,sn:0,,,,", "line 3: event = 'up': sn:0 is up already"),
        ("9,down,sn:1,,,,", "line 3: event = 'down': sn:1 is down already"),
        ("9,speed,en:0,0,,,", "line 3: factor = '0': must be greater than 0, up to"),
        ("9,speed,en:0,,,,", "line 3: factor = '': must be a number"),
        ("9,task,sn:0,,0,1,", "line 3: input_bytes = '0': must be greater than 0"),
        ("9,task,sn:0,,1,inf,", "line 3: cycles = 'inf': must be greater than 0"),
        ("9,task,sn:0,,1,1,-1", "line 3: true_cycles = '-1': must be greater than 0"),
        ("9,task,sn:0", "line 3: 3 values, must be 7 as in the header"),
    ],
)
def test_a_bad_row_is_refused_in_one_line(row, wrong, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(f"{','.join(EVENT_COLUMNS)}\n3,down,sn:1,,,,\n{row}\n")
    with pytest.raises(InputError) as error:
        read_events(path, 1, 2)
    assert wrong in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "x.txt", "bad.parquet", "short.csv"])
def test_a_file_that_is_none_is_refused_in_one_line(name, tmp_path):
    (tmp_path / "x.txt").write_text("")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "short.csv").write_text("time_ms,node\n")
    with pytest.raises(InputError, match=rf"{name}.*"):
        episode(load("paper", [f'workload.events="{tmp_path / name}"']), 0, 0)


def test_a_parquet_row_is_named_by_its_number(tmp_path):
    path = tmp_path / "events.parquet"
    rows = {"time_ms": [0.0, 1.0], "event": ["down", "up"], "node": ["sn:0", None]}
    polars.DataFrame(rows).write_parquet(path)
    with pytest.raises(InputError, match="row 2: node = missing: must look like en:0 or sn:1"):
        read_events(path, 1, 1)
