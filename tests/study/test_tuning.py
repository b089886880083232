"""Tuning: on validation workloads alone, the same for any executor, resumed after a kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars
import pytest
from small import SHORT, Odd, do_odd

import cosmo
from cosmo import Dispatcher, InputError, Method, load
from cosmo.device import chosen_device
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.policy.parameters import Positive, Share
from cosmo.seeds import Draws
from cosmo.study import LocalExecutor
from cosmo.study.checks import DONE
from cosmo.study.executor import Failed, Finished, carry_out
from cosmo.study.search import Search, as_texts, grid
from cosmo.study.tuning import tuned, tuned_in

played = []  # draws of the worlds of every batch that a Hasty has seen


class Hasty(Method, Dispatcher):
    """Local while the deadline is at least `slack` away, else rejected; best at once."""

    def __init__(self, slack: Positive = 100.0, share: Share = 0.5, odd: bool = False) -> None:
        if odd:
            raise ValueError("odd")
        self.slack = slack

    def dispatcher(self, site):
        played.extend(site.draws)
        return self

    def decide(self, tasks):
        if self.slack > 290.0:
            raise RuntimeError("far too slack")
        return np.where(tasks.slack_ms > self.slack, tasks.reject, 0)


class Peak(Method, Dispatcher):
    """Rejects every task that comes within |x - 0.3| s after a full second: best at x = 0.3."""

    def __init__(self, x: float = 1.0) -> None:
        self.late_ms = 1000.0 * abs(x - 0.3)

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.where(tasks.time_ms % 1000.0 < self.late_ms, tasks.reject, 0)


class InTurn:
    """An executor of this process, in any order; it is ended after so many units."""

    def __init__(self, most=1000, backwards=False, end=None):
        self.left, self.done, self.step, self.end = most, [], -1 if backwards else 1, end

    def kept(self):
        return LocalExecutor(1).kept()

    def run(self, units, folder, work):
        for unit in units[:: self.step]:
            if not self.left:
                self.end()
            self.left -= 1
            try:
                work(unit, folder / unit.name, lambda share: None)
            except InputError as error:
                yield Failed(unit, str(error))
            else:
                self.done.append(unit.name)
                yield Finished(unit)


def _search(over, method=Hasty, trials=32, metric="success_rate"):
    kind = method if isinstance(method, type) else None
    return Search(
        load("paper", SHORT), kind.__name__ if kind else method, as_texts(over), ("poisson",),
        (220.0, 320.0), (0, 4), 1, metric, 0, trials, kind,
    )  # fmt: skip


def test_only_validation_episodes_are_played_and_the_check_has_its_own():
    played.clear()
    found = cosmo.tune(
        "paper", Hasty, {"slack": (10.0, 120.0)}, rates=[220], seeds=[0, 4], episodes=1, trials=10,
        settings=SHORT,
    )  # fmt: skip
    numbers = VALIDATION_EPISODES, VALIDATION_EPISODES + 1
    assert set(played) == {Draws.of(seed, number) for seed in (0, 4) for number in numbers}
    assert len(found.to_frame()) == 1 + 10
    assert len(found.study.trials) == 10
    assert found.ranked()["success_rate"].is_sorted(descending=True)
    assert 40.0 < float(found.parameters["slack"]) < 100.0  # more is refused, or too late
    assert found.method == f"Hasty:slack={found.parameters['slack']}"
    assert found.sentence().startswith(f"slack={found.parameters['slack']}: success rate 0.")
    assert found.sentence().endswith("too few to say which is better.")
    lead = found.difference
    assert lead.mean == pytest.approx(found.best_mean - found.default_mean)
    assert repr(found).startswith("<Tuned Hasty:slack=")


_PLACED = """
import numpy as np
from cosmo import Dispatcher, Method
from cosmo.device import chosen_device

class Placed(Method, Dispatcher):
    def __init__(self, x: float = 0.0) -> None:
        pass

    def dispatcher(self, site):
        with open({notes!r}, "a") as notes:
            notes.write(chosen_device() + " ")
        return self

    def decide(self, tasks):
        return np.zeros(len(tasks), np.int64)
"""


def test_processes_of_a_tuning_play_on_its_device(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.delenv("COSMO_DEVICE", raising=False)
    notes, source = tmp_path / "notes", tmp_path / "placed.py"
    source.write_text(_PLACED.format(notes=str(notes)))
    cosmo.tune(
        "paper", f"{source}:Placed", {"x": [1.0]}, seeds=0, episodes=1, settings=SHORT, workers=1,
        device="gpu",
    )  # fmt: skip
    assert set(notes.read_text().split()) == {"gpu"}
    assert chosen_device() == "cpu"  # as before
    with pytest.raises(InputError, match="device = 'tpu': must be cpu or gpu"):
        cosmo.tune("paper", Hasty, {"slack": (10.0, 120.0)}, device="tpu")


def test_a_known_optimum_is_found_and_beats_the_default():
    found = cosmo.tune(
        "paper", Peak, {"x": (0, 1)}, rates=[20], seeds=range(3), episodes=2, trials=24,
        settings=SHORT,
    )  # fmt: skip
    assert float(found.parameters["x"]) == pytest.approx(0.3, abs=0.05)
    assert found.difference.low > 0.3  # the default rejects 70 % of the tasks
    assert "beats the default: success rate 0." in found.sentence()


HERE = Path(__file__)
SPEC = f"{HERE}:Hasty"
RANGES = ["slack=10:120", "share=0.1:0.9"]


def test_this_process_or_two_workers_give_the_same_trials(tmp_path):
    search = _search(RANGES, SPEC, trials=10)
    one, two = tuned(search), tuned_in(tmp_path, search, LocalExecutor(2))
    assert one.to_frame().equals(two.to_frame())
    assert one.difference == two.difference


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from test_tuning import RANGES, SPEC, InTurn, _search, tuned_in
end = lambda: os.kill(os.getpid(), signal.SIGKILL)
tuned_in(Path({folder!r}), _search(RANGES, SPEC, trials=18), InTurn(most=11, end=end))
"""


