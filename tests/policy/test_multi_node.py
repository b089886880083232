"""`cosmo-next` where several ENs or SNs meet, and the controller that comes with the package."""

import numpy as np
import pytest

from cosmo import InputError, load, load_controller, method, play
from cosmo.node import (
    DONE,
    EXPIRED,
    GIVEN_UP,
    IDLE,
    REFUSED,
    REQUESTS,
    STORAGE,
    WORK,
    Feedback,
    UpdateObservation,
)
from cosmo.policy.next.contention import Contention
from cosmo.policy.next.multi_node.scaling import (
    ScaledParameters,
    at_site,
    constant,
    scaled_to_deadline,
    shape_of,
)
from cosmo.policy.next.pair import PairDispatcher
from cosmo.policy.rules import multi_node, multi_node_formulas, multi_node_updates
from cosmo.policy.rules.multi_node_closing import all_open, look
from cosmo.policy.rules.multi_node_parameters import LEAST, START
from cosmo.policy.rules.multi_node_site import profile_of, subset_size
from cosmo.policy.rules.run import Fact, Node, seen_nodes, seen_tasks
from cosmo.policy.subsets import sn_subset
from cosmo.policy.trained import shipped
from cosmo.workload import episode
from observations import site, tasks

SIZE = ("en.count=6", "sn.count=4")
CAMPUS = load("campus", SIZE)
SITE = site(CAMPUS)
FULL_RATE = CAMPUS.sn.slots * CAMPUS.sn.cycles_per_ms
P = START._replace(
    subset_size=2.0, subset_size_per_ratio=0.0, drain_rate=0.9, rival_traffic=0.5,
    status_value=0.06, unreported_weight=0.3, status_lifetime_ms=60.0,
    confirmation_value=0.001, recheck_soon_ms=4.0, recheck_later_ms=8.0, full_boost=0.0,
)  # fmt: skip


def test_which_sns_an_en_uses_and_how_many_rivals_it_has():
    profile = profile_of(SITE, P)
    assert profile.uses.sum(axis=1).tolist() == [2] * 6
    assert (profile.rivals[profile.uses] == 2.0).all()  # 12 of 4 SNs, without itself
    assert not profile.rivals[~profile.uses].any()
    assert (profile.used_by == profile.uses.T).all()
    own = CAMPUS.en.slots * CAMPUS.en.cycles_per_ms
    assert profile.capacity == pytest.approx(own + 2 * FULL_RATE / 3)
    assert profile.price == pytest.approx(4.0 * 0.5 / 96.0)
    share = FULL_RATE / (own + 2 * FULL_RATE)
    assert profile.tasks_per_ms[profile.used_by] == pytest.approx(share * 0.12)
    flow = share * 0.12 * SITE.tasks.mean_cycles / FULL_RATE
    assert profile.work_per_ms[profile.used_by] == pytest.approx((1.0 + 0.5 * 2.0) * flow)
    assert profile.rivals_load[profile.uses] == pytest.approx(2.0 * flow)
    assert not profile.rivals_load[~profile.uses].any()
    assert profile.in_service_ms == pytest.approx(
        SITE.tasks.mean_cycles / CAMPUS.sn.cycles_per_ms * 0.75
    )
    more = P._replace(subset_size_per_ratio=0.75)
    assert subset_size(site(load("volatile")), more) == 7  # 2 + 0.75 · 6, rounded up
    assert subset_size(site(load("district")), more) == 3


def test_no_two_of_an_sn_s_ens_are_told_first():
    """An SN sends statuses a little sooner to some ENs than to others: from -1 to 1, all unlike."""
    phase = profile_of(SITE, P).phase
    assert phase.min() >= -1.0
    assert phase.max() < 1.0
    assert all(len(set(each.round(6))) == len(each) for each in phase)


def test_times_are_in_proportion_to_the_longest_deadline():
    short = scaled_to_deadline(START, 110.0)
    assert short.full_memory_ms == START.full_memory_ms / 2
    assert short.drain_rate == START.drain_rate


def test_parameters_scale_with_the_node_counts_of_a_site():
    volatile, district = (site(load(name)) for name in ("volatile", "district"))
    assert shape_of(volatile) == pytest.approx((-5 / 7, np.log(6) / np.log(600)))
    assert shape_of(district) == pytest.approx((0.2, 1.0))  # each EN meets 20, each SN 30
    near = site(load("district", ["backhaul.reach={ nearest = 4 }"]))
    assert shape_of(near) == pytest.approx((0.2, np.log(4 * 6) / np.log(600)))
    assert shape_of(site(load("district", ["en.count=900", "sn.count=90"]))).size == 1.2
    assert at_site(constant(START), district) == pytest.approx(START)
    flat = constant(START).by_balance
    fit = ScaledParameters(
        START, flat._replace(drain_rate=2.0), flat._replace(drain_rate=-0.5, subset_size=-50.0)
    )
    assert at_site(fit, district).drain_rate == pytest.approx(START.drain_rate * np.exp(0.4 - 0.5))
    assert at_site(fit, district).subset_size == LEAST.subset_size
    assert at_site(fit, volatile).in_service_share == pytest.approx(START.in_service_share)


def _estimate(p=P):
    """A controller of ENs, its state, and the first SN that the first EN uses."""
    rule = multi_node.dispatcher(SITE, p)
    return rule, rule.state, int(np.flatnonzero(rule.state.subset[0])[0])


def _told(column, number, source, now=100.0, **fields):
    status, status_ms = np.zeros((1, 4, 1)), np.full((1, 4), np.nan)
    status[0, column, 0], status_ms[0, column] = number, source
    return tasks(CAMPUS, carries=1, status=status, status_ms=status_ms, time_ms=now, **fields)


