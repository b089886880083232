"""A rule decides the same compiled and as plain Python, task by task."""

import numpy as np
import pytest

import observations
from cosmo import load, method, play
from cosmo.control import compiled
from cosmo.control.compiled_rows import with_compiled_rows
from cosmo.measure import Regret
from cosmo.policy.rules import estimate
from cosmo.policy.rules.periodic import Never, send_always
from cosmo.policy.rules.run import EnRule, RuleDispatcher, SnRule
from cosmo.workload import Tasks, episode, from_tasks
from cosmo.world import Watcher, kernel
from cosmo.world.compiled import sources_of

WORLD = load(
    "campus",
    [
        *("episode.window_ms=700", "episode.warmup_ms=100", "workload.rate=220", "sn.count=3"),
        *("backhaul.reach=[[0, 1, 2], [1], [0, 2]]", "status.loss_probability=0.1"),
        *("backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}]", "sn.slots=[4, 2, 3]"),
        "fading.factors=[0.3, 1.0]",
    ],
)
# Few tasks, so that the rules can be played uncompiled, too, but nodes that are soon full.
_SMALL = [
    *("episode.window_ms=40", "episode.warmup_ms=10", "workload.rate=400", "sn.count=3"),
    *("backhaul.reach=[[0, 1, 2], [1], [0, 2]]", "status.loss_probability=0.2"),
    *("backhaul.links=[{sn = 1, hops = 4, hop_delay_ms = 3}]", "sn.slots=[1, 2, 1]"),
    *("en.slots=1", "sn.storage_bytes=180000", "en.storage_bytes=100000"),
    *("fading.factors=[0.3, 1.0]", "fading.period_ms=20"),
]
SMALL = {
    "full": _SMALL,
    # Every SN as good as the other, so that the first of the best is taken.
    "alike": [
        *_SMALL, "fading.factors=[1.0, 1.0]", "sn.slots=2", "backhaul.links=[]", "en.slots=2",
        "workload.input_bytes=[40000, 40000]", "workload.cycles=[540000, 540000]",
        "status.loss_probability=0", "sn.storage_bytes=150000",
        "backhaul.reach=[[0, 1, 2], [0, 1, 2], [1, 2]]",
    ],
    # Queues that are full before storage is, and SNs that have more than one idle slot.
    "queues": [
        *_SMALL, "sn.slots=[3, 2, 4]", "sn.storage_bytes=900000", "sn.queue_capacity=[3, 2, 5]",
        "sn.cycles_per_ms=[9000, 30000, 12000]", "storage.reservation_floor_bytes=0",
    ],
}  # fmt: skip
# So many tasks of one EN to one SN that no status has told of.
MANY = load(
    "campus",
    [
        *_SMALL, "en.count=1", "sn.count=1", "backhaul.links=[]", "backhaul.reach=all",
        "sn.slots=1", "en.storage_bytes=50000", "sn.storage_bytes=9e6", "sn.queue_capacity=99",
        "workload.rate=2500", "workload.input_bytes=[200, 400]", "workload.cycles=[3e4, 6e4]",
    ],
)  # fmt: skip
COMPILED = (
    *("all-local", "all-offload", "local-until-full", "full-information", "self-tracking"),
    *("never", "periodic:interval_ms=15", "aoi-threshold:kappa=1000"),
    *("aoi-threshold/estimate:kappa=1000", "aov-gap:timeout_ms=4"),
    *("aov-gap/estimate:threshold=0.2,timeout_ms=8",),
    *("power-of-d:keep=2,d=1,threshold_ms=4", "power-of-d:numbers=4", "power-of-d:interval_ms=7"),
    *("piggyback", "piggyback:numbers=4,gap_ms=9", "back-off"),
    *("priced-books:most_cycles=1.2e6", "adaptive-prices", "random", "prequal"),
    *("prequal:most_uses=2,oldest_ms=4,quantile=0.4", "cosmo-next"),
    *("aoci-online:timeout_ms=4,cost_ms2=20", "aoci-online/estimate:cost_ms2=100"),
    "admission-control:window_ms=20,kappa=1000,threshold=0.7,aggression=1.5",
    *("jbt:high_ms=4,low_ms=2,keep=2", "aoii:age_ms=1.5,wait_ms=3", "jiq:caution=1"),
    *("lsq:interval_ms=3", "sparse-jsq:interval_ms=9,keep=2", "leaky-bucket:d=2,failure_ms=9"),
    *("in-flight", "in-flight:hot_ms=3"),
)


