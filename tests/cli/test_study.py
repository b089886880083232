"""`cosmo study`, `cosmo report` and `cosmo run` as a user types them."""

import json
import re
from pathlib import Path

import polars
import pytest

from cosmo import study
from cosmo.control import BASELINES

PLAN = """
name = "mine"
settings = ["episode.window_ms=1500", "episode.warmup_ms=300"]
arrivals = ["poisson"]
rates = [320.0]
seeds = [0, 1]
episodes = 1
[[compare]]
methods = ["all-local", "aov-gap"]
"""


def test_run_status_report(cosmo, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "out"
    plan.write_text(PLAN.replace("[0, 1]", "[7]"))
    code, stdout, err = cosmo("study", "run", plan, "--out", out, "--runs", "2")
    assert code == 0, err
    assert set(polars.read_parquet(out / "metrics.parquet")["seed"]) == {0, 1}
    assert "aov-gap" in stdout
    assert re.search(r">\s+all-local", stdout)  # the focus: the first, as none learns
    told = " ".join(stdout.split())
    assert "2 episodes are too few to say which of them is better" in told
    assert "mine: 2 of 2 units finished" in err
    code, stdout, _ = cosmo("study", "status", out, "--json")
    assert json.loads(stdout) == {
        "plan": "mine",
        "units": 2,
        "finished": 2,
        "left": [],
        "failed": {},
        "damaged": {},
    }
    code, stdout, _ = cosmo("study", "status", out)
    assert "2 of 2 units finished, 100% of the work" in stdout
    before = (out / "metrics.parquet").read_bytes()
    again = cosmo("study", "run", plan, "--out", out, "--runs", "2")
    assert again[0] == 0  # nothing left to do
    assert (out / "metrics.parquet").read_bytes() == before
    code, _, err = cosmo("report", out)
    assert code == 0
    page = out / "report" / "report.html"
    assert f"open {page}" in err
    assert page.stat().st_size > 1e6
    code, _, err = cosmo("study", "run", "baselines", "--out", out)
    assert code == 2
    assert "has a study with another" in err


def test_a_failing_unit_ends_with_exit_code_1_and_its_cause(cosmo, tmp_path):
    plan, mine = tmp_path / "plan.toml", tmp_path / "mine.py"
    mine.write_text(
        "from cosmo import Method\n"
        "class Mine(Method):\n    '''Mine.'''\n"
        "    def dispatcher(self, site):\n        raise ValueError('not today')\n"
    )
    plan.write_text(PLAN.replace('"aov-gap"', f'"{mine}:Mine"'))
    code, _, err = cosmo("study", "run", plan, "--out", tmp_path / "out", "--trust")
    assert code == 1
    assert "not today" in err
    assert "1 of 2 units finished" in err


@pytest.mark.parametrize(
    "spec",
    ["evil.py:X", "onnx:a.onnx,updater=evil.py:X", "sb3:evil", "onnx:a.onnx, updater = sb3:evil"],
)
def test_files_of_a_plan_run_only_when_it_is_trusted(cosmo, tmp_path, monkeypatch, spec):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (tmp_path / "evil").write_text("a pickle")
    (tmp_path / "a.onnx").write_text("")
    (tmp_path / "strange.toml").write_text(PLAN.replace("aov-gap", spec))
    code, stdout, err = cosmo("study", "show", "strange.toml")
    assert code == 0
    assert spec in stdout
    code, _, err = cosmo("study", "run", "strange.toml", "--out", "out")
    assert (code, err.count("\n")) == (2, 1)
    assert "runs code from a file; add --trust" in err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.onnx", "evil", "evil.py", "strange.toml"
    ]  # fmt: skip


def test_files_run_when_they_are_trusted_or_named_by_the_user(cosmo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "near").mkdir()
    (tmp_path / "near" / "mine.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    (tmp_path / "near" / "plan.toml").write_text(PLAN.replace("aov-gap", "mine.py:X"))
    (tmp_path / "near" / "other.toml").write_text(PLAN)
    named = ("near/other.toml", "--set", 'compare=[{methods=["mine.py:X"]}]')
    for arguments in (("near/plan.toml", "--trust"), named):
        code, _, err = cosmo("study", "run", *arguments, "--out", "out")
        assert code == 2
        assert "no such Method" in err  # it was run, and has none
        (tmp_path / "ran").unlink()


def test_list_and_show(cosmo, tmp_path):
    code, stdout, _ = cosmo("study", "list", "--json")
    assert code == 0
    presets = Path(study.__file__).parent / "presets"
    others = sorted(file.stem for file in presets.glob("*.toml") if file.stem != "paper")
    assert [row["plan"] for row in json.loads(stdout)] == ["paper", *others]
    assert "paper-quick" in others
    code, stdout, _ = cosmo("study", "show", "paper-quick")
    assert code == 0
    copy = tmp_path / "copy.toml"
    copy.write_text(stdout)
    code, again, _ = cosmo("study", "show", copy)
    assert again == stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nothing"], "plan = 'nothing': no such preset or file"),
        (["baselines", "--set", "episodes=0"], "episodes = 0: must be"),
        (["baselines", "--workers", "0"], "--workers = 0: must be 1 or greater"),
        (["baselines", "--runs", "0"], "--runs = 0: must be 1 or greater"),
        (["baselines", "--executor", "slurm"], "--executor = 'slurm': must be local or ray"),
        (["baselines", "--address", "x:1"], "--address: only with --executor ray"),
        (["baselines", "--engine", "omnet"], "engines.0 = 'omnet': must be 'embedded', 'ns3' or"),
        (["baselines", "--engine", 'a"b\\'], "engines.0 = 'a\"b"),
    ],
)
def test_bad_input_is_one_line(cosmo, tmp_path, arguments, line):
    code, out, err = cosmo("study", "run", "--out", tmp_path / "out", *arguments)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_report_of_nothing_is_one_line(cosmo, tmp_path):
    code, _, err = cosmo("report", tmp_path)
    assert code == 2
    assert "there is no study" in err


def test_run_trains_compares_and_reports(cosmo, tmp_path):
    out = tmp_path / "out"
    code, stdout, err = cosmo(
        "run", "--out", out, "--arrivals", "poisson", "--rate", "300", "--seeds", "0,1",
        "--episodes", "1", "--set", "episode.window_ms=1500", "--set", "episode.warmup_ms=300",
        "--set", "training.episodes=2", "--set", "training.validate_every=1",
        "--set", "training.encoder.collection_episodes=2", "--set", "training.encoder.epochs=2",
    )  # fmt: skip
    assert code == 0, err
    for name in ("cosmo", "cosmo-next", *BASELINES):
        assert name in stdout
    metrics = polars.read_parquet(out / "metrics.parquet")
    assert set(metrics["method"]) == {"cosmo", "cosmo-next", *BASELINES}
    assert (out / "report" / "report.html").exists()
    assert f"open {out / 'report' / 'report.html'}" in err
    (tmp_path / "file").write_text("")
    code, _, err = cosmo("run", "--out", tmp_path / "file")
    assert code == 2
    assert "cannot be made a folder" in err
