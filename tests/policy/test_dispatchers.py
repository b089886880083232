"""EN rules on situations small enough to work out by hand, and in the world."""

import numpy as np
import pytest

from cosmo import Dispatcher, Feedback, load, method, play, simulate
from cosmo.measure import Regret
from cosmo.node import DONE, GIVEN_UP, IDLE, REFUSED, STORAGE, WORK
from cosmo.policy.rules import adaptive, admission, estimate, prequal, priced, strict
from cosmo.policy.rules.periodic import Periodic
from cosmo.policy.rules.run import RuleDispatcher, seen_tasks
from cosmo.workload import episode
from cosmo.world import Worlds
from cosmo.world.records import FP, TP
from observations import site, tasks

PAPER = load("paper")
LOCAL, OFFLOAD, REJECT = 0, 1, 2

# A task of 540000 cycles and 36000 B, 3 ms after its generation, on idle nodes:
# local 3 + 30 = 33; offload 3 + 3 + 2 + 0.125 (upload) + 20 + 2 + 1/12 (result) = 30.21.
OFFLOAD_MS = 3 + 36000 / 12000 + 2 + 1500 / 12000 + 20 + 2 + 2 * 1000 / 24000


def _sn(**fields):
    """A raw status."""
    state = [4.0, 0.0, 0.0, 480000.0]
    for name, value in fields.items():
        state[{"idle": IDLE, "work": WORK, "storage": STORAGE}[name]] = value
    return state


def _choice(rule, **fields):
    return int(rule(site(PAPER)).decide(tasks(PAPER, **fields))[0])


def test_estimate_takes_the_faster_route():
    assert _choice(estimate.dispatcher) == OFFLOAD
    assert _choice(estimate.dispatcher, up_backlog_ms=3.0) == LOCAL  # 33.21 against 33
    assert _choice(estimate.dispatcher, up_backlog_ms=3.0, local_wait_ms=1.0) == OFFLOAD


def test_estimate_goes_by_idle_slots_first_and_by_work_only_without_any():
    work = 540000.0  # 5 ms of the SN's 108000 cycles/ms
    assert _choice(estimate.dispatcher, status=_sn(idle=1, work=work)) == OFFLOAD
    assert _choice(estimate.dispatcher, status=_sn(idle=0, work=work)) == LOCAL
    assert _choice(estimate.dispatcher, status=_sn(idle=0, work=work * 0.5)) == OFFLOAD


def test_estimate_rejects_what_would_be_late_everywhere_to_the_last_bit():
    at, below = OFFLOAD_MS + 1e-9, OFFLOAD_MS - 1e-9
    assert _choice(estimate.dispatcher, deadline_ms=at) == OFFLOAD
    assert _choice(estimate.dispatcher, deadline_ms=below) == REJECT
    assert _choice(estimate.dispatcher, deadline_ms=33.5, status=_sn(idle=0, work=1e7)) == LOCAL


def test_estimate_needs_room():
    assert _choice(estimate.dispatcher, status=_sn(storage=49999)) == LOCAL
    assert _choice(estimate.dispatcher, status=_sn(storage=50000)) == OFFLOAD
    assert _choice(estimate.dispatcher, status=_sn(storage=49999), local_room=False) == REJECT


@pytest.mark.parametrize("rule", [estimate.dispatcher, strict.dispatcher])
def test_an_sn_that_has_told_nothing_is_taken_to_be_idle(rule):
    """R14: the cache reads as zeros, which are no idle SN's numbers."""
    working = {"en_state": [1, 0, 1e6, 300000.0, 1, 0], "local_wait_ms": 4.0}
    nothing = {"status": 0.0, "status_ms": np.nan}
    assert _choice(rule, **working, **nothing) == _choice(rule, **working) == OFFLOAD
    assert _choice(rule, **working, status=0.0) != OFFLOAD  # said aloud, zeros mean that it is full


def test_strict_counts_on_one_slot_and_on_its_own_node_first():
    """Local in 3 + B/18000 + 30 ms, else by the SN in OFFLOAD_MS + B/27000, else rejected."""

    def choose(en_ms=0.0, sn_ms=0.0, **fields):
        en_state = [1, 0, en_ms * 18000, 100000, 1, 0]
        status = _sn(idle=1, work=sn_ms * 27000, storage=fields.pop("storage", 480000.0))
        return _choice(strict.dispatcher, en_state=en_state, status=status, **fields)

    assert choose(deadline_ms=33.0) == LOCAL  # though the SN would be faster
    assert choose(en_ms=10.0, deadline_ms=43.001) == LOCAL
    assert choose(en_ms=10.0, deadline_ms=42.999) == OFFLOAD
    assert choose(en_ms=99.0, sn_ms=10.0, deadline_ms=OFFLOAD_MS + 10.001) == OFFLOAD
    assert choose(en_ms=99.0, sn_ms=10.0, deadline_ms=OFFLOAD_MS + 9.999) == REJECT
    assert choose(local_room=False) == OFFLOAD
    assert choose(local_room=False, storage=50000.0) == OFFLOAD
    assert choose(local_room=False, storage=49999.0) == REJECT
    assert choose(local_room=False, up_backlog_ms=40.0) == REJECT


