"""A study's folder is whole: what it was made of travels with it; a focus that fails is found."""

import shutil
import subprocess
import sys

import pytest

from cosmo import InputError, load_study
from cosmo.report.write import write_report
from cosmo.study import LocalExecutor, conduct, inputs, load_plan, plan_checked, store
from cosmo.study.focus import focus_of, try_focus

POLICY = """
import numpy as np
from cosmo import Dispatcher, Method

class Mine(Method, Dispatcher):
    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        {body}
"""
SITE = 'extends = "paper"\nname = "mine"\n[episode]\nwindow_ms = 900\nwarmup_ms = 100\n'
TRACE = "time_ms,ue,input_bytes,cycles,deadline_ms\n" + "".join(
    f"{10 * k},{k % 4},30000,500000,150\n" for k in range(100)
)


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(POLICY.format(body="return np.zeros(len(tasks.task), int)"))
    (tmp_path / "site.toml").write_text(SITE)
    (tmp_path / "tasks.csv").write_text(TRACE)
    return tmp_path


def _plan(methods=("mine.py:Mine", "all-offload")):
    return plan_checked(
        {"name": "whole", "scenarios": ["site.toml"], "traces": ["tasks.csv"], "seeds": [0],
         "episodes": 1, "focus": methods[0], "compare": [{"methods": list(methods)}]}
    )  # fmt: skip


def test_a_copied_folder_gives_the_same_page_when_the_files_are_gone(there):
    conduct(_plan(), there / "study", LocalExecutor(1))
    first = write_report(load_study(there / "study"), there / "first", trust=True)
    assert first.left_out == []
    shutil.copytree(there / "study", there / "elsewhere" / "study")
    for name in ("mine.py", "site.toml", "tasks.csv"):
        (there / name).unlink()
    shutil.rmtree(there / "study")
    copied = load_study(there / "elsewhere" / "study")
    again = write_report(copied, there / "again", trust=True)
    assert again.page.read_bytes() == first.page.read_bytes()
    # Without trust the policy is not run, and the report says so.
    careful = write_report(copied, there / "careful")
    assert careful.left_out == [
        "mine.py:Mine: runs code from a file; add --trust if you trust it"
    ]  # fmt: skip
    plan = load_plan(there / "elsewhere" / "study" / "plan.toml", code="run")
    assert plan.methods[0].endswith("/mine.py:Mine")
    assert plan.scenario(plan.sources[0]).episode.window_ms == 900
    assert len(list(plan.points())) == 2


def test_a_file_that_has_changed_is_taken_from_the_copy(there):
    inputs.keep(there / "study", _plan())
    assert inputs.found(there / "study", "mine.py") == "mine.py"
    (there / "mine.py").write_text("raise SystemExit")
    copy = inputs.found(there / "study", "mine.py")
    assert "class Mine" in (there / copy).read_text()
    assert inputs.found_method(there / "study", "mine.py:Mine") == f"{copy}:Mine"
    assert inputs.found(there / "study", "unknown.py") == "unknown.py"


def test_a_focus_that_cannot_be_played_is_found_before_its_rivals_are_played(there):
    (there / "mine.py").write_text(POLICY.format(body="raise KeyError('nope')"))
    with pytest.raises(InputError, match=r"method Mine failed at mine.py, line 10 \(KeyError"):
        conduct(_plan(), there / "study", LocalExecutor(1))
    assert not (there / "study").exists()


@pytest.mark.parametrize("engine", ["ns3", "live"])
def test_a_focus_is_tried_on_the_embedded_engine_alone(there, engine):
    """On others, trying would take real time, or what is not installed here."""
    (there / "mine.py").write_text(POLICY.format(body="raise ValueError('never asked')"))
    settings = {"settings": [f"engine={engine}"], "traces": []}
    try_focus(plan_checked(_plan().model_dump(mode="json") | settings))
    with pytest.raises(InputError, match="never asked"):
        try_focus(_plan())


@pytest.mark.parametrize(
    ("methods", "yardsticks", "focus"),
    [
        (("full-information", "all-local"), (), "all-local"),  # the registry knows that one
        (("all-local", "random"), ("all-local",), "random"),  # and a study this one
        (("full-information", "random", "mine.py:Mine"), (), "mine.py:Mine"),
        (("full-information", "shared-knowledge"), (), "full-information"),
    ],
)
def test_without_a_word_a_report_is_about_what_could_be_deployed(methods, yardsticks, focus, there):
    plan = plan_checked({"name": "p", "seeds": [0], "compare": [{"methods": list(methods)}]})
    assert focus_of(plan, yardsticks) == focus


def test_a_study_is_not_gone_on_with_when_its_events_have_changed(there):
    def plan(factor):
        (there / "events.csv").write_text(f"time_ms,event,node,factor\n10,speed,en:0,{factor}\n")
        site = SITE + '[workload]\nevents = "events.csv"\n'
        (there / "site.toml").write_text(site)
        return _plan()

    store.prepare(there / "study", plan(0.5))
    store.prepare(there / "study", plan(0.5))
    with pytest.raises(InputError, match=r"the events of .* have changed since; choose another"):
        store.prepare(there / "study", plan(0.4))


def test_a_focus_that_fails_later_has_no_verdict_and_nobody_else_has_it(there):
    body = "assert tasks.time_ms.max() < 700, 'late'; return np.zeros(len(tasks.task), int)"
    (there / "mine.py").write_text(POLICY.format(body=body))
    progress = conduct(_plan(), there / "study", LocalExecutor(1))
    assert len(progress.failed) == 1
    study = load_study(there / "study")
    assert study.focus == "mine.py:Mine"
    page = write_report(study, there / "report", trust=True).page.read_text()
    assert '<p id="verdict">mine.py:Mine has no results on mine tasks: it failed' in page


KILLED_WHILE_PREPARING = """
import itertools, os, sys
from pathlib import Path
from cosmo.study import load_plan, store

plan, rename = load_plan("plan.toml", code="run"), Path.replace
for moment in itertools.count():  # before and after each file gets its name
    child = os.fork()
    if child == 0:
        left = iter(range(moment, -1, -1))
        def replace(self, target):
            if next(left) == 0:
                os._exit(9)
            rename(self, target)
            if next(left) == 0:
                os._exit(9)
        Path.replace = replace
        store.prepare(Path(f"killed-{moment}"), plan)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
"""


def test_a_study_killed_while_its_folder_is_made_can_be_resumed(there):
    text = (
        'name = "whole"\nscenarios = ["site.toml"]\ntraces = ["tasks.csv"]\nseeds = [0]\n'
        'episodes = 1\n[[compare]]\nmethods = ["mine.py:Mine", "all-offload"]\n'
    )
    (there / "plan.toml").write_text(text)
    subprocess.run([sys.executable, "-c", KILLED_WHILE_PREPARING], check=True, cwd=there)
    plan = load_plan("plan.toml", code="run")

    def files(folder):
        return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}

    *killed, whole = sorted(there.glob("killed-*"), key=lambda each: int(each.name[7:]))
    assert len(killed) == 8  # study.json, the scenario, the index and plan.toml, each twice
    for folder in killed:
        store.prepare(folder, plan)
        assert files(folder) == files(whole)
        for name in ("mine.py", "site.toml", "tasks.csv"):
            copy = next(folder.glob(f"inputs/*/{name}"))
            assert copy.read_bytes() == next(whole.glob(f"inputs/*/{name}")).read_bytes()