def _sent(state, column, now, arrival, number, cycles=10.0 * FULL_RATE):
    row = tasks(CAMPUS, carries=1, time_ms=now, task=number, cycles=cycles)
    multi_node.send(seen_tasks(row), state, 0, column, arrival, 0.0)


def _take(state, column, *told):
    multi_node.take_status(seen_tasks(_told(column, *told)), state, 0, column)


def test_own_sends_come_on_top_of_a_status_when_they_arrive():
    _, state, column = _estimate(P._replace(drain_rate=1.0, rival_traffic=0.0))
    cell = 0, 0, column
    _sent(state, column, 80.0, 85.0, 0)  # before the status was made, which has seen it
    _sent(state, column, 92.0, 96.0, 1)
    _take(state, column, 8.0, 90.0)
    assert state.source[cell] == 90.0
    assert state.work_at[cell] == 96.0
    assert state.work[cell] == pytest.approx(8.0 - 6.0 + 10.0)
    _take(state, column, 220.0 + 3.0, 95.0)  # full
    assert state.full_at[cell] == 95.0
    assert state.work[cell] == pytest.approx(3.0 - 1.0 + 10.0)
    _take(state, column, 50.0, 60.0)  # older than what is known
    assert state.source[cell] == 95.0


def test_the_latest_32_own_sends_count_in_the_order_of_their_arrival():
    """Tasks of 10 ms, one every 8 ms: each finds 2 ms more than the one before."""
    _, state, column = _estimate(P._replace(drain_rate=1.0, rival_traffic=0.0))
    cell = 0, 0, column
    for number in range(40):
        _sent(state, column, 8.0 * number, 8.0 * number, number)
    # A status of just before the 21st: it and the 19 after it come on top.
    _take(state, column, 0.0, 159.0, 400.0)
    assert state.work_at[cell] == 312.0
    assert state.work[cell] == pytest.approx(10.0 + 19 * 2.0)
    # One of just before the 33rd, which is remembered where the first was: it and 7 after it.
    _take(state, column, 5.0, 255.0, 400.0)
    assert state.work[cell] == pytest.approx(5.0 - 1.0 + 10.0 + 7 * 2.0)


def test_own_sends_beyond_the_latest_32_are_forgotten_the_oldest_first():
    rule, state, column = _estimate(P._replace(drain_rate=1.0, rival_traffic=0.0))
    cell = 0, 0, column
    for number in range(40):
        _sent(state, column, 1.0 + number, 1.0 + number, number)
    _take(state, column, 0.0, 0.5, 100.0)  # of before all of them: the last 32 are known
    assert state.work[cell] == pytest.approx(32 * 10.0 - 31.0)
    back = SITE.links.result_ms[0, column] + 10.0 * CAMPUS.sn.slots
    rule.observe(_back(column, 7, 500.0))  # the 8th of 40
    assert state.source[cell] == 0.5
    rule.observe(_back(column, 8, 9.0 + back))  # the 9th has waited for nothing; 31 followed it
    ease = P.in_service_share * state.in_service_ms[0]
    assert state.source[cell] == 9.0
    assert state.work[cell] == pytest.approx(0.5 * ease + 10.0 + 31 * 9.0)


def _back(column, task, now, fate=DONE, in_time=True):
    one = np.zeros(1, np.int64)
    action = one + column + 1
    return Feedback(one, one, one + task, action, one + fate, one == (not in_time), one + now)


def test_a_result_tells_how_long_its_task_has_waited():
    rule, state, column = _estimate(P._replace(drain_rate=1.0, rival_traffic=0.0))
    cell = 0, 0, column
    _sent(state, column, 50.0, 55.0, 7)
    service = 10.0 * CAMPUS.sn.slots
    back = SITE.links.result_ms[0, column]
    rule.observe(_back(column, 7, 55.0 + 12.0 + service + back))
    ease = P.in_service_share * state.in_service_ms[0]
    assert state.source[cell] == 55.0
    assert state.work[cell] == pytest.approx(12.0 + ease + 10.0)
    assert state.late_results[cell] == 0.0
    rule.observe(_back(column, 7, 200.0))  # heard of already
    assert state.source[cell] == 55.0
    _sent(state, column, 100.0, 105.0, 9)
    rule.observe(_back(column, 9, 105.0 + 0.25 + service + back))  # a slot was idle
    assert state.work[cell] == pytest.approx(0.5 * ease + 10.0)
    _sent(state, column, 150.0, 155.0, 8)
    rule.observe(_back(column, 8, 300.0, in_time=False))
    assert state.late_results[cell] == 1.0


def test_rivals_are_taken_to_send_a_share_of_what_an_en_sends():
    _, state, column = _estimate(P._replace(rival_traffic=0.25, own_traffic_window_ms=100.0))
    _sent(state, column, 100.0, 105.0, 0)  # 10 ms of work, in 100 + 100 ms
    gain = multi_node.rival_rate(state, 0, 0, column, 200.0)
    assert gain == pytest.approx(0.25 * 2.0 * (10.0 / 200.0) / 2.0)
    assert [multi_node.rival_rate(state, 0, 1, other, 200.0) for other in range(4)] == [0.0] * 4


