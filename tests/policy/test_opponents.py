"""Opponents of the field on situations made by hand: whom they choose, and what ends a task."""

import numpy as np
import pytest

from cosmo import Feedback, InputError, UpdateObservation, load, method, play
from cosmo.node import DONE, GIVEN_UP, IDLE, REFUSED, REQUESTS, STORAGE, WORK, SnStates
from cosmo.workload import episode
from observations import site, tasks

CAMPUS = load("campus", ["sn.count=3"])  # SNs of 4 slots, 108000 cycles/ms; the mean task 650000
LOCAL, REJECT = 0, 4
FULL_RATE = 108_000.0
UNANSWERED = 4  # a fate that is neither a result nor a refusal: the deadline has passed (R38)
ALL = ("jbt", "aoii", "jiq", "lsq", "sparse-jsq", "in-flight", "leaky-bucket")
COUNTING = ("lsq", "in-flight")  # those that go by own tasks without an answer


class En:
    """EN 0 with a method; it has no room of its own unless that is said."""

    def __init__(self, name, scenario=CAMPUS):
        self.method, self.scenario, self.sent = method(name), scenario, 0
        self.rule = self.method.dispatcher(site(scenario))

    def decide(self, effect=True, **fields):
        """What it does with the next task; `status` has the numbers of each SN."""
        carries = self.method.carries
        status = fields.pop("status", [0.0] * self.scenario.sn.count)
        given = {"local_room": False, "deadline_ms": 1e3, "task": self.sent, **fields}
        if carries:
            given["status"] = np.reshape(status, (-1, 1))
        seen = tasks(self.scenario, carries=carries, **given)
        if not effect:
            return int(self.rule.would_decide(seen)[0])
        self.sent += 1
        return int(self.rule.decide(seen)[0])

    def hear(self, task, action, fate=DONE, in_time=True, time_ms=1000.0):
        row = (np.array([value]) for value in (0, 0, task, action, fate, in_time, time_ms))
        self.rule.observe(Feedback(*row))


OPEN = {"jbt": 1.0, "aoii": 1.0, "jiq": 9.0, "lsq": 0.0, "sparse-jsq": 0.0}


def _idle(name):
    """Statuses of three idle SNs."""
    return {"status": [OPEN[name]] * 3} if name in OPEN else {}


@pytest.mark.parametrize("name", ALL)
def test_a_task_runs_at_the_en_if_that_is_surely_in_time(name):
    """A task of 540000 cycles takes 3 + 30 ms at the EN; its wait there counts three times."""
    en = En(name)
    here = {"local_room": True, **_idle(name)}
    assert en.decide(deadline_ms=33.0, effect=False, **here) == LOCAL
    assert en.decide(deadline_ms=63.0, local_wait_ms=10.0, effect=False, **here) == LOCAL
    assert en.decide(deadline_ms=62.0, local_wait_ms=10.0, effect=False, **here) in (1, 2, 3)


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_rejected_that_should_be_in_time_at_the_en(name):
    en = En(name)
    far = {"up_backlog_ms": 500.0, "deadline_ms": 62.0, **_idle(name)}
    assert en.decide(local_room=True, local_wait_ms=10.0, **far) == LOCAL
    assert en.decide(local_room=True, local_wait_ms=30.0, **far) == REJECT
    assert en.decide(**far) == REJECT


@pytest.mark.parametrize("name", [*ALL, "self-tracking", "back-off", "priced-books", "never"])
def test_of_equal_sns_each_is_taken_as_often(name):
    """The first task of each of 600 worlds."""
    rule = method(name).dispatcher(site(CAMPUS, episodes=600))
    carries = method(name).carries
    status = {} if carries != 1 else {"status": np.reshape(_idle(name)["status"], (-1, 1))}
    seen = tasks(CAMPUS, 600, carries=carries, local_room=False, deadline_ms=1e3, **status)
    share = np.bincount(rule.decide(seen), minlength=5) / 600
    np.testing.assert_allclose(share, [0.0, 1 / 3, 1 / 3, 1 / 3, 0.0], atol=0.06)


@pytest.mark.parametrize("name", ["strict", "estimate", "prequal", "power-of-d"])
def test_rules_on_statuses_break_ties_at_random(name):
    names = {"strict": "periodic", "estimate": "aoi-threshold/estimate", "power-of-d": "power-of-d"}
    made = method(names.get(name, name))
    made.strict = name == "strict"
    rule = made.dispatcher(site(CAMPUS, episodes=300))
    busy = [2.0, 0.0, 2e6, 100_000.0, 9.0, 90.0]  # for `prequal`, which never rejects
    seen = tasks(CAMPUS, 300, carries=made.carries, local_room=False, en_state=busy)
    seen.deadline_ms[:] = 1e3
    assert (np.bincount(rule.decide(seen), minlength=5)[1:4] > 60).all()


