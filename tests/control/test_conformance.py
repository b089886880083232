"""`check_method`: methods that are right pass, and every rule can be broken."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import Dispatcher, InputError, Method, Updater, check_method
from cosmo.control import conformance
from cosmo.control.conformance import MethodError

WINDOW_MS = 120.0


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


class SharesMemory(Method, Dispatcher):
    """ENs that take turns at the SNs: each knows what the others have sent, without a message."""

    def dispatcher(self, site):
        self.sent = 0
        return self

    def decide(self, tasks):
        action = 1 + (self.sent + np.arange(len(tasks))) % tasks.sns
        self.sent += len(tasks)
        return action


class SharesNews(_Sends):
    """SNs of which one knows what another sees."""

    class Sn(_Sends.Sn):
        busiest = 0.0

        def decide(self, nodes):
            self.busiest = max(self.busiest, float(nodes.sn_state[:, 2].max()))
            pause = np.where(nodes.sn_state[:, 2] < self.busiest, 45.0, 15.0)
            return np.ones(len(nodes), bool), pause


@pytest.mark.parametrize(
    ("method", "call"),
    [(SharesMemory, "first decide of node"), (SharesNews, r"first updater.decide \(interval_ms\)")],
)
def test_nodes_that_share_memory_are_found_by_the_first_call_that_differs(method, call):
    """R41(b), on several ENs and SNs; with one of each there is nothing to share."""
    line = rf"every EN and every SN has an object of its own: .*; {call}.* row \d+: .*, then "
    with pytest.raises(MethodError, match=line):
        check_method(method, scenarios=["campus"], window_ms=WINDOW_MS)


@pytest.mark.parametrize(
    ("method", "scenario"),
    [
        ("self-tracking", "paper"),
        ("cosmo-next", "campus"),
        ("power-of-d", "campus"),
        ("aov-gap/estimate", "campus"),
        ("piggyback", "campus"),
        ("back-off", "campus"),
        *((name, "campus") for name in ("jbt", "aoii", "jiq", "lsq", "sparse-jsq")),
        *((name, "campus") for name in ("in-flight", "in-flight:hot_ms=5", "leaky-bucket")),
        ("aoci-online", "paper"),
        ("full-information", "paper"),
        (Right, "campus"),
        (Right(), "paper"),
    ],
)
def test_methods_that_are_right_pass(method, scenario):
    check_method(method, scenarios=[scenario], window_ms=WINDOW_MS)


def test_one_scenario_is_enough_and_none_would_check_nothing():
    with pytest.raises(MethodError, match="decide gave an array of shape"):
        check_method(Shape, scenarios="paper", window_ms=WINDOW_MS)
    with pytest.raises(InputError, match=r"scenarios = \[\]: must have one at least"):
        check_method(Shape, scenarios=[])


@pytest.mark.parametrize(
    ("method", "line"),
    [
        (Shape, "decide gave an array of shape"),
        (Changes, r"decide changes what it is shown \(cycles\)"),
        (Chance, "decides differently when it is created again with the same seed"),
        (Counts, "when would_decide, explain or encode are called in between"),
        (Lies, "decide does not do what would_decide says"),
        (Mixes, "decides differently alone than in a batch"),
        (Peeks, "the EN reads what the SN has not sent"),
        (WhenItLikes, "decides differently when it is created again with the same seed"),
        (KnowsTheEn, "or the SN what the EN knows"),
        (NoPause, "intervals must be greater than 0 ms"),
        (ChangesNodes, r"updater.decide changes what it is shown \(sn_state\)"),
        (Impure, "encode gives other numbers for the same states"),
    ],
)
def test_every_rule_can_be_broken(method, line):
    with pytest.raises(MethodError, match=line) as found:
        check_method(method, scenarios=["paper"], window_ms=WINDOW_MS)
    assert isinstance(found.value, AssertionError)
    assert isinstance(found.value, InputError)
    assert f"method {method.__name__}" in str(found.value)
    assert "\n" not in str(found.value)


def _outcome(number, **fields):
    """Of an episode that nobody has played, with actions of its own."""
    made = {
        "action": np.array([number, 1]), "finished_ms": np.array([np.nan, 5.0]), "updates": 2,
        "update_decisions": 3, "rides": 0, "status_bytes": 40.0,
        "status": SimpleNamespace(aoi_ms=1.0, peak_aoi_ms=np.nan, decision_age_ms=2.0),
    }  # fmt: skip
    return SimpleNamespace(**made | fields)


def test_two_episodes_are_played_together_again_in_four_ways_and_alone(monkeypatch):
    played = []

    def play(scenario, kind, worlds, seed, numbers):
        told = scenario.episode.window_ms, scenario.episode.warmup_ms, scenario.workload.rate
        played.append((kind.way, seed, tuple(numbers), told, len(worlds)))
        return [_outcome(number) for number in numbers]

    monkeypatch.setattr(conformance, "play", play)
    check_method(Right, scenarios=["paper"])
    short = 1500.0, 0.0, 260.0
    ways = "first", "anew", "asked", "apart", "split"
    together = [(way, 0, (0, 1), short, 2) for way in ways]
    alone = [("alone", 0, (number,), short, 1) for number in (0, 1)]
    assert played == together + alone
    played.clear()
    check_method(Right, scenarios=["paper"], seeds=5, window_ms=70.0)
    assert {each[1] for each in played} == {5}
    assert {each[3] for each in played} == {(70.0, 0.0, 260.0)}


@pytest.mark.parametrize(
    "other",
    [
        {"action": np.array([0, 2])},
        {"finished_ms": np.array([4.0, 5.0])},
        {"updates": 3},
        {"update_decisions": 4},
        {"rides": 1},
        {"status_bytes": 41.0},
        {"status": None},
        {"status": SimpleNamespace(aoi_ms=1.5, peak_aoi_ms=np.nan, decision_age_ms=2.0)},
    ],
)
def test_outcomes_are_the_same_only_if_all_of_them_are(other):
    one, changed = _outcome(0), _outcome(0, **other)
    assert conformance._same([one, one], [_outcome(0), _outcome(0)])
    assert not conformance._same([one, changed], [one, one])
    assert not conformance._same([one, one], [changed, one])
