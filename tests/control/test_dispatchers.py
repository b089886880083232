"""EN rules on situations small enough to work out by hand, and in the world."""

import numpy as np
import pytest

from cosmo import load, method, play, simulate
from cosmo.control.dispatchers import (
    AdmissionDispatcher,
    CapacityDispatcher,
    EstimateDispatcher,
    PrequalDispatcher,
    PricedBooksDispatcher,
    SelfTrackingDispatcher,
)
from cosmo.workload import episode
from cosmo.world import IDLE, LATENCY, REQUESTS, STORAGE, WORK, Settled, Worlds
from cosmo.world.records import FP, TN, TP
from observations import setting, tasks

PAPER = load("paper")
LOCAL, OFFLOAD, REJECT = 0, 1, 2

# A task of 540000 cycles and 36000 B, 3 ms after its generation, on idle nodes:
# local 3 + 30 = 33; offload 3 + 3 + 2 + 0.125 (upload) + 20 + 2 + 1/12 (result) = 30.21.
OFFLOAD_MS = 3 + 36000 / 12000 + 2 + 1500 / 12000 + 20 + 2 + 2 * 1000 / 24000


def _sn(**fields):
    state = [4.0, 0.0, 0.0, 480000.0, 0.0, 0.0]
    for name, value in fields.items():
        places = {"idle": IDLE, "work": WORK, "storage": STORAGE}
        places |= {"requests": REQUESTS, "latency": LATENCY}
        state[places[name]] = value
    return state


def _choice(rule, **fields):
    return int(rule(setting(PAPER)).decide(tasks(PAPER, **fields))[0])


def test_estimate_takes_the_faster_route():
    assert _choice(EstimateDispatcher) == OFFLOAD
    assert _choice(EstimateDispatcher, up_backlog_ms=3.0) == LOCAL  # 33.21 against 33
    assert _choice(EstimateDispatcher, up_backlog_ms=3.0, local_wait_ms=1.0) == OFFLOAD


def test_estimate_goes_by_idle_slots_first_and_by_work_only_without_any():
    work = 540000.0  # 5 ms of the SN's 108000 cycles/ms
    assert _choice(EstimateDispatcher, sn_state=_sn(idle=1, work=work)) == OFFLOAD
    assert _choice(EstimateDispatcher, sn_state=_sn(idle=0, work=work)) == LOCAL
    assert _choice(EstimateDispatcher, sn_state=_sn(idle=0, work=work * 0.5)) == OFFLOAD


def test_estimate_rejects_what_would_be_late_everywhere_to_the_last_bit():
    at, below = OFFLOAD_MS + 1e-9, OFFLOAD_MS - 1e-9
    assert _choice(EstimateDispatcher, deadline_ms=at) == OFFLOAD
    assert _choice(EstimateDispatcher, deadline_ms=below) == REJECT
    assert _choice(EstimateDispatcher, deadline_ms=33.5, sn_state=_sn(idle=0, work=1e7)) == LOCAL


def test_estimate_needs_room():
    assert _choice(EstimateDispatcher, sn_state=_sn(storage=49999)) == LOCAL
    assert _choice(EstimateDispatcher, sn_state=_sn(storage=50000)) == OFFLOAD
    assert _choice(EstimateDispatcher, sn_state=_sn(storage=49999), local_room=False) == REJECT


def test_capacity_prefers_the_less_loaded_and_rejects_only_if_all_are_full():
    def choose(en_work, sn_work, **fields):
        en_state = [0, 0, en_work * 36000, 100000, 0, 0]
        sn_state = fields.pop("sn_state", _sn(idle=0, work=sn_work * 108000))
        return _choice(CapacityDispatcher, en_state=en_state, sn_state=sn_state, **fields)

    assert choose(5.0, 6.0) == LOCAL
    assert choose(6.0, 5.0) == OFFLOAD
    assert choose(5.0, 5.0) == LOCAL
    assert choose(5.0, 6.0, deadline_ms=1.0) == LOCAL  # whatever the deadline
    assert choose(5.0, 6.0, local_room=False) == OFFLOAD
    assert choose(6.0, 0.0, sn_state=_sn(storage=1000)) == LOCAL
    assert choose(6.0, 0.0, sn_state=_sn(storage=1000), local_room=False) == REJECT