def test_rivals_have_work_at_an_sn_for_as_long_as_own_tasks_there_have_no_answer():
    """Three tasks of 10 ms: 30 ms of its own mean 2 · 0.1 · 30 ms of two rivals, whatever the clock
    says; a refusal and a result each take 10 ms of its own away.
    """
    calm = P._replace(drain_rate=1.0, rival_traffic=0.0, in_service_share=0.0)
    rule, state, column = _estimate(calm._replace(rivals_in_flight=0.1))
    for number in range(3):
        _sent(state, column, 10.0 + number, 15.0 + number, number)

    def delay(now):
        seen = seen_tasks(tasks(CAMPUS, carries=1, time_ms=now, status_ms=np.nan))
        return multi_node.expected(seen, state, 0, column, 0.0, 0.0)[1]

    idle = delay(5_000.0) - 2 * 0.1 * 30.0
    rule.observe(_back(column, 0, 5_000.0, REFUSED, in_time=False))
    assert delay(5_000.0) == pytest.approx(idle + 2 * 0.1 * 20.0)
    rule.observe(_back(column, 1, 5_000.0, EXPIRED, in_time=False))
    assert delay(5_000.0) == pytest.approx(idle + 2 * 0.1 * 10.0)
    rule.observe(_back(column, 2, 17.0 + SITE.links.result_ms[0, column] + 10.0 * CAMPUS.sn.slots))
    assert delay(5_000.0) == pytest.approx(idle)
    for number in range(40):  # more than are planned; only the latest 32 are remembered
        _sent(state, column, 6_000.0 + number, 6_000.0 + number, 3 + number)
    most = multi_node.PLANNED_FOR * SITE.tasks.deadline_ms[1] * state.planned[0]
    assert most < 2 * 0.1 * 320.0
    assert delay(9_000.0) == pytest.approx(idle + most)
    for number in range(11, 41):
        rule.observe(_back(column, number, 9_000.0, EXPIRED, in_time=False))
    assert delay(9_000.0) == pytest.approx(idle + 2 * 0.1 * 20.0)


def test_an_en_without_rivals_expects_its_own_work_alone():
    alone = site(load("volatile"))
    rule = multi_node.dispatcher(alone, P._replace(rivals_in_flight=10.0))
    assert not rule.state.rivals.any()
    _sent(rule.state, 0, 10.0, 15.0, 0)
    seen = seen_tasks(tasks(load("volatile"), carries=1, time_ms=5_000.0, status_ms=np.nan))
    used, unused = (multi_node.expected(seen, rule.state, 0, sn, 0.0, 0.0) for sn in (0, 1))
    assert used == unused


def test_an_sn_that_lets_a_task_expire_in_silence_may_be_down_until_it_is_heard():
    """R38."""
    calm = P._replace(silent_memory_ms=300.0, late_penalty=0.0, rivals_in_flight=0.0)
    rule, state, column = _estimate(calm)

    def chance(now):
        row = tasks(CAMPUS, carries=1, time_ms=now, generated_ms=now, status_ms=np.nan)
        return multi_node.expected(seen_tasks(row), state, 0, column, 0.0, 0.0)[0]

    up = chance(10_100.0)
    _sent(state, column, 50.0, 55.0, 0)
    _sent(state, column, 60.0, 65.0, 1)
    rule.observe(_back(column, 1, 120.0))  # of a task that came later: the SN is only slow
    rule.observe(_back(column, 0, 130.0, EXPIRED, in_time=False))
    assert chance(10_100.0) == pytest.approx(up, rel=1e-3)
    _sent(state, column, 9_930.0, 9_935.0, 2)
    _sent(state, column, 9_930.0, 9_935.0, 3)
    rule.observe(_back(column, 2, 10_000.0, EXPIRED, in_time=False))
    assert chance(10_000.0) == 0.0
    assert chance(10_100.0) == pytest.approx(up * 100.0 / 400.0, rel=1e-3)
    _take(state, column, 0.0, 9_990.0, 10_100.0)  # it was up then
    assert chance(10_100.0) > 0.9 * up
    rule.observe(_back(column, 3, 10_050.0, EXPIRED, in_time=False))  # it came before that
    assert chance(10_100.0) > 0.9 * up


@pytest.mark.parametrize(("fate", "heard"), [(DONE, True), (REFUSED, True), (GIVEN_UP, False)])
def test_an_answer_is_a_sign_of_life_and_what_an_en_gives_up_itself_is_none(fate, heard):
    """On a real node a client may leave, or a deadline pass, before anything has come."""
    rule, state, column = _estimate(P)
    cell = 0, 0, column
    _sent(state, column, 50.0, 55.0, 0)
    rule.observe(_back(column, 0, 130.0, EXPIRED, in_time=False))
    _sent(state, column, 140.0, 145.0, 1)
    rule.observe(_back(column, 1, 150.0, fate, in_time=False))
    assert state.heard_at[cell] == (150.0 if heard else -np.inf)
    assert state.silent_at[cell] == (-np.inf if heard else 130.0)


def test_equal_sns_are_used_in_turn_where_rivals_load_them():
    kept = P._replace(
        subset_size=4.0, tie_noise=0.0, rivals_in_flight=0.0, rival_traffic=0.0, sn_price=0.0
    )
    away = {"local_room": False, "status_ms": np.nan, "deadline_ms": 200.0}

    def taken(rotation):
        rule = multi_node.dispatcher(SITE, kept._replace(rotation=rotation, drain_rate=9.0))
        times = 1000.0 + 30.0 * np.arange(8)
        asked = [
            tasks(CAMPUS, carries=1, time_ms=now, generated_ms=now, task=number, **away)
            for number, now in enumerate(times)
        ]
        return [int(rule.decide(each)[0]) for each in asked], rule.state

    assert taken(0.0)[0] == [1] * 8
    turns, state = taken(0.5)
    assert turns == [1, 2, 3, 4] * 2
    row = seen_tasks(tasks(CAMPUS, carries=1, time_ms=1300.0)).dispatch[0]
    since = 1300.0 - 1090.0 - 120.0
    share = since / (kept.saturation_ms + since)
    found = multi_node.turn_of(state, row, 3, 0.9)
    assert found == pytest.approx(0.5 * state.rivals_load[0, 3] * 0.9 * share)