def _decides_alike(name, world, episodes):
    """Task by task, status by status; what the plain one did."""
    chosen = method(name)
    plain, fast = (
        play(world, chosen, episodes, watchers=[Regret(world, chosen)], compiled=compiled)
        for compiled in (False, True)
    )
    for one, other in zip(plain, fast, strict=True):
        for field in ("action", "outcome", "decided_ms", "finished_ms", "refused"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)
        for counted in ("updates", "rides", "status_bytes", "update_decisions"):
            assert getattr(one, counted) == getattr(other, counted), counted
        assert repr(one.status) == repr(other.status)  # NaN where nothing was measured
    return plain


@pytest.mark.parametrize("world", SMALL)
@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_rule_decides_as_the_plain_one_where_nodes_are_soon_full(name, world):
    small = load("campus", SMALL[world])
    plain = _decides_alike(name, small, [episode(small, 4, number) for number in range(2)])
    assert plain[0].refused.any() or (plain[0].action == small.links.most_sns + 1).any()
    assert (plain[0].updates > 0) == (method(name).carries > 0 and name != "never")


@pytest.mark.parametrize("numbers", [1, 4])
def test_own_tasks_count_for_as_long_as_no_status_has_told_of_them(numbers):
    name = f"power-of-d:numbers={numbers},interval_ms=1000"
    [plain] = _decides_alike(name, MANY, [episode(MANY, 4, 0)])
    assert (plain.action == 1).sum() > 50
    assert (plain.action == 2).any()


def test_a_task_that_asks_for_just_what_is_allowed_is_taken():
    name = "priced-books:most_cycles=540000"  # while nothing is outstanding, and all ask for it
    small = load("campus", SMALL["alike"])
    [plain] = _decides_alike(name, small, [episode(small, 4, 0)])
    assert set(plain.action.tolist()) >= {1, small.links.most_sns + 1}


def test_a_compiled_rule_measures_regret_only_if_it_is_asked_to():
    small = load("campus", SMALL["alike"])
    worlds = [episode(small, 4, 0)]
    for watchers in ([], [Regret(small, method("aov-gap"))]):
        plain, fast = (
            play(small, method("aov-gap"), worlds, watchers=watchers, compiled=compiled)
            for compiled in (False, True)
        )
        assert repr(plain[0].status) == repr(fast[0].status)
        assert np.isnan(plain[0].status.decision_regret) == (not watchers)


# Where numbers are exactly equal, as they are sums of powers of two: air, links and results take
# 1 ms for 1024 bytes, a hop 1 ms; 10 240 cycles are 10 ms of the EN and 5 ms of the SN. So a task
# of 1024 bytes is 1 ms on the air and is done after 11 ms at the EN, or after 1 + 2 + 5 + 2 = 10 ms
# at the SN; one of 8192 bytes after 18 and 8 + 9 + 5 + 2 = 24 ms.
_EXACT = [
    *("access.rate_mbps=8.192", "access.overhead_ms=0", "access.contention_ms=0"),
    *("backhaul.up_mbps=8.192", "backhaul.down_mbps=8.192", "backhaul.hops=1"),
    *("backhaul.hop_delay_ms=1", "backhaul.result_bytes=1024", "mobility.speed_m_per_s=0"),
    *("en.cycles_per_ms=1024", "sn.cycles_per_ms=2048", "episode.window_ms=1024"),
    "episode.warmup_ms=0",
]