def test_strict_asks_the_sn_with_the_least_work():
    campus = load("campus")
    rule = strict.dispatcher(site(campus))
    status = [[4.0, 0.0, 2e6, 480000.0], [4.0, 0.0, 1e6, 480000.0]]
    assert rule.decide(tasks(campus, local_room=False, deadline_ms=1e3, status=status)) == [2]
    status[1][3] = 0.0  # which is full, so there is nobody left to ask
    assert rule.decide(tasks(campus, local_room=False, deadline_ms=1e3, status=status)) == [3]


def test_books_follow_what_was_offloaded_and_nothing_else():
    books = method("self-tracking").dispatcher(site(PAPER))
    busy = _sn(idle=0, work=1e9, storage=0)  # what the cache says is not looked at
    # Local is out of the question; the deadline leaves room for a wait of 5 ms.
    situation = {"local_room": False, "status": busy, "deadline_ms": OFFLOAD_MS + 5.001}
    decided = [int(books.decide(tasks(PAPER, **situation))[0]) for _ in range(6)]
    # Four slots take the first four at once; a fifth would wait 20 ms.
    assert decided == [OFFLOAD] * 4 + [REJECT] * 2
    # 15 ms later the wait is 5 ms: just feasible again. Asking does not write into the books.
    later = tasks(PAPER, **situation, time_ms=1018.0, generated_ms=1015.0)
    assert [int(books.would_decide(later)[0]) for _ in range(3)] == [OFFLOAD] * 3
    assert int(books.decide(later)[0]) == OFFLOAD
    # After a long time all is done and the SN is taken to be idle.
    much_later = tasks(PAPER, **situation, time_ms=5003.0, generated_ms=5000.0)
    assert int(books.decide(much_later)[0]) == OFFLOAD


def test_books_know_the_sn_s_storage():
    books = method("self-tracking").dispatcher(site(PAPER))
    situation = {"local_room": False, "deadline_ms": 1e6}
    decided = [int(books.decide(tasks(PAPER, **situation))[0]) for _ in range(11)]
    assert decided == [OFFLOAD] * 9 + [REJECT] * 2  # 9 reservations of 50000 fit into 480000


def test_books_of_different_worlds_do_not_mix():
    books = method("self-tracking").dispatcher(site(PAPER, episodes=2))
    situation = {"local_room": False, "deadline_ms": OFFLOAD_MS}
    for _ in range(4):
        books.decide(tasks(PAPER, **situation))  # world 0 only
    both = books.decide(tasks(PAPER, 2, **situation))
    assert both.tolist() == [REJECT, OFFLOAD]


def test_prequal_takes_low_latency_among_the_cold_and_few_requests_among_the_hot():
    def fresh(uses=8):
        return prequal.dispatcher(site(PAPER), quantile=0.84, oldest_ms=1000.0, most_uses=uses)

    def see(local, remote, **fields):
        en_state = [0, 0, 0, 0, *local]
        return tasks(PAPER, carries=prequal.PROBE, en_state=en_state, status=remote, **fields)

    def choose(rule, local, remote, **fields):
        return int(rule.decide(see(local, remote, **fields))[0])

    rule = fresh()
    for _ in range(40):  # ordinary life: up to 4 requests here and there
        choose(rule, (2, 30.0), (4, 40.0), status_ms=900.0)
    assert choose(rule, (2, 50.0), (3, 40.0), status_ms=901.0) == OFFLOAD  # both cold
    assert choose(rule, (2, 30.0), (3, 40.0), status_ms=902.0) == LOCAL
    assert choose(rule, (2, 50.0), (9, 1.0), status_ms=903.0) == LOCAL  # the SN is hot
    assert choose(rule, (9, 1.0), (8, 50.0), status_ms=904.0) == OFFLOAD  # both are

    # A probe wears off: each use adds a request to it, and after `most_uses` it is not believed.
    rule = fresh(uses=3)
    used = [choose(rule, (0, 90.0), (0, 1.0), status_ms=905.0) for _ in range(5)]
    assert LOCAL in used
    assert used[0] == OFFLOAD
    assert used[-1] == LOCAL
    assert choose(rule, (0, 90.0), (0, 1.0), status_ms=906.0) == OFFLOAD  # a new one is
    assert choose(rule, (0, 90.0), (0, 1.0), status_ms=906.0, time_ms=2000.0) == LOCAL  # too old

    # An SN that has never been heard of is not taken to be idle, not even in the first second.
    unheard = {"status_ms": np.nan, "time_ms": 20.0, "generated_ms": 17.0}
    assert choose(fresh(), (3, 90.0), (0, 0.0), **unheard) == LOCAL
    assert choose(fresh(), (3, 90.0), (0, 0.0), **{**unheard, "status_ms": 10.0}) == OFFLOAD


