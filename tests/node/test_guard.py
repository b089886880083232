"""A policy's mistake is one line that names the policy, not a traceback, not half a result."""

import numpy as np
import pytest

from cosmo import Dispatcher, InputError, Method, Updater, load, simulate
from cosmo.node import RAW

SHORT = load("paper", ["episode.window_ms=200", "episode.warmup_ms=0"])


class Faulty(Method, Dispatcher):
    """Answers what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return self.answer(len(tasks))


class Local(Dispatcher):
    def decide(self, tasks):
        return np.zeros(len(tasks), int)


class Regular(Updater):
    def decide(self, nodes):
        return np.ones(len(nodes), bool), np.full(len(nodes), 50.0)


class FaultyUpdater(Method, Updater):
    """Local, with an updater that answers what it is told to."""

    carries = RAW

    def __init__(self, answer):
        self.answer = answer

    def dispatcher(self, site):
        return Local()

    def updater(self, site):
        return self

    def decide(self, nodes):
        return self.answer(len(nodes))


class FaultyEncoder(FaultyUpdater):
    """The same with what a status carries."""

    def decide(self, nodes):
        return Regular().decide(nodes)

    def encode(self, states):
        return self.answer(len(states))


def _boom(count):
    raise RuntimeError("boom\nand more")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n: np.zeros(n + 1, int), r"gave an array of shape \(2,\), must give an action for"),
        (lambda n: 0, "gave a single value"),
        (lambda n: None, "gave a single value"),
        (lambda n: np.full(n, np.nan), "actions are float64, must be whole numbers"),
        (lambda n: np.full(n, 0.5), "actions are float64, must be whole numbers"),
        (lambda n: np.ones(n, bool), "actions are bool, must be whole numbers"),
        (lambda n: ["local"] * n, "must be whole numbers"),
        (lambda n: np.full(n, 3), "action = 3: must be from 0 to 2"),
        (lambda n: np.full(n, -1), "action = -1: must be from 0 to 2"),
        (_boom, r"failed at test_guard.py, line \d+ \(RuntimeError: boom\)"),
    ],
)
def test_a_faulty_dispatcher(answer, reason):
    with pytest.raises(InputError, match=f"method Faulty.*{reason}") as caught:
        simulate(SHORT, Faulty(answer))
    assert "\n" not in str(caught.value)


def test_a_dispatcher_that_reads_statuses_without_numbers_is_told_of_carries():
    class Reader(Method, Dispatcher):
        def dispatcher(self, site):
            return self

        def decide(self, tasks):
            return (tasks.status[:, 0, 2] > 0).astype(int)

        def updater(self, site):
            return Regular()

    with pytest.raises(InputError, match=r"IndexError: .*as its `carries` is 0\)$"):
        simulate(SHORT, Reader())
    Reader.carries = RAW
    simulate(SHORT, Reader())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n: True, r"must give a pair \(send, interval_ms\)"),
        (lambda n: (True, 5.0), "must give one of each for each of 1 rows"),
        (lambda n: (np.ones(n, bool), np.zeros(n)), "intervals must be greater than 0 ms"),
        (lambda n: (np.ones(n, bool), np.full(n, np.nan)), "intervals must be greater than 0 ms"),
        (lambda n: (np.ones(n, bool), np.full(n, -np.inf)), "intervals must be greater than 0 ms"),
        (lambda n: (["yes"] * n, np.ones(n)), "truth values and numbers of ms"),
        (_boom, "RuntimeError: boom"),
    ],
)
def test_a_faulty_updater(answer, reason):
    with pytest.raises(InputError, match=f"method FaultyUpdater.*{reason}"):
        simulate(SHORT, FaultyUpdater(answer))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n: np.zeros((n, RAW + 1)), r"encode gave an array of shape \(1, 5\), must give 4"),
        (lambda n: np.zeros(n), "must give 4 numbers for each of 1 rows"),
        (lambda n: None, "encode gave a single value"),
        (lambda n: np.full((n, RAW), np.nan), "encode must give finite numbers"),
        (lambda n: np.full((n, RAW), np.inf), "encode must give finite numbers"),
        (lambda n: [["a"] * RAW] * n, "encode must give finite numbers"),
        (_boom, "RuntimeError: boom"),
    ],
)
def test_a_faulty_encoder(answer, reason):
    with pytest.raises(InputError, match=f"method FaultyEncoder.*{reason}") as caught:
        simulate(SHORT, FaultyEncoder(answer))
    assert "\n" not in str(caught.value)


def test_a_dispatcher_that_cannot_say_what_it_would_do():
    class Unsure(Faulty):
        """Fails when it is asked for the sake of `decision_regret`."""

        carries = RAW

        def updater(self, site):
            return Regular()

        def decide(self, tasks):
            return np.zeros(len(tasks), int)

        def would_decide(self, tasks):
            return self.answer(len(tasks))

    for answer, reason in ((_boom, "RuntimeError: boom"), (lambda n: np.full(n, 9), "action = 9")):
        with pytest.raises(InputError, match=f"method Unsure.*{reason}"):
            simulate(SHORT, Unsure(answer))


def test_a_method_that_lacks_a_part_says_which():
    class Empty(Method):
        """Nothing."""

    with pytest.raises(InputError, match="Empty has no dispatcher"):
        simulate(SHORT, Empty())

    class Silent(Faulty):
        """No updater."""

        carries = RAW

    with pytest.raises(InputError, match="Silent has no updater"):
        simulate(SHORT, Silent(lambda n: np.zeros(n, int)))

    class Idle(Faulty):
        """Parts that do not decide."""

        carries = RAW

        def dispatcher(self, site):
            return Dispatcher()

        def updater(self, site):
            return Updater()

    with pytest.raises(InputError, match="Updater does not decide"):
        simulate(SHORT, Idle(None))
    Idle.carries = 0
    with pytest.raises(InputError, match="Dispatcher does not decide"):
        simulate(SHORT, Idle(None))


def test_parts_of_another_make_are_one_line():
    class Duck:
        """Has the right call, and none of the others."""

        def decide(self, rows):
            return np.zeros(len(rows), int)

    class Quacks(Faulty):
        """A dispatcher that is none."""

        def dispatcher(self, site):
            return Duck()

    with pytest.raises(InputError, match="Quacks: dispatcher gave a Duck, which must be a cosmo"):
        simulate(SHORT, Quacks(None))

    class Waddles(FaultyUpdater):
        """An updater that is none."""

        def updater(self, site):
            return Duck()

    with pytest.raises(InputError, match="Waddles: updater gave a Duck, which must be a cosmo"):
        simulate(SHORT, Waddles(None))


def test_an_updater_may_say_never_again():
    asked = []

    class Once(FaultyUpdater):
        """One status."""

        def decide(self, nodes):
            asked.append(float(nodes.time_ms[0]))
            return np.ones(len(nodes), bool), np.full(len(nodes), np.inf)

    [outcome] = simulate(SHORT, Once(None)).outcomes
    assert asked == [0.0]
    assert outcome.updates == 1