def test_ties_with_the_en_go_to_the_en_and_one_sn_needs_no_draws():
    paper = load("paper")
    en = En("self-tracking", paper)
    tie = {"local_room": True, "deadline_ms": 60.0}
    remote = 3 + 3 + 2 + 0.125 + 20 + 2 + 2 * 1000 / 24000
    assert en.decide(local_wait_ms=remote - 33.0 + 1.0, **tie) == 1
    assert not en.rule.has_draws
    assert En("self-tracking").rule.has_draws


@pytest.mark.parametrize("name", ["in-flight", "lsq", "sparse-jsq"])
def test_tasks_go_where_the_fewest_own_ones_are(name):
    en = En(name)
    first = [en.decide() for _ in range(12)]
    assert sorted(first[:3]) == sorted(first[3:6]) == sorted(first[6:9]) == [1, 2, 3]
    slots = load("campus", ["sn.count=3", "sn.slots=[1, 2, 8]"])
    uneven = En(name, slots)
    many = np.bincount([uneven.decide() for _ in range(22)], minlength=4)
    assert many[1:].tolist() == [2, 4, 16]


@pytest.mark.parametrize("name", COUNTING)
@pytest.mark.parametrize(
    ("fate", "in_time"), [(DONE, True), (DONE, False), (REFUSED, False), (UNANSWERED, False)]
)
def test_an_answer_ends_a_task_and_the_clock_does_not(name, fate, in_time):
    en = En(name)
    first = [en.decide(time_ms=1003.0, status_ms=990.0) for _ in range(6)]
    taken = [first.index(sn) for sn in (1, 2, 3)]
    later = {"time_ms": 1903.0, "generated_ms": 1900.0, "status_ms": 990.0}
    # Two tasks at each SN; an hour would change nothing. SN 2 answers one of them.
    en.hear(taken[1], 2, fate, in_time, time_ms=1400.0)
    if fate == UNANSWERED:
        assert en.decide(effect=False, **later) in (1, 3)  # it has another task there: no trial
        en.hear(first.index(2, taken[1] + 1), 2, time_ms=1450.0)
    assert {en.decide(effect=False, **{**later, "task": task}) for task in range(9)} == {2}


def test_in_flight_rejects_what_would_be_late_behind_own_tasks():
    """An idle SN takes 3 + 5.125 + 20 + 2.08 = 30.2 ms; own tasks ahead 650000/108000 = 6.02 ms
    each, from the fourth on.
    """
    en = En("in-flight")
    for _ in range(12):
        assert en.decide(deadline_ms=31.0) in (1, 2, 3)
    assert en.decide(deadline_ms=31.0) == REJECT
    assert en.decide(deadline_ms=36.1, effect=False) == REJECT
    assert en.decide(deadline_ms=36.3, effect=False) in (1, 2, 3)


def test_a_silent_sn_is_tried_now_and_then_with_one_task_until_it_answers():
    en = En("in-flight")
    silent = en.decide()
    en.hear(0, silent, UNANSWERED, False, time_ms=1100.0)
    soon = {"time_ms": 1299.0, "generated_ms": 1296.0}
    assert silent not in [en.decide(**soon) for _ in range(6)]
    after = {"time_ms": 1300.0, "generated_ms": 1297.0}
    number = en.sent
    assert en.decide(**after) == silent  # two tasks are at each of the others
    assert silent not in [en.decide(**after) for _ in range(6)]
    en.hear(number, silent, DONE, False, time_ms=1310.0)
    assert [en.decide(**after) for _ in range(4)] == [silent] * 4


def test_a_task_that_the_en_abandons_says_nothing_of_its_sn():
    en = En("in-flight")
    at = en.decide()
    en.decide(), en.decide()
    en.hear(0, at, GIVEN_UP, False)
    assert [en.decide(effect=False, task=task) for task in range(5)] == [at] * 5


def test_a_task_that_was_given_up_or_ran_at_the_en_is_no_answer_of_an_sn():
    en = En("in-flight")
    before = [en.decide() for _ in range(5)]
    for action, fate in ((REJECT, GIVEN_UP), (LOCAL, DONE)):
        en.hear(0, action, fate)
    assert en.decide() == ({1, 2, 3} - set(before[3:])).pop()


@pytest.mark.parametrize("name", ["jbt", "aoii"])
def test_tasks_go_to_a_random_open_sn_and_to_no_other(name):
    en = En(name)
    assert {en.decide(status=[1.0, 0.0, 1.0]) for _ in range(40)} == {1, 3}
    assert {en.decide(status=[0.0, 0.0, 1.0]) for _ in range(10)} == {3}
    assert en.decide(status=[0.0] * 3) == REJECT
    assert en.decide(status=[0.0] * 3, status_ms=[[990.0, np.nan, 990.0]]) == 2  # never heard