IN_TIME, LATE, NO_ROOM, REJECTED = (DONE, True), (DONE, False), (REFUSED, False), (GIVEN_UP, False)


def _heard(fates, time_ms=1000.0):
    fate, in_time = (np.array(column) for column in zip(*fates, strict=True))
    world, en, task = np.zeros((3, len(fates)), np.int64)
    action = np.where(fate == GIVEN_UP, REJECT, OFFLOAD)
    return Feedback(world, en, task, action, fate, in_time, np.full(len(fates), time_ms))


def test_admission_control_rejects_with_envoys_probability():
    count = 8000
    rule = admission.dispatcher(
        site(PAPER, episodes=count), threshold=0.95, aggression=2.0, window_ms=1000.0, most=0.8
    )
    ended, successes = 40, 20
    for world in range(count):
        told = _heard([IN_TIME] * successes + [LATE] * 12 + [NO_ROOM] * 8 + [REJECTED] * 7)
        told.world[:] = world
        rule.observe(told)
    share = (rule.decide(tasks(PAPER, count)) == REJECT).mean()
    expected = ((ended - successes / 0.95) / (ended + 1)) ** (1 / 2.0)
    assert share == pytest.approx(expected, abs=0.015)
    # Beyond the window it is forgotten; at most `most` are rejected.
    later = tasks(PAPER, count, time_ms=2200.0, generated_ms=2197.0)
    assert (rule.decide(later) == OFFLOAD).all()
    for world in range(count):
        told = _heard([LATE] * 200)
        told.world[:] = world
        rule.observe(told)
    share = (rule.decide(tasks(PAPER, count)) == REJECT).mean()
    assert share == pytest.approx(0.8, abs=0.015)


def test_admission_control_lets_all_pass_while_the_success_rate_is_healthy():
    rule = admission.dispatcher(site(PAPER), 0.95, 1.0, 1000.0, 0.8)
    rule.observe(_heard([IN_TIME] * 95 + [NO_ROOM] * 5))
    many = [int(rule.decide(tasks(PAPER, task=k))[0]) for k in range(300)]
    assert set(many) == {OFFLOAD}


RATES = (120, 160, 200, 220, 240, 280, 320)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("arrivals", ["deterministic", "poisson"])
def test_self_tracking_is_nearly_full_information_with_a_single_en(arrivals, rate):
    scenario = load("paper", [f"workload.arrivals={arrivals}", f"workload.rate={rate}"])
    means = {}
    for name in ("self-tracking", "full-information"):
        metrics = simulate(scenario, method(name), seeds=0, episodes=5).metrics
        means[name] = metrics["success_rate"].mean
        assert metrics["episode_update_cost"].mean == 0.0
    assert means["self-tracking"] == pytest.approx(means["full-information"], abs=0.03)


@pytest.mark.parametrize("rate", [80, 120, 160])
def test_self_tracking_is_clearly_not_where_the_sn_has_other_load(rate):
    scenario = load("shared-sn", [f"workload.rate={rate}"])
    first, second = (
        simulate(scenario, method(name), seeds=0, episodes=15).metrics["success_rate"].mean
        for name in ("self-tracking", "full-information")
    )
    assert first < second - 0.03


def test_regret_is_the_share_that_a_fresh_status_would_have_changed():
    """Counted anew from the outcome of a run with its observations kept."""
    scenario = load("shared-sn", ["workload.rate=200"])
    kept = []

    class Watching(RuleDispatcher):
        def would_decide(self, seen):
            kept.append((seen.generated_ms[0], int(super().decide(seen)[0])))
            return super().decide(seen)

        def decide(self, seen):
            actions = super().decide(seen)
            if kept and len(kept[-1]) == 2:
                kept[-1] += (int(actions[0]),)
            return actions

    class Watched(Periodic):
        def dispatcher(self, site):
            made = estimate.dispatcher(site)
            return Watching(site, made.rule, made.state)

    world, played = episode(scenario, 0, 0), {}
    for name, chosen in (("kept", Watched()), ("compiled", method("periodic-100"))):
        [played[name]] = play(scenario, chosen, [world], watchers=[Regret(scenario, chosen)])
    assert len(kept) == np.count_nonzero(world.tasks.time_ms >= 2000.0)
    share = np.mean([fresh != actual for _, fresh, actual in kept])
    assert played["kept"].status.decision_regret == pytest.approx(share)
    assert played["compiled"].status.decision_regret == played["kept"].status.decision_regret
    assert 0.05 < share < 0.95