def test_an_en_tries_an_sn_that_it_does_not_use_instead_of_a_rejection():
    rule = multi_node.dispatcher(SITE, P._replace(reserve_size=1.0, sn_price=0.0))
    state, now = rule.state, 1003.0
    unused = np.flatnonzero(~state.subset[0])
    state.full_at[0, 0, state.subset[0]] = now  # no chance at all
    away = {"local_room": False, "status_ms": np.nan}
    assert int(rule.decide(tasks(CAMPUS, carries=1, **away))[0]) - 1 in unused
    state.full_at[0, 0, unused[0]] = now
    assert rule.decide(tasks(CAMPUS, carries=1, task=1, **away)).tolist() == [unused[1] + 1]
    state.full_at[0, 0] = now
    assert rule.decide(tasks(CAMPUS, carries=1, task=2, **away)).tolist() == [5]
    near = {"local_wait_ms": 0.0, "status_ms": np.nan}
    state.full_at[0, 0, unused] = -np.inf
    assert rule.decide(tasks(CAMPUS, carries=1, task=3, **near)).tolist() == [0]


def test_ens_that_share_an_sn_share_few_others():
    district = site(load("district"))
    shared = []
    for mixed in (False, True):
        use = sn_subset(district, 6, mixed)
        assert (use.sum(axis=1) == 6).all()
        assert (use.sum(axis=0) == 9).all()
        both = use.astype(int) @ use.T.astype(int)
        shared.append(np.max(both - 6 * np.eye(30, dtype=int)))
    assert shared == [6, 5]


def test_a_turn_does_not_count_against_the_en_itself():
    near = {"local_wait_ms": 0.0, "status_ms": np.nan}
    for rotation in (0.0, 100.0):
        rule = multi_node.dispatcher(SITE, P._replace(rotation=rotation, local_preference=0.5))
        assert rule.decide(tasks(CAMPUS, carries=1, **near)).tolist() == [0]


def test_a_refusal_tells_that_it_was_full():
    rule, state, column = _estimate()
    _sent(state, column, 50.0, 55.0, 7)
    rule.observe(_back(column, 7, 60.0, REFUSED, in_time=False))
    assert state.full_at[0, 0, column] == state.source[0, 0, column] == 55.0
    assert state.work[0, 0, column] == 0.0


def test_an_en_goes_where_it_should_be_in_time_or_nowhere():
    rule = multi_node.dispatcher(SITE, P._replace(tie_noise=0.0, local_preference=0.0))
    first, second = np.flatnonzero(rule.state.subset[0]).tolist()
    away = {"local_room": False, "deadline_ms": 100.0, "generated_ms": 997.0}
    assert rule.decide(_told(first, 60.0, 995.0, 1000.0, **away)).tolist() == [second + 1]
    assert rule.decide(tasks(CAMPUS, carries=1, status_ms=np.nan)).tolist() == [0]
    late = {**away, "deadline_ms": 5.0, "status_ms": np.nan}
    assert rule.decide(tasks(CAMPUS, carries=1, **late)).tolist() == [5]


def test_an_en_prefers_itself_by_so_much():
    near = {"local_wait_ms": 0.0, "status_ms": np.nan}
    for home, action in ((0.5, [0]), (0.0, [0]), (-0.5, [1])):
        rule = multi_node.dispatcher(
            SITE, P._replace(tie_noise=0.0, delay_cost=0.0, local_preference=home, subset_size=4.0)
        )
        assert rule.decide(tasks(CAMPUS, carries=1, **near)).tolist() == action


def test_delay_cost_is_in_longest_deadlines_at_the_en_as_elsewhere():
    near = {"local_wait_ms": 0.0, "status_ms": np.nan, "cycles": 540_000.0, "deadline_ms": 200.0}
    asked = tasks(CAMPUS, carries=1, **near)
    kept = P._replace(tie_noise=0.0, delay_cost=2.0, subset_size=4.0, sn_price=0.0, local_price=0.0)
    rule = multi_node.dispatcher(SITE, kept)
    upload = SITE.upload_ms(asked)[0]
    found = [
        multi_node.expected(seen_tasks(asked), rule.state, 0, column, upload[column], 0.0)
        for column in range(4)
    ]
    score = [sure - kept.failure_cost * (1.0 - sure) - 2.0 * delay / 220.0 for sure, delay in found]
    # At home 540 000 cycles take 30 ms: so much must `home` be for both to be alike.
    home = max(score) - (1.0 - 2.0 * 30.0 / 220.0)
    for more, action in ((1e-6, [0]), (-1e-6, [1])):
        rule = multi_node.dispatcher(SITE, kept._replace(local_preference=home + more))
        assert rule.decide(asked).tolist() == action


def test_capacity_has_a_price_at_high_load():
    rule = multi_node.dispatcher(
        SITE, P._replace(sn_price=0.5, local_price=0.2, price_load=0.25, load_window_ms=100.0)
    )
    capacity, mean = rule.state.capacity[0], SITE.tasks.mean_cycles
    asked = tasks(CAMPUS, carries=1, cycles=100.0 * capacity, generated_ms=100.0)
    # 100 ms of the capacity, in 100 + 100 ms; 0.12 tasks a ms are planned.
    assert 1.4 * 0.12 * mean / capacity > 0.5
    beyond = (0.5 - 0.25) * (100.0 * capacity / mean - 1.0)
    found = [
        multi_node.load_beyond(rule.state, seen_tasks(each).dispatch[0])
        for each in (asked, tasks(CAMPUS, carries=1, cycles=1.0, generated_ms=10_000.0))
    ]
    assert found == pytest.approx([beyond, 0.0])


