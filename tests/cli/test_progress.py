"""Progress names the unit at work, for people and in logs."""

import pytest
from golden_text import eighty_columns
from small import Odd, small_plan

from cosmo.cli import study as commands
from cosmo.cli.train import _Progress
from cosmo.study import store
from cosmo.study.conduct import Progress, conduct
from cosmo.study.executor import Event, Failed, Finished, Started


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    eighty_columns(monkeypatch)


class Told:
    """An executor that says what it is told to."""

    def __init__(self, *kinds):
        self._kinds = kinds

    def run(self, units, folder, work):
        for place, make in self._kinds:
            yield make(units[place])


def test_a_unit_is_at_work_from_its_start_to_its_end(tmp_path, monkeypatch):
    plan = small_plan()
    monkeypatch.setattr(store, "merge", lambda folder, plan: None)  # nothing is played
    executor = Told(
        (0, Started), (1, Started), (0, lambda unit: Event(unit, 0.5)),
        (1, lambda unit: Event(unit, 0.0)),  # its process has died; it waits for another
        (0, Finished), (1, Started), (1, lambda unit: Failed(unit, "no")),
    )  # fmt: skip
    seen = []

    def told(progress):
        names = [unit.name for unit in progress.units]
        seen.append([names.index(name) for name in progress.at_work])

    conduct(plan, tmp_path / "study", executor, told)
    assert seen == [[], [0], [0, 1], [0, 1], [0], [], [1], []]


def test_the_share_of_a_study_goes_from_nothing_to_all():
    units = [Odd(number) for number in range(3)]
    progress = Progress(units, {unit.name: 0.0 for unit in units})
    assert (progress.total, progress.done) == (0.0, 0)
    progress.share[units[0].name] = 0.5
    assert 0.0 < progress.total < 0.5
    progress.share |= {unit.name: 1.0 for unit in units}
    assert (progress.total, progress.done) == (1.0, 3)


def test_a_log_names_the_unit_at_work(capsys, monkeypatch):
    monkeypatch.setattr(commands, "_LINE_EVERY_S", 0.0)
    units = [Odd(number) for number in range(3)]
    progress = Progress(units, dict.fromkeys((unit.name for unit in units), 0.0))
    names = [f"a-policy-of-mine-{k}-on-paper-poisson-0123456789" for k in range(2)]
    progress.share |= dict.fromkeys(names, 0.0)
    progress._weights |= dict.fromkeys(names, 1.0)
    with commands._Show("mine") as show:
        show(progress)  # nobody is at work yet: nothing to say
        progress.at_work = names
        show(progress)
        progress.at_work = names[1:]
        show(progress)
    assert capsys.readouterr().err.splitlines() == [
        "mine: 0%  0/3 units  at …policy-of-mine-0-on-paper-poisson and 1 more",
        "mine: 0%  0/3 units  at …policy-of-mine-1-on-paper-poisson",
    ]


def test_a_log_of_training_says_what_is_trained(capsys):
    curve = {"reward": 5.0, "success_rate": 0.5, "epsilon": 0.1, "update_cost_rate": 2.0}
    with _Progress("cosmo on paper (poisson, 220 tasks/s), 3 run(s)", 20) as told:
        told(0, [])
        told(10, [curve])
    assert capsys.readouterr().err.splitlines() == [
        "training cosmo on paper (poisson, 220 tasks/s), 3 run(s)",
        "episode 10/20  reward 5  success 0.500  ε 0.10  updates 2.0/s",
    ]
