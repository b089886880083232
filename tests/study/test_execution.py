"""Plans carried out: any number of workers, killed workers, failures, interruptions."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import polars
import pytest
from polars.testing import assert_frame_equal
from small import SHORT, Odd, do_odd, small_plan

from cosmo import InputError
from cosmo.study import LocalExecutor, conduct, load_plan, load_study, progress_of
from cosmo.study.checks import DONE
from cosmo.study.executor import Event, Failed, Finished
from cosmo.study.statistics import bounds
from slow import alive, wait_until


def _results(folder):
    study = load_study(folder)
    return study.metrics, study.curves


def _events(executor, units, folder):
    return list(executor.run(units, folder, do_odd))


METHODS = ("cosmo", "all-local", "random")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A study with training, undisturbed."""
    folder = tmp_path_factory.mktemp("study") / "whole"
    progress = conduct(small_plan(METHODS), folder, LocalExecutor())
    assert not progress.failed
    return folder


def test_results_have_a_row_for_every_method_load_run_and_episode(whole):
    metrics, curves = _results(whole)
    assert metrics.height == 3 * 2 * 2 * 2
    assert (
        metrics.select("scenario", "arrivals", "rate", "method", "seed", "episode")
        .is_unique()
        .all()
    )
    assert metrics["method"].unique(maintain_order=True).to_list() == [
        "cosmo",
        "all-local",
        "random",
    ]
    assert metrics.filter(method="cosmo")["rate"].unique(maintain_order=True).to_list() == [
        120,
        320,
    ]
    assert curves.height == 2 * 2 * 2
    assert load_study(whole).checkpoint("cosmo", 320.0, "poisson", "paper").is_dir()
    about = json.loads((whole / "study.json").read_text())
    assert about["plan"]["name"] == "small"
    assert "jax" in about["versions"]


def test_the_result_does_not_depend_on_the_number_of_workers(tmp_path):
    plan = small_plan()
    tables = []
    for workers in (1, 2):
        conduct(plan, tmp_path / str(workers), LocalExecutor(workers))
        tables.append(_results(tmp_path / str(workers))[0])
    assert_frame_equal(*tables, check_exact=True)


def test_methods_face_equal_workloads_and_equal_simulate(tmp_path):
    from cosmo import load as load_scenario
    from cosmo import method, simulate

    conduct(small_plan(("aoci-online",)), tmp_path / "study", LocalExecutor())
    scenario = load_scenario("paper", [*SHORT, "workload.rate=320"])
    alone = simulate(scenario, method("aoci-online"), seeds=3, episodes=2).episodes
    rows = load_study(tmp_path / "study").metrics.filter(rate=320.0, seed=3)
    assert rows["success_rate"].to_list() == [each["success_rate"] for each in alone]


_SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from cosmo.study import LocalExecutor, conduct
from small import Odd, do_odd, small_plan
if __name__ == "__main__":
    {line}
"""


def _in_a_session(script, line):
    """A process of its own with its workers, to be killed."""
    here = Path(__file__).parent
    script.write_text(_SCRIPT.format(paths=[str(here), str(here.parent)], line=line))
    return subprocess.Popen([sys.executable, str(script)], start_new_session=True)


def _kill_and_wait(process):
    process.kill()
    process.wait()
    wait_until(lambda: not alive(process.pid), "its workers have left")


# Plays as all-local does, as soon as it is let.
_GATE = """
import time
from pathlib import Path
import numpy as np
from cosmo import Dispatcher, Method
class Gate(Method, Dispatcher):
    'Waits.'
    def dispatcher(self, setting):
        while not Path(__file__).with_name("open").exists():
            time.sleep(0.02)
        return self
    def decide(self, tasks):
        return np.zeros(len(tasks), int)