def test_load_beyond_the_planned_one_has_no_price():
    """R36: an EN with far more than that has more than its share, which others do not use."""
    rule = multi_node.dispatcher(SITE, P._replace(price_load=0.25, load_window_ms=100.0))
    capacity, mean = rule.state.capacity[0], SITE.tasks.mean_cycles
    asked = tasks(CAMPUS, carries=1, cycles=2000.0 * capacity, generated_ms=100.0)
    planned = 0.12 * mean / capacity
    found = multi_node.load_beyond(rule.state, seen_tasks(asked).dispatch[0])
    assert found == pytest.approx((1.4 * planned - 0.25) * (2000.0 * capacity / mean - 1.0))


def test_tasks_that_look_alike_have_no_price():
    """R35: where nodes see the mean demand alone, there are no large tasks to do without."""
    rule = multi_node.dispatcher(SITE, P._replace(price_load=0.0, load_window_ms=100.0))
    asked = tasks(CAMPUS, carries=1, cycles=SITE.tasks.mean_cycles, generated_ms=0.1)
    assert multi_node.load_beyond(rule.state, seen_tasks(asked).dispatch[0]) == 0.0


def _ended_locally(state, off_ms, count=40):
    """Local tasks that should take 30 ms, and end so much later."""
    for number in range(count):
        row = tasks(CAMPUS, carries=1, time_ms=100.0 * number, task=number)
        multi_node.run_locally(state, seen_tasks(row).dispatch[0], 30.0)
        end = 100.0 * number + 30.0 + off_ms
        multi_node.hear(Fact(0, 0, number, 0, DONE, True, end), state)


def test_an_en_measures_how_far_its_estimates_are_off():
    for off_ms, error in ((0.0, 0.0), (1e-9, 0.0), (15.0, 0.5), (-15.0, 0.5)):
        _, state, _ = _estimate()
        assert multi_node.relative_error(state, 0, 0) == 0.0
        _ended_locally(state, off_ms)
        assert multi_node.relative_error(state, 0, 0) == pytest.approx(error)
        assert multi_node.relative_error(state, 0, 1) == 0.0  # another EN


def test_an_en_that_cannot_trust_its_estimates_keeps_a_margin():
    """55 ms at home, and a deadline of 60: in time, if demands are as seen."""
    kept = P._replace(tie_noise=0.0, local_preference=0.2, sn_price=0.0, local_price=0.0)
    near = {"local_wait_ms": 25.0, "status_ms": np.nan, "cycles": 540_000.0, "time_ms": 9000.0}
    asked = tasks(CAMPUS, carries=1, **near, generated_ms=9000.0, deadline_ms=60.0)
    easy = tasks(CAMPUS, carries=1, **near, generated_ms=9000.0, deadline_ms=220.0)
    exact, unsure = (multi_node.dispatcher(SITE, kept) for _ in range(2))
    _ended_locally(exact.state, 0.0)
    _ended_locally(unsure.state, 15.0)
    assert exact.decide(asked).tolist() == [0]
    assert unsure.decide(asked).tolist() != [0]
    assert unsure.decide(easy).tolist() == [0]
    # The same doubt about SNs: the chance to be in time there is less, with slack to spare.
    upload = SITE.upload_ms(easy)[0]
    sure, doubted = (
        multi_node.expected(seen_tasks(easy), rule.state, 0, 0, upload[0], 0.0)[0]
        for rule in (exact, unsure)
    )
    assert doubted < sure


def _seen(work_ms, now=100.0, storage=None, acknowledged=None):
    state = np.zeros((1, 6))
    state[0, WORK] = work_ms * FULL_RATE
    state[0, STORAGE] = CAMPUS.sn.storage_bytes if storage is None else storage
    one, none = np.zeros(1, np.int64), np.zeros((1, 6))
    told, made = (0.0, np.nan) if acknowledged is None else acknowledged
    return UpdateObservation(
        one, one, np.array([now]), state, np.arange(6)[None], none[:, :, None] + told, none + made,
        *np.zeros((3, 1)), np.zeros((1, 6, 3)),
    )  # fmt: skip


def test_an_sn_reports_once_to_the_ens_that_use_it_what_is_worth_it():
    rule = multi_node_updates.updater(SITE, P)
    send, again = rule.decide(_seen(0.0))
    assert not send.any()  # an idle SN is what everybody expects
    assert again.tolist() == [P.recheck_later_ms]
    send, again = rule.decide(_seen(70.0, 110.0))
    assert send.tolist() == [rule.state.subset[0].tolist()]
    assert again.tolist() == [P.recheck_soon_ms]
    assert rule.encode(_seen(70.0).states) == pytest.approx(70.0)
    assert rule.encode(_seen(70.0, storage=49_999.0).states) == pytest.approx(290.0)
    assert not rule.decide(_seen(68.0, 112.0))[0].any()
    dear = multi_node_updates.updater(
        site(load("campus", [*SIZE, "utility.update_weight=4000.0"])), P
    )
    assert not dear.decide(_seen(70.0, 110.0))[0].any()


