"""Decision logs of several ENs as one trace of their site."""

import time

import pytest

from cosmo import InputError, load
from cosmo.live.decisions import COLUMNS, DecisionLog
from cosmo.live.tasks import Fate, Item
from cosmo.workload import read_trace
from cosmo.workload.decision_logs import merged_decisions


def _row(time_ms, epoch_ms, action=0, fate="DONE", ue=0):
    row = dict.fromkeys(COLUMNS, "") | {
        "time_ms": time_ms, "ue": ue, "input_bytes": 30000, "cycles": 500000, "deadline_ms": 120,
        "decided_ms": time_ms, "action": action, "fate": fate, "ended_ms": time_ms, "rerun": 0,
        "epoch_ms": epoch_ms,
    }  # fmt: skip
    return ",".join(str(row[name]) for name in COLUMNS)


def _write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([",".join(COLUMNS), *rows]) + "\n")


def test_logs_of_several_ens_and_starts_are_one_trace(tmp_path):
    nodes = tmp_path / "nodes"
    _write(nodes / "east" / "decisions.csv", _row(0, 5000), _row(10, 5010, ue=3))
    _write(nodes / "east" / "decisions-1.csv", _row(0, 7000))
    _write(nodes / "west" / "decisions.csv", _row(0, 5005))
    found = merged_decisions(nodes, load("campus"))
    assert found.tasks.time_ms.tolist() == [0.0, 5.0, 10.0, 2000.0]
    assert found.tasks.en.tolist() == [0, 1, 0, 0]
    assert found.tasks.ue.tolist() == [0, 0, 3, 0]
    assert found.notes == ["3 log(s): east is EN 0, west is EN 1"]
    _write(nodes / "south.csv", _row(0, 1))
    _write(nodes / "south-1.csv", _row(0, 2))
    assert (
        merged_decisions(nodes, load("campus")).notes[0].startswith("5 log(s): east is EN 0, south")
    )
    with pytest.raises(InputError, match=r"logs of 3 ENs .* 'paper' has 1; name their site"):
        merged_decisions(nodes, load("paper"))


def test_a_log_is_not_played_on_a_site_that_it_cannot_be_from(tmp_path, cosmo):
    log = tmp_path / "decisions.csv"
    _write(log, _row(0, 5000, action=2), _row(1, 5001, action=3, fate="REJECTED"))
    said = "is a decision log of an EN with 2 SN(s), an EN of the scenario reaches 1; name the site"
    code, _, err = cosmo("simulate", "--method", "self-tracking", "--trace", log)
    assert code == 2
    assert said in err
    with pytest.raises(InputError, match="decision log of an EN with 2 SN"):
        merged_decisions(log, load("paper"))
    _write(log, _row(0, 5000, action=1), _row(1, 5001, action=2, fate="REJECTED"))
    assert len(read_trace(log, load("paper"))) == 2


def test_rows_are_written_after_seconds_without_a_full_file(tmp_path):
    log = DecisionLog(str(tmp_path / "decisions.csv"), 100_000, pytest.fail, seconds=0.05)
    before = 1000.0 * time.time()
    log.add(Item(0, 7.0, 50.0, 10.0, 20.0), Fate.DONE, 9.0)
    deadline = time.monotonic() + 60.0
    while not (tmp_path / "decisions.csv").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    rows = (tmp_path / "decisions.csv").read_text().splitlines()
    assert len(rows) == 2
    epoch = float(rows[1].split(",")[COLUMNS.index("epoch_ms")])
    assert before - 10.0 <= epoch <= 1000.0 * time.time()
    log.close()
    assert [each.name for each in tmp_path.iterdir()] == ["decisions.csv"]