"""


def test_killed_with_9_it_resumes_and_nothing_is_done_twice(whole, tmp_path):
    gate, folder = tmp_path / "gate.py", tmp_path / "killed"
    gate.write_text(_GATE)
    methods = (*METHODS, f"{gate}:Gate")
    line = f"conduct(small_plan({methods}), Path({str(folder)!r}), LocalExecutor(2))"
    process = _in_a_session(tmp_path / "script.py", line)
    try:
        wait_until(lambda: list(folder.glob(f"units/*/{DONE}")), "a unit is finished")
        assert process.poll() is None  # it waits at the gate
    finally:
        _kill_and_wait(process)
    finished = {path: path.stat().st_mtime_ns for path in folder.glob(f"units/*/{DONE}")}
    gate.with_name("open").touch()
    progress = conduct(small_plan(methods), folder, LocalExecutor(2))
    assert 1 <= len(finished) < len(progress.units) == progress.done
    assert all(path.stat().st_mtime_ns == time_ns for path, time_ns in finished.items())
    for one, other in zip(_results(whole), _results(folder), strict=True):
        same = other.filter(polars.col("method").is_in(METHODS))
        assert_frame_equal(one, same, check_exact=True)


def test_workers_leave_when_their_parent_is_killed(tmp_path):
    units = "[Odd(1, seconds=600), Odd(2, seconds=600)]"
    line = f"list(LocalExecutor(2).run({units}, Path({str(tmp_path)!r}), do_odd))"
    process = _in_a_session(tmp_path / "script.py", line)
    try:
        wait_until(lambda: len(list(tmp_path.glob("odd-*/try-0"))) == 2, "both are at work")
    finally:
        _kill_and_wait(process)


def test_a_worker_that_dies_costs_another_try_and_nothing_else(tmp_path):
    units = [Odd(number, deaths=number) for number in range(3)]
    events = _events(LocalExecutor(2), units, tmp_path)
    assert not [event for event in events if isinstance(event, Failed)]
    assert {event.unit for event in events if isinstance(event, Finished)} == set(units)
    for unit in units:
        assert len(list((tmp_path / unit.name).glob("try-*"))) == unit.deaths + 1


def test_a_unit_that_always_dies_or_fails_does_not_sink_the_others(tmp_path):
    units = [Odd(0, deaths=99), Odd(1, error="no luck"), Odd(2), Odd(3)]
    events = _events(LocalExecutor(2), units, tmp_path)
    failed = {event.unit.number: event.cause for event in events if isinstance(event, Failed)}
    assert set(failed) == {0, 1}
    assert failed[0] == "its process died 3 times (exit code -9)"
    assert failed[1].startswith("RuntimeError: no luck (at small.py:")
    assert len([event for event in events if isinstance(event, Finished)]) == 2


def test_whatever_a_policy_raises_is_its_units_failure(tmp_path):
    kinds = SystemExit, KeyboardInterrupt, GeneratorExit
    units = [Odd(number, error="enough", kind=kind) for number, kind in enumerate(kinds)]
    events = _events(LocalExecutor(1), [*units, Odd(3)], tmp_path)
    failed = [event.cause for event in events if isinstance(event, Failed)]
    for number, (kind, cause) in enumerate(zip(kinds, failed, strict=True)):
        assert cause.startswith(f"{kind.__name__}: enough (at small.py:")
        assert len(list((tmp_path / f"odd-{number}").glob("try-*"))) == 1
    assert [event.unit.number for event in events if isinstance(event, Finished)] == [3]


def test_closing_the_iterator_stops_all_work(tmp_path):
    running = LocalExecutor(2).run([Odd(1, seconds=600), Odd(2, seconds=600)], tmp_path, do_odd)
    for event in running:
        if event.share == 0.5:
            break
    assert isinstance(event, Event)
    running.close()
    assert not multiprocessing.active_children()


def test_a_failing_method_is_reported_with_its_cause_and_can_be_mended(tmp_path):
    mine = tmp_path / "mine.py"
    broken = (
        "import numpy as np\nfrom cosmo import Dispatcher, Method\n"
        "class Mine(Method, Dispatcher):\n    '''Mine.'''\n"
        "    def dispatcher(self, site):\n        {line}\n        return self\n"
        "    def decide(self, tasks):\n        return np.zeros(len(tasks), int)\n"
    )
    mine.write_text(broken.format(line="raise ZeroDivisionError('of mine')"))
    plan, folder = small_plan((f"{mine}:Mine", "all-local")), tmp_path / "study"
    progress = conduct(plan, folder, LocalExecutor())
    [cause] = progress.failed.values()
    assert "Mine" in cause
    assert "of mine" in cause
    assert load_study(folder).metrics["method"].unique().to_list() == ["all-local"]
    assert list(progress_of(folder, plan).failed.values()) == [cause]
    mine.write_text(broken.format(line="pass"))
    plan = small_plan((f"{mine}:Mine", "all-local"))
    progress = conduct(plan, folder, LocalExecutor())
    assert not progress.failed
    assert not progress_of(folder, plan).failed
    rows = load_study(folder).metrics
    mine_rows, theirs = (
        rows.filter(polars.col("method") != "all-local"),
        rows.filter(method="all-local"),
    )
    assert mine_rows["success_rate"].to_list() == theirs["success_rate"].to_list()


def test_a_folder_of_others_or_of_another_plan_is_refused_and_left_alone(whole, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty and has no study"):
        conduct(small_plan(), tmp_path, LocalExecutor())
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="has a study with another compare"):
        conduct(small_plan(), whole, LocalExecutor())
    with pytest.raises(InputError, match="cannot be made a folder"):
        conduct(small_plan(), tmp_path / "mine.txt" / "x", LocalExecutor())


def test_a_second_run_in_the_same_folder_is_refused(tmp_path):
    plan, folder = small_plan(("all-local",)), tmp_path / "study"
    refused = []

    def again(progress):
        try:
            conduct(plan, folder, LocalExecutor())
        except InputError as error:
            refused.append(str(error))

    assert conduct(plan, folder, LocalExecutor(), again).done == 1
    assert set(refused) == {
        f"out = '{folder}': another run is at work in it; wait for it, or choose another folder"
    }
    assert conduct(plan, folder, LocalExecutor()).done == 1


def test_a_changed_policy_is_played_again(tmp_path):
    mine, folder = tmp_path / "mine.py", tmp_path / "study"
    policy = (
        "import numpy as np\nfrom cosmo import Dispatcher, Method\n"
        "class Mine(Method, Dispatcher):\n    'Mine.'\n"
        "    def dispatcher(self, site):\n        return self\n"
        "    def decide(self, tasks):\n        return np.full(len(tasks), {action})\n"
    )
    found = []
    for action in (0, 1):
        mine.write_text(policy.format(action=action))
        os.utime(mine, (1_700_000_000, 1_700_000_000))  # as if both were written in one second
        conduct(small_plan((f"{mine}:Mine",)), folder, LocalExecutor())
        found.append(load_study(folder).metrics["success_rate"].to_list())
    assert found[0] != found[1]


def test_a_study_means_the_same_when_its_files_are_gone(tmp_path, monkeypatch):
    (tmp_path / "plans").mkdir()
    world = tmp_path / "plans" / "world.toml"
    world.write_text(
        'extends = "paper"\nname = "mine"\n[episode]\nwindow_ms = 1500.0\nwarmup_ms = 300.0\n'
    )
    path = tmp_path / "plans" / "plan.toml"
    path.write_text(
        'name = "x"\nscenarios = ["world.toml"]\narrivals = ["poisson"]\nrates = [200.0]\n'
        'seeds = [0]\nepisodes = 1\n[[compare]]\nmethods = ["all-local"]\n'
    )
    monkeypatch.chdir(tmp_path)  # files of a plan are beside it, wherever one stands
    folder = tmp_path / "study"
    conduct(load_plan("plans/plan.toml"), folder, LocalExecutor())
    world.write_text(world.read_text().replace("1500.0", "1600.0"))
    with pytest.raises(InputError, match="has changed since"):
        conduct(load_plan("plans/plan.toml"), folder, LocalExecutor())
    world.unlink()
    study = load_study(folder)
    assert next(study.plan.points())[0].episode.window_ms == 1500.0
    assert progress_of(folder, study.plan).done == 1
    assert bounds(study.plan).height == 1


def test_another_version_does_not_go_on_with_a_study(whole):
    import cosmo

    plan = small_plan(METHODS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cosmo, "__version__", "99.0")
        with pytest.raises(InputError, match=r"this is 99\.0; choose another folder"):
            conduct(plan, whole, LocalExecutor(1))


def test_a_full_disk_fails_the_unit_in_one_line_and_loses_nothing(tmp_path):
    plan, folder = small_plan(("all-local",)), tmp_path / "study"
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
    code = (
        f"import sys, signal; sys.path[:0] = {[str(Path(__file__).parent)]!r}\n"
        "from pathlib import Path\nfrom cosmo.study import LocalExecutor, conduct\n"
        "from cosmo.study.store import prepare\nfrom small import small_plan\n"
        "if __name__ == '__main__':\n"
        f"    plan, folder = small_plan(('all-local',)), Path({str(folder)!r})\n"
        "    prepare(folder, plan)\n"
        "    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"    {small}\n"
        "    print(conduct(plan, folder, LocalExecutor(1)).failed)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cannot be written (File too large)" in done.stdout
    assert not list(folder.rglob("*.parquet"))
    assert progress_of(folder, plan).done == 0
    assert not conduct(plan, folder, LocalExecutor(1)).failed


def test_a_damaged_result_is_one_line(whole, tmp_path):
    import shutil

    folder = tmp_path / "damaged"
    shutil.copytree(whole, folder)
    (folder / "metrics.parquet").write_bytes(b"PAR1 half")
    with pytest.raises(InputError, match="damaged or cut short"):
        load_study(folder)
    (folder / "study.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        load_study(folder)
    with pytest.raises(InputError, match="there is no study"):
        load_study(tmp_path)


def test_what_is_played_in_real_time_has_the_machine_for_itself(tmp_path, monkeypatch):
    order = []

    class Noted:
        def __init__(self, workers=None):
            self._workers = workers

        def run(self, units, folder, work):
            order.extend((self._workers, unit.scenario.engine) for unit in units)
            return iter(Finished(unit) for unit in units)

    monkeypatch.setattr(sys.modules["cosmo.study.conduct"], "LocalExecutor", Noted)
    plan = small_plan(("all-local", "never"), engines=["live", "embedded"], seeds=[0], episodes=1)
    conduct(plan, tmp_path / "study", Noted("all"))
    assert order == [("all", "embedded")] * 2 + [(1, "live")] * 4


class _Notes(LocalExecutor):
    """Notes which units it is given, and carries them out."""

    def run(self, units, folder, work):
        self.given = [unit.method for unit in units]
        return super().run(units, folder, work)


def test_every_method_is_begun_once_before_any_is_begun_again(tmp_path):
    plan = small_plan(("all-local", "all-offload"), arrivals=["poisson", "deterministic"])
    executor = _Notes(1)
    assert not conduct(plan, tmp_path / "study", executor).failed
    assert executor.given == ["all-local", "all-offload"] * 2
