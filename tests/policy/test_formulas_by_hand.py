"""More formulas of policies with numbers that can be checked on paper."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load
from cosmo.node import ResultObservation
from cosmo.policy.controller import Controller, TrainedRun
from cosmo.policy.dispatchers import prices
from cosmo.policy.dispatchers.admission import rejected_share
from cosmo.policy.learned import Agents
from cosmo.policy.next.crowd import formulas
from cosmo.policy.next.crowd.numbers import START
from cosmo.policy.next.crowd.parts import PARTS, without
from cosmo.policy.queue import append, first_slots
from cosmo.policy.updaters.to_friends import RidingUpdater
from observations import site


def test_the_share_that_admission_rejects():
    # Of 9 tasks 3 have succeeded, enough for 3 / 0.75 = 4 of them: 5 too many, of 9 + 1.
    assert rejected_share(9.0, 3.0, 0.75, 1.0, 0.9) == pytest.approx(0.5)
    assert rejected_share(9.0, 3.0, 0.75, 2.0, 0.9) == pytest.approx(math.sqrt(0.5))
    assert rejected_share(9.0, 3.0, 0.75, 2.0, 0.6) == 0.6
    assert rejected_share(9.0, 9.0, 0.75, 1.0, 0.9) == 0.0


def test_prices_on_capacity():
    assert prices.most_cycles(900.0, 2.0, 30.0) == 840.0
    assert prices.most_cycles_at(1000.0, 40.0, 0.0125, 60.0) == 750.0
    assert prices.counted(4.0, 0.0, 100.0) == 5.0
    assert prices.counted(4.0, 100.0, 100.0) == pytest.approx(4.0 / math.e + 1.0)
    # After 99 ms of a horizon of 100 an EN has seen 1 - 1/e of it.
    assert prices.load(0.5, 12.0, 99.0, 100.0) == pytest.approx(
        6.0 / (100.0 * (1.0 - 1.0 / math.e))
    )
    assert prices.load(0.5, 12.0, 1e9, 100.0) == pytest.approx(6.0 / 100.0)


def test_slots_that_a_node_does_not_have_are_never_free():
    free = first_slots(np.array([2, 3]), (1,))
    assert free.tolist() == [[[0.0, 0.0, np.inf], [0.0, 0.0, 0.0]]]
    place = np.zeros(1, np.int64), np.zeros(1, np.int64)
    done = [float(append(free, place, np.array([4.0]), np.array([10.0]))[0]) for _ in range(3)]
    assert done == [14.0, 14.0, 24.0]


def test_a_status_rides_when_the_last_one_is_just_old_enough():
    updater = RidingUpdater(site(load("campus")), 2, 1, gap_ms=8.0)

    def rides(time_ms):
        one = np.zeros(1, np.int64)
        given = one, one, one, np.array([time_ms]), *np.zeros((2, 1, 6)), np.array([np.nan])
        return updater.ride(ResultObservation(*given)).tolist()

    assert [rides(time_ms) for time_ms in (1.0, 8.5, 9.0, 16.5, 17.0)] == [
        [True], [False], [True], [False], [True],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seed", "rate", "variation", "run"),
    [
        (4, 100.0, 0.0, 0),
        (4, 100.0, 1.0, 1),
        (4, 290.0, 1.0, 2),
        (7, 100.0, 0.0, 3),
        (9, 100.0, 0.9, 1),
    ],
)
def test_a_site_gets_the_run_that_was_trained_for_the_nearest_load(seed, rate, variation, run):
    told = ((4, 100.0, 0.0), (4, 100.0, 1.0), (4, 300.0, 0.0), (7, 200.0, 0.5))
    controller = Controller(
        Path("trained"), "cosmo", tuple(TrainedRun(*each) for each in told), 1, None, {}
    )
    where = SimpleNamespace(tasks=SimpleNamespace(rate=rate, squared_variation=variation))
    assert controller.run_of(seed, where) == run


def test_the_inputs_of_an_en_s_branches():
    layers = {"local1.w": np.zeros((3, 10, 64)), "remote1.w": np.zeros((3, 5, 64))}
    assert Agents.en_inputs.fget(SimpleNamespace(en=layers)) == (10, 5)


def test_what_a_crowd_is_without_a_part():
    assert without(START, "doubt") == START._replace(doubt_ms=0.1, doubt_age=0.0, doubt_rivals=0.0)
    nothing = {name for name in PARTS if set(PARTS[name].values()) == {0.0}}
    assert nothing == set(PARTS) - {"keeping", "doubt", "full"}


def test_formulas_of_a_crowd():
    assert formulas.squash(0.0) == 0.5
    assert formulas.squash(np.array([0.75, -0.75])) == pytest.approx([0.8, 0.2])
    p = SimpleNamespace(drain=1.0, settle_ms=30.0, hold_ms=50.0)
    assert formulas.later(20.0, 5.0, 0.4, p) == pytest.approx(17.0)  # 0.6 ms a ms is done
    assert formulas.later(2.0, 50.0, 0.4, p) == 0.0
    assert formulas.later(2.0, 60.0, 1.5, p) == pytest.approx(12.0)  # grows for 20 of the 60 ms
    assert formulas.still_full(np.array([0.0, 50.0, np.inf]), p).tolist() == [1.0, 0.5, 0.0]
    assert formulas.smoothed(0.25, 2.0, 8.0, 100.0) == 0.25  # 2 every 8 is a rate of 1/4
    assert formulas.number(12.0, 0.0, 220.0) == 12.0
    assert formulas.number(12.0, 1.0, 220.0) == 232.0
    assert formulas.number(900.0, 0.0, 220.0) < 220.0  # much work is not the same as no room


def test_chance_and_worth_in_a_crowd():
    p = START._replace(settle_ms=40.0, doubt_ms=5.0, doubt_age=0.1, doubt_rivals=0.2, blame=1.0)
    doubt = 5.0 + (0.1 + 0.2 * 0.5) * 20.0  # 40 ms old counts for 20
    chance = formulas.chance(0.75 * doubt, 40.0, 0.5, 0.5, 1.0, p)
    assert chance == pytest.approx(0.8 * 0.5 / 2.0)
    p = p._replace(worse=2.0, firm=1.0, worth=0.5, usage_ms=10.0, insist=0.1, confirm=0.02)
    assert formulas.news(0.2, 0.5, 0.0, 0.0, p) == pytest.approx(0.6)
    assert formulas.news(0.5, 0.2, 0.0, 1.0, p) == pytest.approx(0.6)
    assert formulas.news(0.5, 0.2, 1.0, 1.0, p) == pytest.approx(0.3)  # full, as expected
    p = p._replace(center_ms=30.0, width_ms=20.0)
    assert formulas.use(30.0, 0.0, p) == 0.5
    assert formulas.use(15.0, 0.25, p) == pytest.approx(0.8 * 0.75)
    assert formulas.worth(0.6, 30.0, 40.0, p) == pytest.approx(0.5 * (6.0 + 3.0) + 0.1)
