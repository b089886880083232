"""Names of files, and what a kill leaves."""

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmo.files import file_name, made_folder


@given(st.text())
def test_a_name_stays_in_its_folder(text):
    found = file_name(text)
    assert found
    assert os.path.basename(found) == found
    assert not found.startswith((".", "-"))
    assert len(found) <= 69


@given(st.lists(st.text(alphabet="aA1./- \\:", max_size=5), unique=True))
def test_different_names_are_different_files(names):
    assert len(set(map(file_name, names))) == len(names)


def test_plain_names_are_kept():
    assert [file_name(name) for name in ("paper", "v1.5", "shared-sn")] == [
        "paper",
        "v1.5",
        "shared-sn",
    ]


@pytest.mark.parametrize("name", ["success.pdf", "report.html", "failed.txt", "done.json", "a.npz"])
def test_what_a_killed_process_left_is_removed(tmp_path, name):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom cosmo.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half')\n    os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / name], check=False)
    [left] = tmp_path.iterdir()
    assert left.name.startswith(f".{name}.")
    (tmp_path / "kept.json").write_text("{}")
    made_folder(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]