def _looks(rule, spans):
    """An SN looks every 10 ms while its backlog is so many ms, for so long each; what it sends and
    says then, with the time.
    """
    now, said = 0.0, []
    for work_ms, lasts_ms in spans:
        for _ in range(int(lasts_ms / 10.0)):
            now += 10.0
            seen = _seen(work_ms, now, acknowledged=said[-1][1:] if said else None)
            if rule.decide(seen)[0].any():
                said.append((now, float(rule.encode(seen.states)[0, 0]), now))
    return [each[:2] for each in said]


def test_an_sn_whose_busy_times_last_says_once_that_it_is_closed_and_once_that_it_is_open():
    p = P._replace(closing_lasts_ms=100.0, closing_value=1.0, unreported_weight=0.0)
    rule = multi_node_updates.updater(SITE, p)
    told = _looks(rule, [(0.0, 500.0), (60.0, 600.0), (0.0, 300.0), (60.0, 600.0)])
    closed = [(when, number) for when, number in told if number >= 440.0]
    # The first time this becomes clear only after a while; then it says so at once, and no more.
    assert closed == [(620.0, 60.0 + 440.0), (1410.0, 60.0 + 440.0)]
    assert (1110.0, 0.0) in told
    for now, work_ms, is_closed in ((2010, 15.0, 1), (2020, 9.0, 0), (2030, 15.0, 0)):
        rule.decide(_seen(work_ms, float(now)))  # limits of 30 and 10 ms
        assert rule.state.closing.closed[0, 0] == is_closed
    never = multi_node_updates.updater(SITE, p._replace(closing_lasts_ms=1e9))
    again = _looks(never, [(0.0, 500.0), (60.0, 600.0), (0.0, 300.0), (60.0, 600.0)])
    assert all(number < 440.0 for _, number in again)


def test_an_sn_whose_busy_times_become_long_learns_so_however_many_were_short():
    closing, now = all_open((1, 1)), 0.0
    p = P._replace(closing_lasts_ms=250.0)
    for lasts_ms in [50.0] * 40 + [400.0] * 10:
        look(closing, 0, 0, 60.0, False, now, p)
        look(closing, 0, 0, 0.0, False, now + lasts_ms, p)
        now += lasts_ms + 100.0
    # The latest counts for a tenth: 400 - 350 * 0.9^10; as one of all, for a fiftieth.
    assert closing.lasts_ms[0, 0, 1] == pytest.approx(277.96, abs=0.01)
    look(closing, 0, 0, 60.0, False, now, p)
    assert closing.closed[0, 0] == 1.0  # at once


def test_an_sn_says_again_that_it_is_closed_if_that_was_lost():
    p = P._replace(
        closing_lasts_ms=100.0, closing_value=1.0, unreported_weight=0.0, ack_timeout_ms=50.0
    )
    rule, heard, closed = multi_node_updates.updater(SITE, p), None, []
    for now in np.arange(10.0, 900.0, 10.0):
        seen = _seen(0.0 if now <= 500.0 else 60.0, now, acknowledged=heard)
        if rule.decide(seen)[0].any():
            number = float(rule.encode(seen.states)[0, 0])
            closed += [now] if number >= 440.0 else []
            if len(closed) not in (1, 2):  # the first two that say so are lost
                heard = number, now
    assert closed == [620.0, 680.0, 740.0]


def test_an_sn_that_comes_back_knows_nothing_of_its_busy_times():
    """R38."""
    rule = multi_node_updates.updater(SITE, P._replace(closing_lasts_ms=100.0, closing_value=1.0))
    _looks(rule, [(0.0, 500.0), (60.0, 600.0), (0.0, 300.0), (60.0, 600.0)])
    assert rule.state.closing.closed[0, 0] == 1
    assert (rule.state.closed_at[0, 0] > 0.0).any()
    multi_node_updates.forget(Node(0, 0, 3000.0, [0.0] * 6, 3000.0), rule.state)
    closing = rule.state.closing
    assert closing.since[0, 0] == 3000.0
    for known in (closing.busy, closing.lasts_ms, closing.times, closing.closed):
        assert not known[0, 0].any()
    assert (rule.state.closed_at[0, 0] == -np.inf).all()


def test_an_sn_that_comes_back_says_so_at_once_to_the_ens_that_use_it():
    """R38: an idle SN says nothing at the start, but ENs may take one that was down to be down."""
    rule = multi_node_updates.updater(SITE, P)
    assert not rule.decide(_seen(0.0, 3000.0))[0].any()
    multi_node_updates.forget(Node(0, 0, 3000.0, [0.0] * 6, 3000.0), rule.state)
    assert rule.decide(_seen(0.0, 3000.0))[0][0].tolist() == rule.state.subset[0].tolist()


def test_where_demands_are_unknown_running_local_tasks_may_take_longer():
    mean_ms = SITE.tasks.mean_cycles / SITE.en.full_rate[0]
    for busy, waiting, expected in ((True, 0, 0.8), (True, 2, 2.8), (False, 0, 0.0)):
        own = np.zeros((1, 6))
        own[0, IDLE] = 0.0 if busy else 1.0
        own[0, REQUESTS] = SITE.en.slots[0] + waiting
        _, state, _ = _estimate(P._replace(overrun_wait=0.8))
        row = tasks(CAMPUS, carries=1, en_state=own, local_wait_ms=0.0)
        task = seen_tasks(row).dispatch[0]
        assert multi_node.local_wait_ms(state, task, 0.0) == 0.0  # demands are as seen
        assert multi_node.local_wait_ms(state, task, 0.3) == pytest.approx(expected * mean_ms)


