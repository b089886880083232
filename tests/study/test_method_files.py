"""All that a method is made of is in the name of its unit."""

import polars
import pytest
from small import small_plan

from cosmo import load as load_scenario
from cosmo.study import LocalExecutor, conduct, load_study
from cosmo.study.method_files import beside, digests, named
from cosmo.study.units import PlayUnit


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Files of all kinds, in the folder that one stands in."""
    files = (
        "pol.onnx", "pol.onnx.data", "other.onnx", "model.zip", "mine.py", "table.csv",
        "kept/training.json", "kept/agents.npz", "kept/state.npz", "data/a.txt", "data/deep/b.txt",
        "aoi-threshold", "odd:name.onnx",
    )  # fmt: skip
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("first")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _unit(spec):
    return PlayUnit(load_scenario(), "poisson", (120.0,), spec, (0,), 1).name


@pytest.mark.parametrize(
    ("spec", "files"),
    [
        ("onnx:pol.onnx", ["pol.onnx", "pol.onnx.data"]),
        ("onnx:odd:name.onnx", ["odd:name.onnx"]),
        ("onnx:pol.onnx,updater=other.onnx", ["pol.onnx", "other.onnx"]),
        ("onnx:pol.onnx,updater=cosmo:checkpoint=kept", ["kept/agents.npz"]),
        ("onnx:pol.onnx, updater = mine.py:X", ["mine.py"]),
        ("sb3:model.zip,algorithm=PPO,updater=aov-gap", ["model.zip"]),
        ("mine.py:X", ["mine.py"]),
        ("mine.py:X:rows=3,table=table.csv", ["mine.py", "table.csv"]),
        ("mine.py:X:models=data", ["data/a.txt", "data/deep/b.txt"]),
        ("cosmo:checkpoint=kept,run=3", ["kept/training.json", "kept/agents.npz"]),
        ("cosmo-next:checkpoint=kept", ["kept/training.json", "kept/agents.npz"]),
    ],
)
def test_another_content_is_another_unit(folder, spec, files):
    for name in files:
        before = _unit(spec)
        assert _unit(spec) == before
        (folder / name).write_text("second")
        assert _unit(spec) != before, name


def test_what_a_method_is_not_made_of_changes_nothing(folder):
    specs = ("cosmo:checkpoint=kept", "onnx:pol.onnx,updater=aoi-threshold", "all-local")
    before = [_unit(spec) for spec in specs]
    for name in ("kept/state.npz", "aoi-threshold", "other.onnx"):
        (folder / name).write_text("second")
    assert [_unit(spec) for spec in specs] == before
    assert digests("periodic:interval_ms=37") == []


def test_a_file_need_not_be_there_to_be_named():
    assert named("onnx:a.onnx,updater=b.onnx") == ["a.onnx", "b.onnx"]
    assert digests("onnx:a.onnx,updater=b.onnx") == []


def test_files_beside_a_plan_are_found(folder, monkeypatch):
    near = folder / "kept"
    (near / "pol.onnx").write_text("")
    (near / "inner").mkdir()
    (near / "inner" / "training.json").write_text("{}")
    assert beside("onnx:pol.onnx,updater=sn.onnx", near) == (
        f"onnx:{near / 'pol.onnx'},updater=sn.onnx"
    )
    assert beside("cosmo:checkpoint=inner,run=3", near) == (
        f"cosmo:checkpoint={near / 'inner'},run=3"
    )
    assert beside("aoi-threshold:age_ms=3", near) == "aoi-threshold:age_ms=3"


_READER = """
from pathlib import Path
import numpy as np
from cosmo import Dispatcher, Method
class Reader(Method, Dispatcher):
    'Does what a file says.'
    def __init__(self, file: Path):
        self._action = int(file.read_text())
    def dispatcher(self, setting):
        return self
    def decide(self, tasks):
        return np.full(len(tasks), self._action)
"""


def test_a_study_plays_a_policy_again_whose_file_has_changed(folder):
    (folder / "reader.py").write_text(_READER)
    spec = f"{folder / 'reader.py'}:Reader:file={folder / 'action.txt'}"
    found = []
    for action in ("0", "1"):
        (folder / "action.txt").write_text(action)
        plan = small_plan((spec, "all-local", "all-offload"))
        assert not conduct(plan, folder / "study", LocalExecutor()).failed
        rows = load_study(folder / "study").metrics
        reader = rows.filter(polars.col("method") == spec)["success_rate"].to_list()
        local, offload = (
            rows.filter(method=name)["success_rate"].to_list()
            for name in ("all-local", "all-offload")
        )
        found.append((reader == local, reader == offload))
    assert found == [(True, False), (False, True)]