def test_in_flight_avoids_hot_sns_while_another_is_not():
    en = En("in-flight:hot_ms=20")
    assert [en.decide(status=[0.0, 1.0, 0.0]) for _ in range(3)] == [2, 2, 2]
    assert en.decide(status=[0.0] * 3) in (1, 3)  # all are hot: the fewest own tasks
    assert method("in-flight").carries == 0


def test_an_offered_slot_is_used_once_and_then_any_sn_is_taken():
    en = En("jiq")
    offers = {"status": [0.0, 2.0, 0.0]}
    assert [en.decide(**offers) for _ in range(2)] == [2, 2]
    assert {en.decide(**offers) for _ in range(40)} == {1, 2, 3}
    again = {**offers, "status_ms": [[990.0, 995.0, 990.0]]}  # a new offer
    assert [en.decide(**again) for _ in range(2)] == [2, 2]


def test_lsq_counts_what_came_and_left_since_the_status_was_made():
    en = En("lsq")
    told = {"status": [4.0, 3.0, 3.0], "status_ms": [[990.0, 990.0, 990.0]]}
    assert {en.decide(effect=False, task=task, **told) for task in range(9)} == {2, 3}
    number, first = en.sent, en.decide(**told)
    second = en.decide(**told)
    assert {first, second} == {2, 3}
    assert {en.decide(effect=False, task=task, **told) for task in range(20)} == {1, 2, 3}
    en.hear(number, first, time_ms=1050.0)
    assert {en.decide(effect=False, task=task, **told) for task in range(9)} == {first}
    # A later status has both in it: they are not counted twice.
    newer = {"status": [3.0, 4.0, 4.0], "status_ms": [[1020.0] * 3], "time_ms": 1060.0}
    # What left SN `first` at 1048, and was heard at 1050, is no longer among its four.
    assert {en.decide(effect=False, task=task, **newer) for task in range(20)} == {1, first}


def test_sparse_jsq_keeps_an_upper_bound_between_statuses():
    en = En("sparse-jsq")
    told = {"status": [3.0, 3.0, 2.0]}
    assert en.decide(**told) == 3
    en.hear(0, 3, time_ms=1050.0)  # the result does not shorten the view
    assert {en.decide(effect=False, task=task, **told) for task in range(20)} == {1, 2, 3}
    number, at = en.sent, en.decide(**told)
    en.hear(number, at, REFUSED, False)  # this one never was in the queue
    assert {en.decide(effect=False, task=task, **told) for task in range(20)} == {1, 2, 3}
    newer = {"status": [3.0, 3.0, 2.0], "status_ms": [[990.0, 990.0, 1020.0]], "time_ms": 1030.0}
    assert en.decide(effect=False, **newer) == 3


def test_a_bucket_leaks_by_the_clock_and_own_tasks_fill_it_twice():
    """A task of 540000 cycles is 5 ms of an SN; twice that is poured in. Offloading to an idle SN
    takes 30.2 ms, so that 10 ms in the bucket allow a deadline of 40.3 and not of 40.1.
    """
    en = En("leaky-bucket:d=9", load("campus", ["sn.count=1"]))
    reject = 2
    assert en.decide(deadline_ms=31.0) == 1
    assert en.decide(deadline_ms=40.1, effect=False) == reject
    assert en.decide(deadline_ms=40.3, effect=False) == 1
    assert en.decide(deadline_ms=31.0, time_ms=1013.0, generated_ms=1010.0, effect=False) == 1
    # A failure fills it to 50 ms, a success does nothing.
    en.hear(0, 1, DONE, True, time_ms=1020.0)
    late = {"time_ms": 1030.0, "generated_ms": 1027.0}
    assert en.decide(deadline_ms=31.0, effect=False, **late) == 1
    en.hear(0, 1, REFUSED, False, time_ms=1020.0)
    assert en.decide(deadline_ms=70.1, effect=False, **late) == reject
    assert en.decide(deadline_ms=70.3, effect=False, **late) == 1


def test_the_lowest_bucket_of_d_random_sns_is_taken():
    one, all_of_them = En("leaky-bucket:d=1"), En("leaky-bucket:d=3")
    assert len({one.decide() for _ in range(3)} | {one.decide() for _ in range(9)}) == 3
    for _ in range(5):
        assert sorted(all_of_them.decide() for _ in range(3)) == [1, 2, 3]