def test_an_en_takes_a_closed_sn_to_be_as_it_said_until_it_opens_or_long_after():
    for number, later, still in (
        (100.0, 1000.0, False),
        (540.0, 1000.0, True),
        (540.0, 2300.0, False),
    ):
        rule, state, column = _estimate()
        rule.decide(_told(column, number, 90.0))
        seen = seen_tasks(_told(column, number, 90.0, now=90.0 + later))
        assert multi_node.is_closed(state, 0, 0, column, 90.0 + later) == still
        _, delay = multi_node.expected(seen, state, 0, column, 5.0, 0.0)
        waits = delay > 100.0 - P.in_service_share * state.in_service_ms[0]
        assert waits == still


def test_an_sn_that_closed_when_it_was_full_has_hardly_any_chance_until_a_result_shows_better():
    rule, state, column = _estimate(P._replace(closed_doubt=0.9))
    rule.decide(_told(column, 3.0 * 220.0, 90.0))  # full and closed, with nothing to do
    seen = seen_tasks(_told(column, 3.0 * 220.0, 90.0, now=1090.0, deadline_ms=1e6))
    assert multi_node.expected(seen, state, 0, column, 5.0, 0.0)[0] == pytest.approx(0.1, abs=0.01)
    _sent(state, column, 1100.0, 1105.0, 7)
    served = state.known.result_ms[0, column] + 10.0 * FULL_RATE / state.known.sn_speed[column]
    multi_node.hear(Fact(0, 0, 7, column + 1, DONE, True, 1105.0 + served), state)
    assert not multi_node.is_closed(state, 0, 0, column, 1300.0)


def test_without_updates_sns_send_nothing():
    off = load_controller(shipped("cosmo-next")).agents.without("updates").multi_node
    rule = multi_node_updates.updater(SITE, off.parameters(SITE))
    assert _looks(rule, [(0.0, 500.0), (200.0, 900.0), (0.0, 300.0), (200.0, 900.0)]) == []


def test_sns_in_reserve_are_used_while_one_is_closed():
    p = P._replace(tie_noise=0.0, rotation=0.0, delay_cost=0.0, reserve_size=4.0)
    rule, state, _ = _estimate(p)
    used = np.flatnonzero(state.subset[0])
    assert state.may_use[0].sum() == 4
    assert len(used) == 2
    status, status_ms = np.zeros((1, 4, 1)), np.full((1, 4), 90.0)
    chosen = {}
    for said in (100.0, 540.0):  # open, closed
        rule, state, _ = _estimate(p)
        status[0, used, 0] = said
        row = tasks(
            CAMPUS, carries=1, status=status, status_ms=status_ms, time_ms=100.0, local_room=False
        )
        chosen[said] = int(rule.decide(row)[0]) - 1
    assert chosen[100.0] in (*used, 4)  # 4: no route is worth it
    assert chosen[540.0] not in (*used, 4)


def test_unreported_change_builds_up_and_some_ens_are_informed_before_others():
    dear = site(load("campus", [*SIZE, "utility.update_weight=4000.0"]))
    rule = multi_node_updates.updater(
        dear, P._replace(deterioration_weight=1.0, full_change_boost=0.0, status_lifetime_ms=50.0)
    )
    rule.decide(_seen(0.0, 100.0))
    rule.decide(_seen(70.0, 110.0))
    used = [multi_node_formulas.usefulness(work, 0.0, P) for work in (0.0, 70.0)]
    grown, using = (used[0] - used[1]) * 10.0, rule.state.subset[0]
    assert rule.state.unreported[0, 0, using] == pytest.approx(grown)
    rule.decide(_seen(70.0, 120.0))
    assert rule.state.unreported[0, 0, using] == pytest.approx(grown * 50.0 / 60.0 + grown)
    dear = site(load("campus", [*SIZE, "utility.update_weight=200.0"]))
    rule = multi_node_updates.updater(dear, P._replace(stagger=0.9))
    for now in range(100, 200):
        send = rule.decide(_seen(45.0, float(now), storage=0.0))[0][0]
        if send.any():
            break
    told, phase = rule.state.subset[0], rule.state.phase[0]
    assert phase[send].min() > phase[told & ~send].max()
    assert rule.state.reported_full_at[0, 0, send].tolist() == [float(now)] * int(send.sum())


def test_an_sn_that_is_often_full_reports_more():
    dear = site(load("campus", [*SIZE, "utility.update_weight=4000.0"]))
    calm, boost = (
        multi_node_updates.updater(dear, P._replace(full_boost=boost, full_window_ms=60.0))
        for boost in (0.0, 3e4)
    )
    boost.decide(_seen(30.0, 20.0, storage=0.0))
    assert boost.state.full_share[0, 0] == pytest.approx(20.0 / 80.0)
    boost.decide(_seen(30.0, 50.0))
    assert boost.state.full_share[0, 0] == pytest.approx(0.25 * 60.0 / 90.0)
    again = _seen(30.0, 60.0, storage=0.0)
    assert not calm.decide(again)[0].any()
    assert boost.decide(again)[0].any()


def test_an_sn_takes_back_what_is_not_acknowledged():
    rule = multi_node_updates.updater(SITE, P._replace(ack_timeout_ms=20.0))
    told = rule.state.subset[0]
    assert rule.decide(_seen(70.0, 110.0))[0][0].tolist() == told.tolist()
    assert not rule.decide(_seen(70.0, 130.0))[0].any()  # may be on its way yet
    assert rule.decide(_seen(70.0, 130.5))[0][0].tolist() == told.tolist()
    known = 220.0 + 9.0, 130.5
    assert not rule.decide(_seen(60.0, 151.0, acknowledged=known))[0].any()
    state = rule.state
    assert state.reported_work[0, 0, told] == pytest.approx(70.0)  # what it told then
    state.reported_at[0, 0] = 140.0  # another one, which is lost
    seen = seen_nodes(_seen(0.0, 161.0, acknowledged=known))
    for column in range(6):
        multi_node_updates.forget_lost(seen, state, 0, column)
    assert state.reported_at[0, 0, told].tolist() == [130.5] * 3
    assert state.reported_full_at[0, 0, told].tolist() == [130.5] * 3
    assert state.reported_work[0, 0, told] == pytest.approx(9.0)


