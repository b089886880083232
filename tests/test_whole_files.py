"""Names of files, and what a kill leaves."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cosmo import InputError
from cosmo.files import file_name, made_folder, only_run, temporary_folder
from slow import usual_signals


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


def test_one_run_at_a_time_in_a_folder(tmp_path):
    with only_run(tmp_path):
        with pytest.raises(InputError, match="another run is at work in it"), only_run(tmp_path):
            pass
        code = (
            "import sys\nfrom pathlib import Path\nfrom cosmo.files import only_run\n"
            "with only_run(Path(sys.argv[1])):\n    pass\n"
        )
        command = [sys.executable, "-c", code, tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another run is at work in it" in done.stderr
    assert subprocess.run(command, check=False).returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_holds_nothing(tmp_path):
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom cosmo.files import only_run\n"
        "with only_run(Path(sys.argv[1])):\n    os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == -9
    with only_run(tmp_path):
        pass


TERMINATED = """
import time
from pathlib import Path
from cosmo import interrupts
from cosmo.cli import main
from cosmo.files import whole_file, whole_folder

def at_work():
    with interrupts.marked(), whole_folder(Path("folder")), whole_file(Path("out.json")) as file:
        file.write_text("half")
        print("at work", flush=True)
        time.sleep(60)

main._run_command = at_work
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_ended_leaves_no_temporary_files(tmp_path, number):
    command = [sys.executable, "-c", TERMINATED]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with usual_signals(), subprocess.Popen(command, cwd=tmp_path, **pipes) as process:
        assert process.stdout.readline() == "at work\n"
        assert len(list(tmp_path.iterdir())) == 2
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, list(tmp_path.iterdir())) == (143, [])
    assert said == "cosmo: terminated, nothing was left half-written\n"


def test_the_temporary_folder_of_a_killed_process_is_removed_by_the_next_one(tmp_path, monkeypatch):
    code = (
        "import os, sys\nfrom cosmo.files import temporary_folder\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'inside').mkdir()\n    (folder / 'inside' / 'job').write_text('half')\n"
        "    print(folder, flush=True)\n    sys.stdin.readline()\n    os.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = tmp_path / "somebody-elses"
    others.mkdir()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, **pipes
    ) as process:
        theirs = Path(process.stdout.readline().strip())
        with temporary_folder() as mine:  # while it lives, its folder is its own
            assert {theirs, mine, others} == set(tmp_path.iterdir())
        process.stdin.write("\n")
    assert process.returncode == -9
    assert set(tmp_path.iterdir()) == {theirs, others}
    with temporary_folder() as mine:
        assert set(tmp_path.iterdir()) == {mine, others}
    assert set(tmp_path.iterdir()) == {others}


def test_a_link_that_looks_like_a_temporary_folder_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis").write_text("mine")
    with temporary_folder() as mine:
        named = mine.name.rpartition("-")[0]
    (tmp_path / "tmp" / f"{named}-link").symlink_to(tmp_path / "precious")
    with temporary_folder():
        assert (tmp_path / "precious" / "thesis").read_text() == "mine"