def test_a_killed_tuning_resumes_and_ends_as_if_it_had_not_been(tmp_path):
    folder = tmp_path / "a"
    paths = [str(HERE.parent), str(HERE.parent.parent)]
    script = _KILLED.format(paths=paths, folder=str(folder))
    killed = subprocess.run([sys.executable, "-c", script], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert not (folder / "trials.parquet").exists()
    finished = {path.parent.name for path in folder.glob(f"units/*/{DONE}")}
    assert len(finished) == 11
    rest, search = InTurn(), _search(RANGES, SPEC, trials=18)
    found = tuned_in(folder, search, rest)
    assert not finished & set(rest.done)
    whole = tuned_in(tmp_path / "b", search, InTurn(backwards=True))
    assert found.to_frame().equals(whole.to_frame())
    assert found.difference == whole.difference
    assert polars.read_parquet(folder / "trials.parquet").equals(found.to_frame())
    longer = tuned_in(folder, _search(RANGES, SPEC, trials=20), InTurn())
    assert longer.to_frame().head(17).equals(found.to_frame().head(17))
    other = _search(RANGES, SPEC, metric="decision_accuracy")
    with pytest.raises(InputError, match="has a tuning with another metric; choose another"):
        tuned_in(folder, other, InTurn())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.md").touch()
    with pytest.raises(InputError, match="is not empty and has no tuning in it"):
        tuned_in(tmp_path / "mine", search, InTurn())


def test_few_values_are_all_played_and_what_fails_is_told():
    found = tuned(_search({"slack": [30.0, 300.0], "share": [0.2, 0.4]}, trials=4))
    frame = found.to_frame()
    assert frame["slack"].to_list() == [None, "30.0", "30.0", "300.0", "300.0"]
    assert frame["share"].to_list() == [None, "0.2", "0.4", "0.2", "0.4"]
    assert frame["failed"].is_not_null().to_list() == [False] * 3 + [True] * 2
    assert frame["success_rate"].is_null().to_list() == [False] * 3 + [True] * 2
    assert "far too slack" in frame["failed"][4]
    assert found.parameters == {}  # the default, as short slacks reject what could be done
    assert found.sentence().startswith("No setting beats the default Hasty")


def test_without_optuna_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(InputError, match=r"^tuning needs Optuna; .* pip install '\.\[tune\]'$"):
        tuned(_search(["slack=1,2"]))


@pytest.mark.parametrize(
    ("over", "line"),
    [
        (["slak=0:1"], "over slak: unknown parameter, did you mean slack?"),
        (["slack"], "over slack: must look like threshold_ms=0:30 or keep=2,3,5"),
        ({"slack": 5}, "over slack: must look like threshold_ms=0:30 or keep=2,3,5"),
        (["slack=5:5"], "over slack=5:5: the first must be less than the second"),
        (["slack=1:inf"], "the first must be less than the second"),
        (["slack=a:5"], "over slack=a:5: must be a number"),
        (["slack=0:5:odd"], "must be LOW:HIGH or LOW:HIGH:log of numbers, or values with commas"),
        (["odd=0:5"], "must be LOW:HIGH or LOW:HIGH:log of numbers, or values with commas"),
        (["slack=1,1"], "over slack=1,1: values must be different"),
        (["slack=1,a"], "'Hasty:slack=a': slack = 'a': must be a number"),
        (["share=0:2"], "share = '2': must be greater than 0 and at most 1"),
        (["slack=1:2", "slack=1:3"], "over slack: is there twice"),
        (["odd=true,false"], r"'Hasty:odd=true': cannot be made \(ValueError: odd\)"),
        ([], "over: names no parameter"),
    ],
)
def test_bad_ranges_are_one_line(over, line):
    with pytest.raises(InputError, match=line) as found:
        _search(over)
    assert "\n" not in str(found.value)


def test_ranges_keep_to_what_a_parameter_allows():
    space = _search({"slack": (0, 30)}).space()
    assert (space["slack"].low, space["slack"].high) == (0.03, 30.0)  # it must be greater than 0
    assert grid(space, 1000) == []
    space = _search(["d=1:3"], "power-of-d:keep=4").space()
    assert grid(space, 3) == [{"d": 1}, {"d": 2}, {"d": 3}]
    assert grid(space, 2) == []
    with pytest.raises(InputError, match="over keep: the method's name sets it already"):
        _search(["keep=1:3"], "power-of-d:keep=4")


def test_processes_that_are_kept_serve_every_batch(tmp_path):
    executor = LocalExecutor(1)
    with executor.kept():
        for number in (0, 1):
            assert isinstance(list(executor.run([Odd(number)], tmp_path, do_odd))[-1], Finished)
    first, second = ((tmp_path / f"odd-{number}" / DONE).read_text() for number in (0, 1))
    assert first == second
    assert carry_out is not do_odd
