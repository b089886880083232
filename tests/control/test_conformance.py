"""`check_method`: methods that are right pass, and every rule can be broken."""

import numpy as np
import pytest

from cosmo import Dispatcher, InputError, Method, Updater, check_method
from cosmo.control.conformance import MethodError


class Right(Method, Dispatcher):
    """Local while there is room."""

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.where(tasks.local_room, 0, 1)

    def would_decide(self, tasks):
        return self.decide(tasks)


class Shape(Right):
    def decide(self, tasks):
        return np.zeros(len(tasks) + 1, int)


class Changes(Right):
    def decide(self, tasks):
        tasks.cycles *= 2.0
        return super().decide(tasks)


class Chance(Right):
    def decide(self, tasks):
        return np.random.default_rng().integers(0, 2, len(tasks))

    def would_decide(self, tasks):
        return None


class Counts(Right):
    """What it would do counts as something that it has done."""

    def __init__(self):
        self.asked = 0

    def decide(self, tasks):
        return np.full(len(tasks), self.asked % 2)

    def would_decide(self, tasks):
        self.asked += 1


class Lies(Right):
    def would_decide(self, tasks):
        return np.full(len(tasks), tasks.reject)


class Mixes(Right):
    """One memory for all worlds."""

    def dispatcher(self, site):
        fresh = Mixes()
        fresh.turn = 0
        return fresh

    def decide(self, tasks):
        actions = (self.turn + np.arange(len(tasks))) % 2
        self.turn += len(tasks)
        return actions

    def would_decide(self, tasks):
        return None


class Peeks(Right, Updater):
    """Tells its other half the backlog, and pays for one number that says nothing."""

    carries = 1

    def updater(self, site):
        return self._Sn(self)

    class _Sn(Updater):
        def __init__(self, other):
            self.other = other

        def decide(self, nodes):
            self.other.seen = float(nodes.sn_state[0, 2])
            return np.zeros(len(nodes), bool), np.full(len(nodes), 10.0)

        def encode(self, states):
            return np.zeros((len(states), 1))

    seen = 0.0

    def decide(self, tasks):
        return np.full(len(tasks), 1 if self.seen < 1e6 else 0)


class Impure(Right):
    carries = 1

    class _Sn(Updater):
        count = 0

        def decide(self, nodes):
            return np.ones(len(nodes), bool), np.full(len(nodes), 20.0)

        def encode(self, states):
            self.count += 1
            return np.full((len(states), 1), float(self.count))

    def updater(self, site):
        return self._Sn()


class _Sends(Right):
    """A method whose SN sends one number; what differs is when."""

    carries = 1

    def __init__(self):
        self.tasks = 0

    def updater(self, site):
        return self.Sn(self)

    def decide(self, tasks):
        self.tasks += len(tasks)
        return super().decide(tasks)

    def would_decide(self, tasks):
        return super().decide(tasks)

    class Sn(Updater):
        def __init__(self, method):
            self.method = method

        def encode(self, states):
            return states.state[:, :1]


class WhenItLikes(_Sends):
    """As many updates as ever, at other times."""

    class Sn(_Sends.Sn):
        def __init__(self, method):
            first = 10.0 + 20.0 * np.random.default_rng().random()
            self.gaps = [first, 40.0 - first]

        def decide(self, nodes):
            self.gaps.reverse()
            return np.ones(len(nodes), bool), np.full(len(nodes), self.gaps[0])


class KnowsTheEn(_Sends):
    """Sends more often once its EN has seen some tasks, which no message says."""

    class Sn(_Sends.Sn):
        def decide(self, nodes):
            pause = 5.0 if self.method.tasks > 20 else 50.0
            return np.ones(len(nodes), bool), np.full(len(nodes), pause)


class NoPause(_Sends):
    class Sn(_Sends.Sn):
        def decide(self, nodes):
            return np.ones(len(nodes), bool), np.zeros(len(nodes))


class ChangesNodes(_Sends):
    class Sn(_Sends.Sn):
        def decide(self, nodes):
            nodes.sn_state[:] = 0.0
            return np.ones(len(nodes), bool), np.full(len(nodes), 20.0)


@pytest.mark.parametrize(
    ("method", "scenario"),
    [
        ("self-tracking", "paper"),
        ("aoci-online", "paper"),
        ("full-information", "paper"),
        (Right, "campus"),
        (Right(), "paper"),
    ],
)
def test_methods_that_are_right_pass(method, scenario):
    check_method(method, [scenario], window_ms=300.0)


@pytest.mark.parametrize(
    ("method", "line"),
    [
        (Shape, "decide gave an array of shape"),
        (Changes, r"decide changes what it is shown \(cycles\)"),
        (Chance, "decides differently when it is made anew with the same seed"),
        (Counts, "when would_decide, explain or encode are called in between"),
        (Lies, "decide does not do what would_decide says"),
        (Mixes, "decides differently alone than in a batch"),
        (Peeks, "the EN reads what the SN has not sent"),
        (WhenItLikes, "decides differently when it is made anew with the same seed"),
        (KnowsTheEn, "or the SN what the EN knows"),
        (NoPause, "intervals must be greater than 0 ms"),
        (ChangesNodes, r"updater.decide changes what it is shown \(sn_state\)"),
        (Impure, "encode gives other numbers for the same states"),
    ],
)
def test_every_rule_can_be_broken(method, line):
    with pytest.raises(MethodError, match=line) as found:
        check_method(method, ["paper"], window_ms=300.0)
    assert isinstance(found.value, AssertionError)
    assert isinstance(found.value, InputError)
    assert f"method {method.__name__}" in str(found.value)
    assert "\n" not in str(found.value)
