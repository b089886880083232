"""A policy's mistake is one line that names the policy, not a traceback, not half a result."""

import numpy as np
import pytest

from cosmo import InputError, Method, load, simulate
from cosmo.control import RAW

SHORT = load("paper", ["episode.window_ms=200", "episode.warmup_ms=0"])


class Faulty(Method):
    """Answers what it is told to."""

    def __init__(self, answer):
        self.answer = answer

    def dispatcher(self, setting):
        return self

    def decide(self, tasks):
        return self.answer(len(tasks))


class FaultyUpdater(Method):
    """Local, with an updater that answers what it is told to."""

    carries = RAW

    def __init__(self, answer):
        self.answer = answer

    def dispatcher(self, setting):
        class Local:
            def decide(self, tasks):
                return np.zeros(len(tasks), int)

        return Local()

    def updater(self, setting):
        return self

    def decide(self, nodes):
        return self.answer(len(nodes))


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


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda n: True, r"must give a pair \(send, interval_ms\)"),
        (lambda n: (True, 5.0), "must give one of each for each of 1 rows"),
        (lambda n: (np.ones(n, bool), np.zeros(n)), "intervals must be finite and greater than 0"),
        (lambda n: (np.ones(n, bool), np.full(n, np.nan)), "intervals must be finite"),
        (lambda n: (["yes"] * n, np.ones(n)), "truth values and numbers of ms"),
        (_boom, "RuntimeError: boom"),
    ],
)
def test_a_faulty_updater(answer, reason):
    with pytest.raises(InputError, match=f"method FaultyUpdater.*{reason}"):
        simulate(SHORT, FaultyUpdater(answer))


def test_a_dispatcher_that_cannot_say_what_it_would_do():
    class Unsure(FaultyUpdater):
        """Fails when it is asked for the sake of `decision_regret`."""

        def dispatcher(self, setting):
            return self

        def updater(self, setting):
            return FaultyUpdater(lambda n: (np.ones(n, bool), np.full(n, 50.0)))

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