def test_books_follow_what_was_offloaded_and_nothing_else():
    books = SelfTrackingDispatcher(setting(PAPER))
    busy = _sn(idle=0, work=1e9, storage=0)  # what the cache says is not looked at
    # Local is out of the question; the deadline leaves room for a wait of 5 ms.
    situation = {"local_room": False, "sn_state": busy, "deadline_ms": OFFLOAD_MS + 5.001}
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
    books = SelfTrackingDispatcher(setting(PAPER))
    situation = {"local_room": False, "deadline_ms": 1e6}
    decided = [int(books.decide(tasks(PAPER, **situation))[0]) for _ in range(11)]
    assert decided == [OFFLOAD] * 9 + [REJECT] * 2  # 9 reservations of 50000 fit into 480000


def test_books_of_different_worlds_do_not_mix():
    books = SelfTrackingDispatcher(setting(PAPER, episodes=2))
    situation = {"local_room": False, "deadline_ms": OFFLOAD_MS}
    for _ in range(4):
        books.decide(tasks(PAPER, **situation))  # world 0 only
    both = books.decide(tasks(PAPER, 2, **situation))
    assert both.tolist() == [REJECT, OFFLOAD]


def test_prequal_takes_low_latency_among_the_cold_and_few_requests_among_the_hot():
    def fresh(uses=8):
        return PrequalDispatcher(setting(PAPER), quantile=0.84, oldest_ms=1000.0, most_uses=uses)

    def see(local, remote, **fields):
        en_state = [0, 0, 0, 0, *local]
        sn_state = [0, 0, 0, 0, *remote]
        return tasks(PAPER, en_state=en_state, sn_state=sn_state, **fields)

    def choose(rule, local, remote, **fields):
        return int(rule.decide(see(local, remote, **fields))[0])

    rule = fresh()
    for _ in range(40):  # ordinary life: up to 4 requests here and there
        choose(rule, (2, 30.0), (4, 40.0), sn_source_ms=900.0)
    assert choose(rule, (2, 50.0), (3, 40.0), sn_source_ms=901.0) == OFFLOAD  # both cold
    assert choose(rule, (2, 30.0), (3, 40.0), sn_source_ms=902.0) == LOCAL
    assert choose(rule, (2, 50.0), (9, 1.0), sn_source_ms=903.0) == LOCAL  # the SN is hot
    assert choose(rule, (9, 1.0), (8, 50.0), sn_source_ms=904.0) == OFFLOAD  # both are

    # A probe wears off: each use adds a request to it, and after `most_uses` it is not believed.
    rule = fresh(uses=3)
    used = [choose(rule, (0, 90.0), (0, 1.0), sn_source_ms=905.0) for _ in range(5)]
    assert LOCAL in used
    assert used[0] == OFFLOAD
    assert used[-1] == LOCAL
    assert choose(rule, (0, 90.0), (0, 1.0), sn_source_ms=906.0) == OFFLOAD  # a new one is
    assert choose(rule, (0, 90.0), (0, 1.0), sn_source_ms=906.0, time_ms=2000.0) == LOCAL  # too old


def _settled(outcomes, time_ms=1000.0):
    count = len(outcomes)
    action = [REJECT if outcome == TN else OFFLOAD for outcome in outcomes]
    world, task, en = np.zeros((3, count), np.int64)
    return Settled(world, task, en, np.array(action), np.array(outcomes), np.full(count, time_ms))


def test_admission_control_rejects_with_envoys_probability():
    count = 8000
    rule = AdmissionDispatcher(
        setting(PAPER, episodes=count), threshold=0.95, aggression=2.0, window_ms=1000.0, most=0.8
    )
    ended, successes = 40, 20
    for world in range(count):
        told = _settled([TP] * successes + [FP] * (ended - successes) + [TN] * 7)
        told.world[:] = world
        rule.observe(told)
    share = (rule.decide(tasks(PAPER, count)) == REJECT).mean()
    expected = ((ended - successes / 0.95) / (ended + 1)) ** (1 / 2.0)
    assert share == pytest.approx(expected, abs=0.015)
    # Beyond the window it is forgotten; at most `most` are rejected.
    later = tasks(PAPER, count, time_ms=2200.0, generated_ms=2197.0)
    assert (rule.decide(later) == OFFLOAD).all()
    for world in range(count):
        told = _settled([FP] * 200)
        told.world[:] = world
        rule.observe(told)
    share = (rule.decide(tasks(PAPER, count)) == REJECT).mean()
    assert share == pytest.approx(0.8, abs=0.015)