def test_the_controller_of_the_package_needs_no_checkpoint_and_says_what_it_is():
    ours = method("cosmo-next")
    assert ours.carries == 1
    assert ours.dispatcher(SITE).rule.decide is multi_node.decide
    assert isinstance(ours.dispatcher(site(load("paper"))), PairDispatcher)
    folder = shipped("cosmo-next")
    assert load_controller(folder).description["training"]["multi_node"]["objective"] == "success"
    assert sum(each.stat().st_size for each in folder.iterdir()) < 1_000_000
    card = (folder / "CARD.md").read_text()
    for what in ("Trained on", "Seeds", "Results", "Where not to use it"):
        assert what in card
    with pytest.raises(InputError, match="run = 5: must be one of 0"):
        method("cosmo-next:run=5")


def test_parts_can_be_left_out():
    ours, silent = (method(name) for name in ("cosmo-next", "cosmo-next:off=updates"))
    assert silent.dispatcher(SITE).state.p.status_value == 0.0
    assert ours.dispatcher(SITE).state.p.status_value > 0.0
    assert profile_of(SITE, method("cosmo-next:off=subset").dispatcher(SITE).state.p).uses.all()
    calm = method("cosmo-next:off=full_boost").updater(SITE).state.p
    assert calm == ours.updater(SITE).state.p._replace(full_boost=0.0)
    middle = load_controller(shipped("cosmo-next")).agents.multi_node.scaled.middle
    assert method("cosmo-next:off=scaling").updater(SITE).state.p == pytest.approx(middle)
    assert ours.updater(SITE).state.p != pytest.approx(middle)
    with pytest.raises(
        InputError, match="off = 'update': is no part of the multi-node controller, did you mean"
    ):
        method("cosmo-next:off=update")


@pytest.mark.parametrize(("name", "alone"), [("paper", True), ("shared-sn", False)])
def test_prices_decide_until_something_tells_of_others(name, alone):
    scenario = load(name, ["workload.rate=260", "episode.window_ms=1500", "episode.warmup_ms=0"])
    episodes = [episode(scenario, 3, 0)]
    ours, prices = (
        play(scenario, method(each), episodes)[0] for each in ("cosmo-next", "adaptive-prices")
    )
    assert (ours.action == prices.action).all() == alone


def _contention(*done_ms):
    """An EN with one SN, with own tasks that should be done there then."""
    contention = Contention(site(load("paper")))
    for number, done in enumerate(done_ms):
        contention.sent(tasks(load("paper"), carries=1, task=number), np.array([done]))
    return contention


def _there(contention, now):
    return contention.seen(tasks(load("paper"), carries=1, time_ms=now)).tolist()


def test_a_task_that_is_overdue_tells_of_others_once():
    contention = _contention(100.0, np.nan)
    back = float(site(load("paper")).links.result_ms[0, 0])
    assert _there(contention, 100.0 + back + 6.5) == [False]
    assert _there(contention, 100.0 + back + 6.7) == [True]
    assert _there(contention, 100.0 + back + 6.7 + 4400.0) == [True]
    assert _there(contention, 100.0 + back + 6.8 + 4400.0) == [False]


@pytest.mark.parametrize(("own", "told"), [(7, True), (8, False), (9, False)])
def test_a_refusal_tells_of_others_unless_own_tasks_may_have_been_in_the_way(own, told):
    contention = _contention(90.0, *[100.0 + 3.0 * each for each in range(own)])  # it has 9 places
    contention.observe(_back(0, 0, 100.0, REFUSED, in_time=False))
    assert _there(contention, 101.0) == [told]


def _pair_after(late_ms, fate=DONE):
    """One EN with one SN, an offloaded task of which came back so late, at a time; and that."""
    rule = method("cosmo-next").dispatcher(site(load("paper")))
    task = tasks(load("paper"), carries=1, status_ms=np.nan, local_room=False)
    assert rule.decide(task).tolist() == [1]
    due = float(rule._rule.state.backlog.finish.max() + site(load("paper")).links.result_ms[0, 0])
    rule.observe(_back(0, int(task.task[0]), due + late_ms, fate))
    return rule, due


@pytest.mark.parametrize(
    ("late_ms", "fate", "shared"),
    [(0.0, DONE, False), (6.5, DONE, False), (6.7, DONE, True), (0.0, REFUSED, True)],
)
def test_only_what_is_clearly_late_tells_of_others(late_ms, fate, shared, monkeypatch):
    rule, due = _pair_after(late_ms, fate)
    asked = []
    inner = rule._networks.weighed
    monkeypatch.setattr(rule._networks, "weighed", lambda *a: asked.append(1) or inner(*a))
    soon = tasks(load("paper"), carries=1, status_ms=np.nan, time_ms=due + 50.0)
    rule.decide(soon)
    assert bool(asked) == shared
    asked.clear()
    # Nothing has told of others for twenty of the longest deadlines.
    rule.decide(tasks(load("paper"), carries=1, status_ms=np.nan, time_ms=due + 4500.0))
    assert not asked
