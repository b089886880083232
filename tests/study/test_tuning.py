"""Tuning: on validation workloads alone, the same for any executor, going on after a stop."""

import sys

import numpy as np
import polars
import pytest
from small import SHORT, Odd, do_odd

import cosmo
from cosmo import Dispatcher, InputError, Method, load
from cosmo.learn.run import VALIDATION_EPISODES
from cosmo.policy.parameters import Positive, Share
from cosmo.study import LocalExecutor
from cosmo.study.checks import DONE
from cosmo.study.executor import Failed, Finished, carry_out
from cosmo.study.players import Here
from cosmo.study.space import grid, space_of
from cosmo.study.tuning import answered, question_of, tuned_in

played = []  # (world's seed, episode) of every batch that a Hasty has seen


class Hasty(Method, Dispatcher):
    """Local while the deadline is at least `slack` away, else rejected; best at once."""

    def __init__(self, slack: Positive = 100.0, share: Share = 0.5, odd: bool = False) -> None:
        if odd:
            raise ValueError("odd")
        self.slack = slack

    def dispatcher(self, site):
        played.extend(site.streams)
        return self

    def decide(self, tasks):
        if self.slack > 290.0:
            raise RuntimeError("far too slack")
        return np.where(tasks.slack_ms > self.slack, tasks.reject, 0)


class InTurn:
    """An executor of this process, in any order; it is interrupted after so many units."""

    def __init__(self, most=1000, backwards=False):
        self.left, self.done, self.step = most, [], -1 if backwards else 1

    def kept(self):
        return LocalExecutor(1).kept()

    def run(self, units, folder, work):
        for unit in units[:: self.step]:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            try:
                work(unit, folder / unit.name, lambda share: None)
            except InputError as error:
                yield Failed(unit, str(error))
            else:
                self.done.append(unit.name)
                yield Finished(unit)


def _question(over, method=Hasty, metric="success_rate"):
    return question_of(
        load("paper", SHORT), method, over, rates=[220, 320], arrivals=None, seeds=[0, 4],
        episodes=1, metric=metric, search_seed=0,
    )  # fmt: skip


def test_only_validation_episodes_are_played_and_the_check_has_its_own():
    played.clear()
    found = cosmo.tune(
        "paper", Hasty, {"slack": (10.0, 120.0)}, rates=[220], seeds=[0, 4], episodes=1, trials=10,
        settings=SHORT,
    )  # fmt: skip
    numbers = {number for _, number in played}
    assert numbers == {VALIDATION_EPISODES, VALIDATION_EPISODES + 1}
    assert {seed for seed, _ in played} == {0, 4}
    assert len(found.to_frame()) == 1 + 10
    assert found.ranked()["success_rate"].is_sorted(descending=True)
    assert 40.0 < float(found.parameters["slack"]) < 100.0  # more is refused, or too late
    assert found.method == f"Hasty:slack={found.parameters['slack']}"
    assert found.sentence().startswith(f"slack={found.parameters['slack']}: success rate 0.")
    assert found.sentence().endswith("too few to say which is better.")
    lead = found.difference
    assert lead.mean == pytest.approx(found.best_mean - found.default_mean)
    assert repr(found).startswith("<Tuned Hasty:slack=")
    assert len(found.plot().axes) == 1


SPEC = f"{__file__}:Hasty"


def test_an_interrupted_tuning_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    question = _question(["slack=10:120", "share=0.1:0.9"], SPEC)
    stopped = InTurn(most=11)
    with pytest.raises(KeyboardInterrupt):
        tuned_in(tmp_path / "a", question, stopped, trials=18)
    rest = InTurn()
    found = tuned_in(tmp_path / "a", question, rest, trials=18)
    assert not set(stopped.done) & set(rest.done)
    assert len(stopped.done) == 11
    whole = tuned_in(tmp_path / "b", question, InTurn(backwards=True), trials=18)
    assert found.to_frame().equals(whole.to_frame())
    assert found.difference == whole.difference
    assert polars.read_parquet(tmp_path / "a" / "trials.parquet").equals(found.to_frame())
    more = InTurn()  # more trials begin with the same ones
    longer = tuned_in(tmp_path / "a", question, more, trials=20)
    assert longer.to_frame().head(17).equals(found.to_frame().head(17))
    other = _question(["slack=10:120", "share=0.1:0.9"], SPEC, metric="decision_accuracy")
    with pytest.raises(InputError, match="has a tuning with another metric; choose another"):
        tuned_in(tmp_path / "a", other, InTurn(), trials=2)


def test_few_values_are_all_played_without_optuna(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    question = _question({"slack": [30.0, 300.0], "share": [0.2, 0.4]})
    found = answered(question, Here(Hasty), trials=4)
    frame = found.to_frame()
    assert frame["slack"].to_list() == [None, "30.0", "30.0", "300.0", "300.0"]
    assert frame["failed"].is_not_null().to_list() == [False] * 3 + [True] * 2
    assert "far too slack" in frame["failed"][4]
    assert found.parameters == {}  # the default, as short slacks reject what could be done
    assert found.sentence().startswith("No setting beats the default Hasty")
    with pytest.raises(InputError, match=r"needs Optuna; .* pip install '\.\[tune\]'"):
        answered(question, Here(Hasty), trials=3)


@pytest.mark.parametrize(
    ("over", "line"),
    [
        (["slak=0:1"], "--over slak: unknown parameter, did you mean slack?"),
        (["slack"], "--over 'slack': must look like name=LOW:HIGH"),
        (["slack=5:5"], "the first must be less than the second"),
        (["slack=a:5"], "must be numbers"),
        (["slack=0:5:odd"], "must be LOW:HIGH, LOW:HIGH:log or values with commas"),
        (["slack=1,1"], "values must be different"),
        (["share=0:2"], "--over share=2: must be greater than 0 and at most 1"),
        (["slack=1:2", "slack=1:3"], "--over slack: is there twice"),
        (["odd=true,false"], r"'Hasty:odd=true': cannot be made \(ValueError: odd\)"),
        ([], "--over: names no parameter"),
    ],
)
def test_bad_ranges_are_one_line(over, line):
    with pytest.raises(InputError, match=line) as found:
        _question(over)
    assert "\n" not in str(found.value)


def test_ranges_keep_to_what_a_parameter_allows():
    space = space_of(Hasty, {"slack": (0, 30)})
    assert str(space["slack"]) == "0.03:30"  # it must be greater than 0
    assert grid(space, 1000) is None
    from cosmo.control.registry import kind_of

    kind, fixed = kind_of("power-of-d:keep=4")
    space = space_of(kind, ["d=1:3"], fixed)
    assert [setting["d"] for setting in grid(space, 3)] == ["1", "2", "3"]
    with pytest.raises(InputError, match="--over keep: the method's name sets it already"):
        space_of(kind, ["keep=1:3"], fixed)


def test_processes_that_are_kept_serve_every_batch(tmp_path):
    executor = LocalExecutor(1)
    with executor.kept():
        for number in (0, 1):
            assert isinstance(list(executor.run([Odd(number)], tmp_path, do_odd))[-1], Finished)
    first, second = ((tmp_path / f"odd-{number}" / DONE).read_text() for number in (0, 1))
    assert first == second
    assert carry_out is not do_odd