class Sn:
    """SN 0 of three ENs with an updater."""

    def __init__(self, name):
        self.updater = method(name).updater(site(CAMPUS))
        self.acknowledged_ms = np.full((1, 3), np.nan)

    def decide(self, time_ms, wait_ms=0.0, idle=0.0, requests=0.0):
        """Whom it tells; every EN acknowledges at once unless `acknowledged_ms` was set."""
        state = np.zeros((1, 6))
        state[0, [IDLE, WORK, STORAGE, REQUESTS]] = idle, wait_ms * FULL_RATE, 480_000.0, requests
        one, links = np.zeros(1), np.ones((1, 3, 3))
        seen = UpdateObservation(
            np.zeros(1, int), np.zeros(1, int), np.array([time_ms]), state, np.arange(3)[None],
            np.zeros((1, 3, 1)), self.acknowledged_ms.copy(), one, one, one, links,
        )  # fmt: skip
        send, self.interval_ms = self.updater.decide(seen)
        said = SnStates(seen.world, seen.sn, seen.time_ms, state)
        self.said = float(self.updater.encode(said)[0, 0])
        self.acknowledged_ms[send] = time_ms
        return np.flatnonzero(send[0]).tolist()


def test_jbt_tells_of_crossings_with_hysteresis():
    sn = Sn("jbt:high_ms=20,low_ms=10")
    assert [sn.decide(1.0, 20.0), sn.decide(2.0, 20.1)] == [[], [0, 1, 2]]
    assert sn.said == 0.0
    assert [sn.decide(3.0, 15.0), sn.decide(4.0, 10.1), sn.decide(5.0, 25.0)] == [[], [], []]
    assert sn.decide(6.0, 10.0) == [0, 1, 2]
    assert sn.said == 1.0
    assert sn.decide(7.0, 19.0) == []
    with pytest.raises(InputError, match="low_ms = 30: must be at most high_ms = 20"):
        method("jbt:high_ms=20,low_ms=30")


@pytest.mark.parametrize("name", ["jbt:high_ms=20,low_ms=20", "aoii:wait_ms=20,age_ms=0.5"])
def test_a_bit_that_was_lost_is_repeated_until_it_is_acknowledged(name):
    sn = Sn(name)
    sn.decide(1.0, 99.0)
    told = sn.decide(2.0, 99.0) or [0, 1, 2]
    sn.acknowledged_ms[0, 1] = np.nan  # lost, or forgotten in an outage
    assert told == [0, 1, 2]
    assert [sn.decide(time, 99.0) for time in (20.0, 50.9, 52.0, 53.0)] == [[], [], [1], []]


def test_aoii_tells_an_en_that_has_been_wrong_for_long_enough():
    sn = Sn("aoii:age_ms=3,wait_ms=20")
    waits = [10.0, 30.0, 30.0, 10.0, 30.0, 30.0, 30.0, 30.0, 30.0]
    told = [sn.decide(float(time), wait) for time, wait in enumerate(waits)]
    assert told == [[]] * 7 + [[0, 1, 2], []]  # wrong from 1 to 3, and from 4 on
    assert sn.said == 0.0


def test_jiq_offers_each_idle_slot_to_one_en_by_turns():
    sn = Sn("jiq")
    assert sn.decide(0.0, idle=4.0) == [0, 1, 2]
    assert sn.said == 1.0
    assert sn.decide(1.0, idle=4.0) == [0]  # the fourth slot
    assert sn.decide(2.0, idle=4.0) == []
    assert sn.decide(3.0, idle=1.0) == []  # three were used …
    assert sn.decide(4.0, idle=2.0) == [1]  # … and one became idle
    assert sn.decide(5.0, idle=0.0) == []
    assert sn.decide(6.0, idle=2.0) == [0, 2]


def test_lsq_tells_one_en_at_a_time_and_sparse_jsq_all_of_them():
    turns, everybody = Sn("lsq:interval_ms=10"), Sn("sparse-jsq:interval_ms=10")
    assert turns.decide(0.0) == everybody.decide(0.0) == []
    assert float(turns.interval_ms[0]) == pytest.approx(10.0 / 3.0)  # SNs come one after another
    assert [turns.decide(time, requests=5.0) for time in (3.3, 13.3, 23.3, 33.3)] == [
        [0], [1], [2], [0],
    ]  # fmt: skip
    assert turns.said == 5.0
    assert everybody.decide(3.3) == [0, 1, 2]


@pytest.mark.parametrize("name", ["jbt:keep=1", "lsq:keep=1", "sparse-jsq:keep=1", "aoii:keep=1"])
def test_an_en_uses_its_subset_of_the_sns_and_others_do_not_tell_it(name):
    scenario = load("campus", ["sn.count=3", "workload.rate=200", "episode.window_ms=600",
                               "episode.warmup_ms=0"])  # fmt: skip
    one, every = (
        play(scenario, method(each), [episode(scenario, 0, 0)])[0]
        for each in (name, name.replace("keep=1", "keep=3"))
    )
    offloaded = {(en, action) for en, action in zip(one.tasks.en, one.action, strict=True)
                 if 0 < action < REJECT}  # fmt: skip
    assert len(offloaded) == 3  # three ENs, each with an SN of its own
    assert one.updates <= every.updates