def test_fresher_status_is_regretted_less_and_fixed_rules_have_none_to_regret():
    scenario = load("paper", ["workload.rate=280"])
    regrets = [
        simulate(scenario, method(f"periodic-{interval}")).metrics["decision_regret"].mean
        for interval in (2, 20, 200)
    ]
    assert regrets == sorted(regrets)
    assert regrets[0] < 0.2 < regrets[2]
    assert np.isnan(simulate(scenario, method("all-local")).metrics["decision_regret"].mean)


@pytest.mark.parametrize("name", ["prequal", "admission-control", "aoci-online"])
def test_measuring_regret_does_not_change_the_run(name, monkeypatch):
    scenario = load("shared-sn", ["workload.rate=200"])
    world = episode(scenario, 1, 0)

    def played(chosen):
        [outcome] = play(scenario, chosen, [world], 1, watchers=[Regret(scenario, chosen)])
        return outcome

    measured = played(method(name))
    chosen = method(name)
    original = type(chosen).dispatcher

    class Shy(Dispatcher):
        """The same dispatcher, which cannot be asked what it would do."""

        def __init__(self, inner):
            self.decide, self.observe = inner.decide, inner.observe

    monkeypatch.setattr(type(chosen), "dispatcher", lambda self, s: Shy(original(self, s)))
    alone = played(chosen)
    np.testing.assert_array_equal(measured.action, alone.action)
    assert np.isnan(alone.status.decision_regret)
    assert measured.status.decision_regret >= 0


def test_priced_books_refuse_large_tasks_the_sooner_the_fuller_the_nodes_are():
    """What it refuses though it could be served is large, and more tasks are served for it."""
    scenario = load("paper", ["workload.rate=320", "episode.window_ms=2000", "episode.warmup_ms=0"])
    worlds = [episode(scenario, 0, 0)]
    [priced] = play(scenario, method("priced-books"), worlds)
    [plain] = play(scenario, method("self-tracking"), worlds)
    reject = 2
    cycles = priced.tasks.cycles
    refused = (priced.action == reject) & priced.any_feasible
    taken = priced.action < reject
    assert refused.any()
    assert cycles[refused].mean() > 1.1 * cycles[taken].mean()
    assert (priced.outcome == TP).sum() > (plain.outcome == TP).sum()
    # With a price of next to nothing and any size allowed, it is self-tracking.
    free = method("priced-books:most_cycles=1e12,price=1e-9")
    [same] = play(scenario, free, worlds)
    np.testing.assert_array_equal(same.action, plain.action)


def test_what_is_outstanding_by_the_books_is_what_is_there():
    scenario = load("paper", ["workload.rate=250", "episode.window_ms=1500", "episode.warmup_ms=0"])
    made = site(scenario)
    dispatcher = method("priced-books:most_cycles=1e12,price=1e-9").dispatcher(made)
    total_rate = made.en.full_rate[0] + made.sn.full_rate[0]
    worlds = Worlds(scenario, [episode(scenario, 1, 0)])
    turn, errors, sizes = worlds.advance(), [], []
    while not turn.over:
        seen = turn.dispatch
        state = dispatcher.state
        known = priced.outstanding_ms(
            seen_tasks(seen), state.known, state.backlog, state.total_rate, 0
        )
        there = (seen.en_state[0, WORK] + worlds.truth().sn_state[0, 0, WORK]) / total_rate
        errors.append(known - there)
        sizes.append(there)
        worlds.answer(action=dispatcher.decide(seen))
        turn = worlds.advance()
    # The books also hold what is still on the link, so they are ahead by a little, never behind.
    assert min(errors) > -1e-6
    assert np.mean(errors) < 0.25 * np.mean(sizes)


