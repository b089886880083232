"""Answers that are right but for one thing, each alone: a line says which."""

from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError, Method, load
from cosmo.node.guard import (
    ask,
    check_carries,
    checked_actions,
    checked_numbers,
    checked_ride,
    checked_update,
)
from observations import tasks

UNEVEN = load("campus", ["sn.count=3", "backhaul.reach=[[0, 1, 2], [1], [0, 2]]"])
REACH = [[0, 1, 2], [1, -1, -1], [0, 2, -1]]


def _refused(why, call, *given):
    with pytest.raises(InputError) as raised:
        call("who", *given)
    assert str(raised.value) == f"method str{why}"


def test_what_an_en_does_not_reach_is_refused_alone_and_among_others():
    seen = tasks(UNEVEN, 3, en=[0, 1, 2], sn=REACH)
    for right in ([3, 1, 2], [4, 4, 4], [0, 0, 0]):
        assert checked_actions("who", right, seen).tolist() == right
    two = ": action = 3: EN 2 reaches 2 SNs, so it must be from 0 to 2, or 4"
    one = ": action = 2: EN 1 reaches 1 SNs, so it must be from 0 to 1, or 4"
    _refused(two, checked_actions, [3, 1, 3], seen)
    _refused(one, checked_actions, [0, 2, 3], seen)
    alone = tasks(UNEVEN, 1, en=[2], sn=[REACH[2]])
    _refused(two, checked_actions, [3], alone)
    assert checked_actions("who", [2], alone).tolist() == [2]
    for wrong in (-1, 5):
        _refused(f": action = {wrong}: must be from 0 to 4", checked_actions, [4, wrong, 0], seen)
        _refused(f": action = {wrong}: must be from 0 to 4", checked_actions, [wrong], alone)
    nobody = tasks(UNEVEN, 0, sn=np.zeros((0, 3)))
    assert checked_actions("who", np.zeros(0, int), nobody).tolist() == []


class _Nodes(SimpleNamespace):
    def __len__(self):
        return 2


NODES = _Nodes(ens=2, reached=np.array([[True, True], [True, False]]))


def test_answers_of_an_updater():
    for send, whom in (
        ([True, True], [[True, True], [True, False]]),
        ([0, 1], [[False, False], [True, False]]),
        ([[False, True], [True, True]], [[False, True], [True, False]]),
    ):
        told, wait_ms = checked_update("who", (send, [1, 0.5]), NODES)
        assert (told.tolist(), wait_ms.tolist()) == (whom, [1.0, 0.5])
    pair = ": the updater must give a pair (send, interval_ms)"
    for wrong in ([[True] * 2, [1.0] * 2], ([True] * 2,), ([True] * 2, [1.0] * 2, 0)):
        _refused(pair, checked_update, wrong, NODES)
    kinds = ": the updater must give truth values and numbers of ms"
    for wrong in (([0.5, 1.0], [1.0, 1.0]), ([True, True], ["1", "1"])):
        _refused(kinds, checked_update, wrong, NODES)
    rest = ", must give one of each for each of 2 rows, or to send to some ENs 2 a row"
    for send, interval_ms, shapes in (
        (3, 2, "an array of shape (3,) and an array of shape (2,)"),
        (2, 3, "an array of shape (2,) and an array of shape (3,)"),
    ):
        given = np.ones(send, bool), np.ones(interval_ms)
        _refused(f": the updater gave {shapes}{rest}", checked_update, given, NODES)
    for wrong in ([5.0, 0.0], [np.nan, 5.0]):  # one that is wrong among right ones
        with pytest.raises(InputError, match="intervals must be greater than 0 ms"):
            checked_update("who", ([True, True], wrong), NODES)


def test_answers_on_results_and_numbers_of_statuses():
    assert checked_ride("who", [1, 0], 2).tolist() == [True, False]
    rest = "must give a truth value for each of 2 rows"
    _refused(f": ride gave an array of shape (2,) of float64, {rest}", checked_ride, [1.0, 0.0], 2)
    _refused(f": ride gave an array of shape (1,) of bool, {rest}", checked_ride, [True], 2)
    assert checked_numbers("who", [[1, 2]], 1, 2).tolist() == [[1.0, 2.0]]
    for wrong in ([[1.0, np.nan]], [[True, False]], [["1", "2"]]):
        _refused(": encode must give finite numbers", checked_numbers, wrong, 1, 2)


@pytest.mark.parametrize("carries", [0, 4096, -1, 4097, True, 1.0, "x" * 100])
def test_how_many_numbers_a_status_may_carry(carries):
    class Carries(Method):
        pass

    Carries.carries = carries
    if carries in (0, 4096):
        check_carries(Carries())
        return
    with pytest.raises(InputError) as raised:
        check_carries(Carries())
    shown = repr(carries)[:60]
    assert str(raised.value) == (
        f"method Carries: carries = {shown}: must be a whole number from 0 to 4096"
    )


def _fails(given):
    raise RuntimeError("oh")


def test_a_failure_is_placed_where_it_was_raised():
    line = _fails.__code__.co_firstlineno + 1
    _refused(
        f" failed at test_refused_answers.py, line {line} (RuntimeError: oh)",
        lambda who, given: ask(who, lambda told: _fails(told), given),
        1,
    )