def _played_exactly(name, tasks, compiled, *more):
    """(input in bytes, deadline in ms) of tasks that have the nodes for themselves."""
    scenario = load("paper", [*_EXACT, *more])
    size, deadline = np.array(tasks, float).T
    count = len(tasks)
    columns = Tasks(
        time_ms=64.0 * np.arange(1, count + 1), en=np.zeros(count, np.int64),
        ue=np.zeros(count, np.int64), input_bytes=size, cycles=np.full(count, 10_240.0),
        deadline_ms=deadline,
    )  # fmt: skip
    [found] = play(scenario, method(name), [from_tasks(scenario, columns, 0, 0)], compiled=compiled)
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "name",
    ["never", "aov-gap", "self-tracking", "full-information", "power-of-d", "power-of-d:numbers=4"],
)
def test_what_is_done_at_the_very_deadline_is_in_time(name, compiled):
    tasks = [(1024, 10.0), (1024, 9.5), (8192, 18.0), (8192, 17.5)]
    found = _played_exactly(name, tasks, compiled)
    assert found.action.tolist() == [1, 2, 0, 2]
    assert found.finished_ms[[0, 2]].tolist() == [64.0 + 10.0, 192.0 + 18.0]
    # Reservations are of 50 000 bytes: that is enough for one, a byte less for none.
    for storage, action in ((50_000, 1), (49_999, 2)):
        found = _played_exactly(name, tasks[:1], compiled, f"sn.storage_bytes={storage}")
        assert found.action.tolist() == [action]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("name", "more", "updates"),
    [
        # One of four slots is taken: the state has moved by a quarter of its scale.
        ("aov-gap:threshold=0.25", "sn.slots=4", 0),
        ("aov-gap:threshold=0.249", "sn.slots=4", 2),
        # At the SN when that looks, with 5 ms of work for its only slot, of which 1 is done later.
        ("power-of-d:threshold_ms=5,keep=1", "sn.slots=1", 0),
        ("power-of-d:threshold_ms=4.5,keep=1", "sn.slots=1", 1),
    ],
)
def test_an_update_is_sent_when_the_state_has_moved_by_more(name, more, updates, compiled):
    found = _played_exactly(name, [(1024, 10.0)], compiled, more)
    assert found.action.tolist() == [1]
    assert found.updates == updates


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_rule_decides_as_the_plain_one(name):
    plain = _decides_alike(name, WORLD, [episode(WORLD, 4, number) for number in range(2)])
    assert len(np.unique(plain[0].action)) > 1 or name in ("all-local",)


def test_what_has_no_compiled_form_is_played_all_the_same():
    """As a rule that is made of one that has: it may decide otherwise."""

    class Reject(RuleDispatcher):
        def decide(self, tasks):
            return np.full(len(tasks), tasks.reject)

    class Rejecting(Never):
        def dispatcher(self, site):
            made = estimate.dispatcher(site)
            return Reject(site, made.rule, made.state)

    [found] = play(WORLD, Rejecting(), [episode(WORLD, 4, 0)], compiled=True)
    assert (found.action == WORLD.links.most_sns + 1).all()


@pytest.mark.parametrize(
    "entry",
    [
        compiled._player(EnRule(estimate.choose, estimate.choose), SnRule(send_always)),
        kernel.advance,
        kernel.hear,
    ],
)
def test_what_is_compiled_is_found_again_by_the_next_process(entry):
    """What a compiled function closes over is part of its key: a text is the same in each process,
    another compiled function is not.
    """
    assert {type(cell.cell_contents) for cell in entry.py_func.__closure__} == {str}


@pytest.mark.parametrize("name", COMPILED)
def test_rules_over_the_rows_of_small_batches_decide_as_row_by_row(name):
    small, chosen = load("campus", SMALL["full"]), method(name)
    worlds = [episode(small, 4, number) for number in range(2)]
    plain, rows = (
        play(small, chosen, worlds, watchers=[Watcher()], compiled=compiled)
        for compiled in (False, True)
    )
    for one, other in zip(plain, rows, strict=True):
        for field in ("action", "outcome", "decided_ms", "finished_ms"):
            np.testing.assert_array_equal(getattr(one, field), getattr(other, field), field)


def test_a_batch_without_rows_has_no_decisions():
    paper = load("paper")
    rows = with_compiled_rows(method("random").dispatcher(observations.site(paper)))
    none = observations.tasks(paper, 0, sn=np.zeros((0, 1)))
    assert rows.decide(none).tolist() == []


@pytest.mark.parametrize("name", ["cosmo-next", "random"])
def test_rules_over_the_rows_of_a_batch_decide_as_row_by_row(name):
    """Where the loop itself is plain: a method that is partly a rule, or somebody who looks on."""
    scenario = load("shared-sn", ["episode.window_ms=300", "episode.warmup_ms=0"])
    worlds, chosen = [episode(scenario, 4, number) for number in range(9)], method(name)
    plain, rows = (
        play(scenario, chosen, worlds, watchers=[Watcher()], compiled=compiled)
        for compiled in (False, True)
    )
    for one, other in zip(plain, rows, strict=True):
        np.testing.assert_array_equal(one.action, other.action)


def _limited():
    return _LIMIT


_LIMIT = 3


def test_a_rule_is_compiled_anew_when_a_number_that_it_knows_by_name_changes():
    """The number may come from another file, which Numba does not look at."""

    def asks():
        return _limited()

    before = sources_of(asks)
    assert sources_of(asks) == before
    asks.__globals__["_LIMIT"] = 4
    try:
        assert sources_of(asks) != before
    finally:
        asks.__globals__["_LIMIT"] = 3
