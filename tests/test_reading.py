"""Only regular files of a sensible size are read, whatever the kind; else one line says why."""

import os
import signal
from pathlib import Path

import pytest

from cosmo import InputError, files, load
from cosmo.arrays import read_arrays
from cosmo.files import read_bytes, read_record, write_record
from cosmo.live.config import load_config
from cosmo.report.decision_log import read_decisions
from cosmo.report.recording import read_recording
from cosmo.study.checks import damage, write_done
from cosmo.study.plan_files import load_plan
from cosmo.workload.public import FORMATS
from cosmo.workload.trace import read_trace, unread_columns

PAPER = load("paper")


def _extending(read):
    """Reads a document that extends the file."""

    def read_both(path):
        document = path.with_name("own.toml")
        document.write_text(f'extends = "{path}"\n')
        return read(document)

    return read_both


KINDS = {
    "scenario": ("s.toml", load, files.MOST_DOCUMENT),
    "extended scenario": ("s", _extending(load), files.MOST_DOCUMENT),
    "extended plan": ("p.toml", _extending(load_plan), files.MOST_DOCUMENT),
    "extended daemon": ("d.toml", _extending(load_config), files.MOST_DOCUMENT),
    "record": (
        "training.json",
        lambda path: read_record(path, "absent", "cosmo train", 1),
        files.MOST_RECORD,
    ),
    "recording": ("e.json", read_recording, files.MOST_RECORD),
    "CSV trace": ("t.csv", lambda path: read_trace(path, PAPER), files.MOST_CSV),
    "Parquet trace": ("t.parquet", lambda path: read_trace(path, PAPER), files.MOST_TABLE),
    "public trace": ("a.csv", FORMATS["alibaba-batch-2018"], files.MOST_TABLE),
    "CSV log": ("l.csv", read_decisions, files.MOST_CSV),
    "Parquet log": ("l.parquet", read_decisions, files.MOST_TABLE),
    "arrays": ("a.npz", read_arrays, files.MOST_ARRAYS),
}


@pytest.fixture(autouse=True)
def _not_for_ever():
    """Who reads a device or waits for a pipe is stopped before the memory is full."""
    signal.alarm(5)
    yield
    signal.alarm(0)


def _sparse(path, most_bytes):
    path.touch()
    os.truncate(path, most_bytes + 1)


MAKE = {
    "a device": (lambda path, most: path.symlink_to("/dev/zero"), "not a regular file"),
    "a pipe": (lambda path, most: os.mkfifo(path), "not a regular file"),
    "a folder": (lambda path, most: path.mkdir(), "directory"),
    "too large": (_sparse, "larger than "),
}


@pytest.mark.parametrize("made", MAKE)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_its_kind_is_refused_in_one_line(monkeypatch, tmp_path, kind, made):
    monkeypatch.chdir(tmp_path)
    name, read, most_bytes = KINDS[kind]
    make, why = MAKE[made]
    make(Path(name), most_bytes)
    with pytest.raises(InputError) as refused:
        read(Path(name))
    assert why in str(refused.value)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_grows_or_hides_its_size_is_read_up_to_the_limit(tmp_path):
    assert read_bytes(os.path.join("/proc", "self", "status"), 10**6)  # says that it has 0 bytes
    with pytest.raises(OSError, match="larger than 0 MB"):
        read_bytes(os.path.join("/proc", "self", "status"), 10)
    (tmp_path / "whole").write_bytes(b"12345")
    assert read_bytes(tmp_path / "whole", 5) == b"12345"
    with pytest.raises(OSError, match="larger than"):
        read_bytes(tmp_path / "whole", 4)


@pytest.mark.parametrize("made", MAKE)
def test_a_table_of_a_study_that_is_no_file_is_damage_in_one_line(tmp_path, made):
    name = "metrics.parquet"
    (tmp_path / name).write_bytes(b"a table")
    write_done(tmp_path, {})
    assert damage(tmp_path) == ""
    (tmp_path / name).unlink()
    make, why = MAKE[made]
    make(tmp_path / name, files.MOST_ARRAYS)
    told = damage(tmp_path)
    assert why.lower() in told.lower()
    assert name in told
    assert "\n" not in told


def test_a_file_elsewhere_that_a_study_names_is_not_read_for_ever(tmp_path):
    (tmp_path / "metrics.parquet").write_bytes(b"a table")
    told = {"metrics.parquet": "0" * 64, "../../../../../../../../../../dev/zero": "0" * 64}
    write_record(tmp_path / "done.json", {"format": 1, "written": told})
    assert "metrics.parquet" in damage(tmp_path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("made", MAKE)
def test_columns_are_not_looked_for_in_what_is_no_file(tmp_path, suffix, made):
    path = tmp_path / f"trace{suffix}"
    MAKE[made][0](path, files.MOST_TABLE)
    assert unread_columns(path, PAPER) == []
