"""Texts with markup, streams that are full, closed or ASCII, and numbers that JSON has not."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cosmo import InputError
from cosmo.cli import console, streams
from cosmo.cli.documents import metrics_document
from cosmo.measure import Interval

ODD = "[/home/me] [bold]b[/bold] :x: [link=https://x]y[/link]"


def test_markup_in_a_cause_is_text(cosmo, tmp_path):
    plan, mine = tmp_path / "plan.toml", tmp_path / "mine.py"
    mine.write_text(
        "from cosmo import Method\n"
        "class Mine(Method):\n    '''Mine.'''\n"
        f"    def dispatcher(self, setting):\n        raise ValueError({ODD!r})\n"
    )
    plan.write_text(
        f'name = "{ODD}"\nsettings = ["episode.window_ms=1500", "episode.warmup_ms=300"]\n'
        'arrivals = ["poisson"]\nrates = [320.0]\nseeds = [0]\nepisodes = 1\n'
        f'[[compare]]\nmethods = ["{mine}:Mine"]\n'
    )
    code, _, err = cosmo("study", "run", plan, "--out", tmp_path / "out", "--trust")
    assert code == 1
    assert ODD in err
    assert f"{ODD}: 0 of 1 units finished" in err
    code, out, _ = cosmo("study", "status", tmp_path / "out")
    assert code == 0
    assert out.count(ODD) == 2


def test_markup_in_a_table_is_text(capsys, monkeypatch):
    from rich.table import Table

    monkeypatch.setenv("COLUMNS", "200")
    table = Table(ODD, title=ODD, min_width=100)
    table.add_row(ODD)
    console.show(table)
    assert capsys.readouterr().out.count(ODD) == 3


def test_json_has_no_infinities(capsys):
    console.print_json({"a": [float("inf"), float("-inf"), float("nan"), 1.5], "b": (True, None)})
    assert json.loads(capsys.readouterr().out) == {"a": [None, None, None, 1.5], "b": [True, None]}
    console.print_json(metrics_document({"x": Interval(float("-inf"), float("nan"))}))
    assert json.loads(capsys.readouterr().out) == {"x": {"mean": None, "ci95": None}}


def _cosmo(*arguments, shell="", **options):
    """Run a command, by a shell that does something first if there is anything to do."""
    command = [sys.executable, "-m", "cosmo", *map(str, arguments)]
    if shell:
        command = ["sh", "-c", f'{shell} exec "$@"', "sh", *command]
    return subprocess.run(command, stderr=subprocess.PIPE, check=False, **options)


@pytest.mark.parametrize(
    "arguments",
    [("scenario", "show", "paper"), ("methods",), ("methods", "--json"), ("--version",)],
)
def test_a_full_disk_behind_the_output_is_one_line(arguments):
    with open("/dev/full", "wb") as full:
        done = _cosmo(*arguments, stdout=full)
    assert done.returncode == 2
    assert done.stderr == b"cosmo: output: cannot be read or written (No space left on device)\n"


def test_a_reader_who_has_left_is_no_error_to_talk_about():
    reading, writing = os.pipe()
    os.close(reading)
    done = _cosmo("scenario", "show", "paper", stdout=writing)
    os.close(writing)
    assert done.returncode != 0
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments", [("scenario", "show", "paper"), ("methods", "--json"), ("--version",), ("--help",)]
)
def test_an_output_that_was_closed_is_one_line(arguments):
    done = _cosmo(*arguments, shell="exec >&-;")
    assert done.returncode == 2
    assert done.stderr == b"cosmo: output: cannot be read or written (Bad file descriptor)\n"


def test_no_file_takes_the_number_of_a_stream_that_was_closed(tmp_path):
    arguments = ("workload", "--set", "episode.window_ms=2500", "--out", tmp_path / "w.csv")
    assert _cosmo(*arguments, shell="exec <&- >&- 2>&-;").returncode == 0
    lines = (tmp_path / "w.csv").read_text().splitlines()
    assert lines[0] == "time_ms,ue,input_bytes,cycles,deadline_ms"
    assert {line.count(",") for line in lines} == {4}


@pytest.mark.parametrize("columns", ["0", "1", "999999999", "9" * 400])
def test_a_terminal_of_a_width_that_nobody_has_shows_all_methods(columns):
    env = {**os.environ, "COLUMNS": columns}
    for arguments in (("methods",), ("--help",)):
        done = _cosmo(*arguments, stdout=subprocess.PIPE, env=env)
        assert done.returncode == 0
        assert len(done.stdout) < 200_000
        assert (b"all-local" if arguments == ("methods",) else b"simulate") in done.stdout


def test_a_folder_that_is_gone_is_one_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = _cosmo(
        *("workload", "--set", "episode.window_ms=2500", "--out", "w.csv"),
        shell='rmdir "$PWD";',
        cwd=gone,
    )
    assert done.returncode == 2
    assert done.stderr == b"cosmo: the folder that this was called in is gone\n"


def test_ascii_streams_are_no_obstacle(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('extends = "paper"\nname = "µ–𝛼"\n', encoding="utf-8")
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = _cosmo("scenario", "show", path, stdout=subprocess.PIPE, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert tomllib.loads(done.stdout.decode())["name"] == "µ–𝛼"  # TOML is UTF-8
    arguments = ("simulate", "-s", path, "-m", "all-local", "--set", "episode.window_ms=2500")
    done = _cosmo(*arguments, stdout=subprocess.PIPE, env=env)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode("ascii")
    assert "\\u00b5\\u2013\\U0001d6fc" in text
    assert "\\u00b1 95 %" in text


@pytest.mark.parametrize("module", ["numpy", "numba", "typer", "polars", "pydantic"])
def test_an_interrupt_during_the_imports_is_one_line(tmp_path, module):
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt")
    paths = [str(tmp_path), *filter(None, sys.path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = _cosmo("methods", stdout=subprocess.PIPE, env=env)
    assert (done.returncode, done.stdout) == (130, b"")
    assert done.stderr == b"cosmo: interrupted, nothing was left half-written\n"


def test_the_package_has_what_it_says():
    import cosmo

    assert set(cosmo.__all__) <= set(dir(cosmo))
    assert [name for name in cosmo.__all__ if not hasattr(cosmo, name)] == []
    # For type checkers and editors the same names are imported from the same homes.
    text = Path(cosmo.__file__).read_text()
    [block] = [each for each in ast.parse(text).body if isinstance(each, ast.If)]
    told = [(each.module, name.name, name.asname) for each in block.body for name in each.names]
    homes = [(home, name, name) for home, names in cosmo._HOMES.items() for name in names]
    assert sorted(told) == sorted(homes)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        cosmo.nothing  # noqa: B018


def test_a_message_is_one_line():
    assert streams.one_line("a\nb\x1b[31m – ü") == "a\\u000ab\\u001b[31m – ü"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError, "cosmo: this takes more memory than there is; make it shorter or smaller\n"),
        (InputError("x" * 5000), f"cosmo: {'x' * 500} … {'x' * 500}\n"),
    ],
)
def test_a_line_has_an_end(cosmo, monkeypatch, error, line):
    def fail(app):
        raise error

    monkeypatch.setattr("cosmo.cli.running.carried_out", fail)
    assert cosmo("methods") == (2, "", line)
