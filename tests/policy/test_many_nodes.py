"""Methods for many nodes: whom an EN keeps to, what it expects, and who is told."""

import numpy as np
import pytest

from cosmo import InputError, load, method, play
from cosmo.node import IDLE, STORAGE, WORK, SnStates
from cosmo.policy.rules import power_of_d
from cosmo.policy.rules.run import seen_tasks
from cosmo.policy.subsets import en_subset, sn_subset
from cosmo.workload import episode
from cosmo.world import Worlds
from observations import site, tasks

CAMPUS = load(
    "campus", ["en.count=6", "sn.count=4", "episode.window_ms=600", "episode.warmup_ms=0"]
)
SITE = site(CAMPUS)
FULL_RATE = CAMPUS.sn.slots * CAMPUS.sn.cycles_per_ms


def test_every_en_keeps_to_as_many_and_every_sn_is_kept_to_alike():
    kept = sn_subset(SITE, keep=2)
    assert kept.sum(axis=1).tolist() == [2] * 6
    assert kept.sum(axis=0).tolist() == [3] * 4
    assert len({tuple(row) for row in kept}) > 1  # not all to the same
    assert sn_subset(SITE, keep=9).all()
    # The SNs' side of the same.
    assert (en_subset(SITE, 2) == kept.T).all()


def test_sns_are_kept_to_in_proportion_to_their_speed():
    uneven = load("campus", ["en.count=12", "sn.count=2", "sn.cycles_per_ms=[10000, 30000]"])
    assert sn_subset(site(uneven), keep=1).sum(axis=0).tolist() == [3, 9]


def test_nobody_is_a_friend_who_is_not_reached():
    city = load("city")
    there = site(city)
    assert not (sn_subset(there, 4) & ~there.links.exist).any()
    assert en_subset(there, 4).sum() == 4 * city.en.count


def _state(idle, work, storage):
    state = np.zeros((1, 6))
    state[0, [IDLE, WORK, STORAGE]] = idle, work, storage
    return SnStates(np.zeros(1, int), np.zeros(1, int), np.array([100.0]), state)


def test_the_one_number_is_the_wait_for_a_slot():
    room = CAMPUS.sn.storage_bytes
    encode = power_of_d.updater(SITE, power_of_d.REGULAR, 3, 1, 1.0).encode
    assert encode(_state(1, 5.0 * FULL_RATE, room)) == 0.0
    assert encode(_state(0, 5.0 * FULL_RATE, room)) == 5.0
    assert encode(_state(1, 5.0 * FULL_RATE, 49_999.0)) == 220.0  # no task fits in


@pytest.mark.parametrize("numbers", [1, 4])
def test_an_en_adds_what_it_has_sent_since_the_status_was_made(numbers):
    busy = [7.0] if numbers == 1 else [0.0, 0.0, 7.0 * FULL_RATE, CAMPUS.sn.storage_bytes]
    rule = power_of_d.dispatcher(SITE, d=4, keep=4, numbers=numbers)

    def expect(seen):
        """([k] the wait in ms, [k] whether there is room)."""
        rows = seen_tasks(seen)
        each = [power_of_d.expected(rows, rule.state, 0, column) for column in range(4)]
        return tuple(np.array(column) for column in zip(*each, strict=True))

    seen = tasks(CAMPUS, carries=numbers, status=busy, time_ms=992.0, local_room=False)
    assert expect(seen)[0].tolist() == [5.0] * 4  # 2 of the 7 ms have been done since
    [sent_to] = rule.decide(seen)
    expected, room = expect(seen)
    more = 540_000.0 / FULL_RATE
    assert expected[sent_to - 1] == pytest.approx(5.0 + more)
    assert np.delete(expected, sent_to - 1).tolist() == [5.0] * 3
    assert room.all()
    # A later status has it in it.
    newer = tasks(CAMPUS, carries=numbers, status=busy, time_ms=1100.0, status_ms=1100.0)
    assert expect(newer)[0].tolist() == [7.0] * 4


def test_tasks_go_to_d_sns_at_random_of_those_that_are_kept_to():

    def drawn(rule, number):
        state, seen = rule.with_draws(300), seen_tasks(tasks(CAMPUS, carries=1, task=number))
        return np.array([power_of_d.drawn(seen, state, 0, column) for column in range(4)])

    rule = power_of_d.dispatcher(SITE, d=2, keep=3, numbers=1)
    many = [drawn(rule, number) for number in range(300)]
    kept = sn_subset(SITE, 3)[0]
    assert {int(each.sum()) for each in many} == {2}
    share = np.mean(many, axis=0)
    assert (share[~kept] == 0).all()
    np.testing.assert_allclose(share[kept], 2 / 3, atol=0.1)
    again = power_of_d.dispatcher(SITE, d=2, keep=3, numbers=1)
    np.testing.assert_array_equal(drawn(again, 7), many[7])


def test_a_friend_is_told_when_the_wait_has_moved_and_nobody_else():
    updater = power_of_d.updater(SITE, power_of_d.MOVED, 2, 1, 1.0, threshold_ms=5.0)
    worlds = Worlds(CAMPUS, [episode(CAMPUS, 0, 0)], 1)
    turn = worlds.advance()
    seen = turn.update

    def told(time_ms, work_ms):
        seen.time_ms[:] = time_ms
        seen.sn_state[:, IDLE] = 0.0
        seen.sn_state[:, WORK] = work_ms * FULL_RATE
        return updater.decide(seen)[0]

    kept = en_subset(SITE, 2)[seen.sn]
    assert not told(10.0, 5.0).any()
    np.testing.assert_array_equal(told(11.0, 6.0), kept)
    assert not told(15.0, 2.0).any()  # as was to be expected
    assert not told(15.0, 7.0).any()
    np.testing.assert_array_equal(told(16.0, 7.1), kept)


def test_statuses_ride_on_results_as_far_apart_as_asked():
    scenario = load("campus", ["workload.rate=150", "episode.window_ms=800", "episode.warmup_ms=0"])
    worlds = [episode(scenario, 0, 0)]
    [often], [seldom] = (
        play(scenario, method(f"piggyback:gap_ms={gap}"), worlds) for gap in (0.001, 100)
    )
    assert 0 < seldom.updates < often.updates
    pairs = scenario.en.count * scenario.sn.count
    longest_ms = 800.0 + 220.0 + 100.0  # results go on coming in after the window
    assert seldom.updates <= pairs * (longest_ms / 100.0 + 1)
    assert method("piggyback").updater(site(scenario)).rides


def test_an_impossible_number_of_numbers_is_refused_in_one_line():
    with pytest.raises(InputError, match="numbers = 3: must be 1 or 4"):
        method("power-of-d:numbers=3")
