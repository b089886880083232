"""The truth is handed to who asks for it by name, and to nobody else."""

import numpy as np
import pytest

from cosmo import Dispatcher, InputError, Method, load, simulate
from cosmo.control.yardsticks import FullInformation, Yardstick

SHORT = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])


class Sly(FullInformation):
    """A yardstick that does not say so."""

    privileged = False


class Vain(Method, Dispatcher):
    """Says that it is one, and is not."""

    privileged = True

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return np.zeros(len(tasks), int)


class Wrong(Method, Yardstick):
    """Is one, and answers nonsense."""

    privileged = True

    def __init__(self, answer):
        self._answer = answer

    def dispatcher(self, site):
        return self

    def decide_knowing(self, tasks, truth):
        return self._answer(truth)


def test_a_method_that_does_not_say_that_it_is_privileged_is_not_told():
    with pytest.raises(InputError, match=r"method Sly.*does not decide"):
        simulate(SHORT, Sly())


def test_a_privileged_method_must_ask_for_the_truth():
    with pytest.raises(InputError, match="method Vain: is privileged, so its dispatcher must be"):
        simulate(SHORT, Vain())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda truth: np.full(len(truth.delay_ms), 9), "action = 9: must be from 0 to 2"),
        (lambda truth: truth.nothing, "failed at .*AttributeError"),
    ],
)
def test_answers_of_yardsticks_are_checked_like_any(answer, reason):
    with pytest.raises(InputError, match=f"method Wrong.*{reason}"):
        simulate(SHORT, Wrong(answer))