def test_back_off_pauses_an_sn_that_failed_and_no_other():
    campus = load("campus")
    rule = method("back-off:pause_ms=100").dispatcher(site(campus, episodes=2))
    away = {"local_room": False, "deadline_ms": 1e3, "up_backlog_ms": [0.0, 0.5]}

    def choose(time_ms, world=0, en=0, **more):
        seen = tasks(campus, time_ms=time_ms, generated_ms=time_ms - 3.0, en=en, world=world)
        for name, value in {**away, **more}.items():
            getattr(seen, name)[:] = value
        return int(rule.would_decide(seen)[0])

    def hear(fate, action=1, time_ms=1000.0):
        told = _heard([fate], time_ms)
        told.action[:] = action
        rule.observe(told)

    assert choose(1000.0) == 1  # the faster one
    for harmless in (IN_TIME, REJECTED):
        hear(harmless)
        assert choose(1000.0) == 1
    hear(LATE, action=0)  # of the EN itself: no SN's fault
    assert choose(1000.0) == 1
    hear(LATE)
    assert choose(1099.999) == 2
    assert choose(1100.0) == 1
    # Other ENs and worlds have heard nothing of it.
    assert choose(1050.0, en=1) == choose(1050.0, world=1) == 1
    # A second failure makes the pause last; with all SNs paused there is nobody left to ask.
    hear(NO_ROOM, time_ms=1060.0)
    assert choose(1150.0) == 2
    hear(NO_ROOM, action=2, time_ms=1100.0)
    assert choose(1150.0) == 3
    assert choose(1150.0, local_room=True) == 0
    assert choose(1170.0) == 1


def test_back_off_is_self_tracking_until_something_fails():
    scenario = load("paper", ["workload.rate=320", "episode.window_ms=1500", "episode.warmup_ms=0"])
    worlds = [episode(scenario, 0, 0)]
    [pausing], [plain] = (
        play(scenario, method(name), worlds) for name in ("back-off", "self-tracking")
    )
    np.testing.assert_array_equal(pausing.action, plain.action)
    shared = load("shared-sn", ["workload.rate=160", "episode.window_ms=3000"])
    worlds = [episode(shared, 0, number) for number in range(3)]
    failed = [
        sum((each.outcome == FP).sum() for each in play(shared, method(name), worlds))
        for name in ("back-off:pause_ms=150", "self-tracking")
    ]
    assert failed[0] < failed[1]


@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_adaptive_prices_follow_the_arrivals(share):
    """The table is a plain one here: 10 ms and 0.05 a ms at half the load, then 30 and 0.01."""
    table = np.array([[0.5, 10.0, 0.05], [1.0, 30.0, 0.01]])
    rule = adaptive.dispatcher(site(PAPER), 500.0, table)
    # 650000 cycles a task, 144000 a ms: one in 4.514 ms asks for all of the capacity.
    for born in np.arange(0.0, 2000.0, 650000.0 / 144000.0 / share):
        # All that is outstanding, 20 ms of all nodes, is at the EN.
        work = [0, 0, 20.0 * 144000, 0, 0, 0]
        seen = tasks(PAPER, time_ms=born + 3.0, generated_ms=born, deadline_ms=1.0, en_state=work)
        rows = seen_tasks(seen), rule.state, 0
        load_seen, most = adaptive.load(*rows), adaptive.most_cycles(*rows)
        rule.decide(seen)
    assert load_seen == pytest.approx(share, rel=0.03)
    from_ms, price = 10.0 + 40.0 * (share - 0.5), 0.05 - 0.08 * (share - 0.5)
    assert most == pytest.approx(1.2e6 * (1.0 - price * (20.0 - from_ms)), rel=0.04)


def test_an_en_that_has_just_started_does_not_take_its_load_to_be_nothing():
    rule = adaptive.dispatcher(site(PAPER), 1000.0)
    gap_ms = 650000.0 / 144000.0
    for count in range(20):
        seen = tasks(PAPER, time_ms=3.0 + count * gap_ms, generated_ms=count * gap_ms)
        rows = seen_tasks(seen), rule.state, 0
        asked = adaptive.load(*rows)
        assert adaptive.load(*rows) == asked  # asking is not counting
        rule.decide(seen)
    assert asked == pytest.approx(1.0, rel=0.1)


def test_adaptive_prices_serve_all_at_light_load_and_more_than_others_in_overload():
    found = {}
    for rate in (120, 320):
        scenario = load("paper", [f"workload.rate={rate}", "episode.window_ms=4000"])
        for name in ("self-tracking", "priced-books", "adaptive-prices"):
            metrics = simulate(scenario, method(name), seeds=0, episodes=2).metrics
            found[name, rate] = metrics["success_rate"].mean
    assert found["adaptive-prices", 120] == pytest.approx(found["self-tracking", 120], abs=0.002)
    assert found["adaptive-prices", 320] > found["self-tracking", 320] + 0.03
    assert found["adaptive-prices", 320] > found["priced-books", 320]