def test_admission_control_lets_all_pass_while_the_success_rate_is_healthy():
    rule = AdmissionDispatcher(setting(PAPER), 0.95, 1.0, 1000.0, 0.8)
    rule.observe(_settled([TP] * 95 + [FP] * 5))
    many = [int(rule.decide(tasks(PAPER, task=k))[0]) for k in range(300)]
    assert set(many) == {OFFLOAD}


RATES = (120, 160, 200, 220, 240, 280, 320)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("arrivals", ["deterministic", "poisson"])
def test_self_tracking_is_nearly_full_information_with_a_single_en(arrivals, rate):
    scenario = load("paper", [f"workload.arrivals={arrivals}", f"workload.rate={rate}"])
    means = {}
    for name in ("self-tracking", "full-information"):
        metrics = simulate(scenario, method(name), seed=0, episodes=5).metrics
        means[name] = metrics["success_rate"].mean
        assert metrics["episode_update_cost"].mean == 0.0
    assert means["self-tracking"] == pytest.approx(means["full-information"], abs=0.03)


@pytest.mark.parametrize("rate", [80, 120, 160])
def test_self_tracking_is_clearly_not_where_the_sn_has_other_load(rate):
    scenario = load("shared-sn", [f"workload.rate={rate}"])
    first, second = (
        simulate(scenario, method(name), seed=0, episodes=15).metrics["success_rate"].mean
        for name in ("self-tracking", "full-information")
    )
    assert first < second - 0.03


def test_regret_is_the_share_that_a_fresh_status_would_have_changed():
    """Counted anew from the outcome of a run with its observations kept."""
    scenario = load("shared-sn", ["workload.rate=200"])
    kept = []

    class Watching(EstimateDispatcher):
        def would_decide(self, seen):
            kept.append((seen.generated_ms[0], int(super().decide(seen)[0])))
            return super().decide(seen)

        def decide(self, seen):
            actions = super().decide(seen)
            kept[-1] += (int(actions[0]),)
            return actions

    chosen = method("periodic-100")
    chosen.rule = Watching
    [outcome] = play(scenario, chosen, [episode(scenario, 0, 0)])
    measured = [(fresh, actual) for generated, fresh, actual in kept if generated >= 2000.0]
    regret = np.mean([fresh != actual for fresh, actual in measured])
    assert outcome.status.decision_regret == pytest.approx(regret)
    assert 0.05 < regret < 0.95


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
    [measured] = play(scenario, method(name), [world], seed=1)
    chosen = method(name)
    original = type(chosen).dispatcher

    class Shy:
        """The same dispatcher, which cannot be asked what it would do."""

        def __init__(self, inner):
            self.decide = inner.decide
            if hasattr(inner, "observe"):
                self.observe = inner.observe

    monkeypatch.setattr(type(chosen), "dispatcher", lambda self, s: Shy(original(self, s)))
    [alone] = play(scenario, chosen, [world], seed=1)
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
    refused = (priced.action == reject) & (priced.feasible > 0)
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
    made = setting(scenario, 1, 250.0)
    dispatcher = PricedBooksDispatcher(made, 1e12, 1e-9)
    worlds = Worlds(scenario, [episode(scenario, 1, 0)])
    turn, errors, sizes = worlds.advance(), [], []
    while not turn.over:
        seen = turn.dispatch
        known = dispatcher.outstanding_ms(seen)[0]
        en_rate = dispatcher._nodes.en_full_rate[0] + dispatcher._nodes.sn_full_rate[0]
        there = (seen.en_state[0, WORK] + turn.truth.sn_state[0, 0, WORK]) / en_rate
        errors.append(known - there)
        sizes.append(there)
        worlds.answer(action=dispatcher.decide(seen))
        turn = worlds.advance()
    # The books also hold what is still on the link, so they are ahead by a little, never behind.
    assert min(errors) > -1e-6
    assert np.mean(errors) < 0.25 * np.mean(sizes)
