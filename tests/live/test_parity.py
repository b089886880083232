"""Under the virtual clock, live nodes take the simulator's decisions on every task."""

from dataclasses import replace
from types import SimpleNamespace

import compared
import numpy as np
import pytest

from cosmo import load, method
from cosmo.control import play
from cosmo.live.tasks import Fate
from cosmo.policy.registry import METHODS
from cosmo.policy.trained import TRAINED
from cosmo.workload import NodeEvents, episode
from cosmo.workload.table import FAILS, RETURNS, SPEED
from cosmo.world.records import FN, FP, TN, TP
from live.parity import untrained

SHORT = ["episode.window_ms=700", "episode.warmup_ms=0"]


def differences(scenario, make_method, found, seed, number=0):
    """Of live nodes from the simulator on one episode."""
    [simulated] = play(scenario, make_method(), [found], seed, [number])
    return compared.differences(simulated, scenario, make_method, seed, number)


PLAIN = sorted(METHODS.keys() - TRAINED.keys())


def _maker(name):
    drawn = untrained(name) if name in TRAINED else None
    return lambda: drawn or method(name)


def _check(scenario, name, number=0):
    found = episode(scenario, 3, number)
    made = _maker(name)
    compared = differences(scenario, made, found, 3, number)
    assert compared.tasks.tolist() == []
    assert compared.live == compared.simulated
    return found, compared.live


@pytest.mark.parametrize(
    ("world", "more"),
    [
        ("campus", ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]"]),
        ("shared-sn", ["status.loss_probability=0.3", "status.jitter_ms=20"]),
        ("fading-backhaul", ["fading.period_ms=20", "mobility.distances_m=[8.0, 1.0, 1.0, 1.0]"]),
    ],
)
@pytest.mark.parametrize(
    "name", ["aov-gap:threshold=0.01,timeout_ms=4", "piggyback", "priced-books"]
)
def test_short_episodes_of_all_kinds_are_decided_as_in_the_simulator(name, world, more):
    short = ["episode.window_ms=60", "episode.warmup_ms=0", "workload.rate=400"]
    found, _ = _check(load(world, [*short, *more]), name)
    assert len(found.tasks) > 10


@pytest.mark.parametrize("name", [*PLAIN, "cosmo", "cosmo-next"])
def test_every_method_decides_as_in_the_simulator(name):
    found, (updates, _) = _check(load("paper", [*SHORT, "workload.rate=320"]), name)
    assert len(found.tasks) > 150
    if method_sends(name):
        assert updates > 1


def method_sends(name):
    return name in ("periodic", "aoi-threshold", "aov-gap", "aoci-online", "prequal", "cosmo")


@pytest.mark.parametrize(
    "name",
    [
        *("cosmo", "cosmo-next", "prequal", "admission-control", "all-offload"),
        *("in-flight:hot_ms=5", "jbt:high_ms=9,low_ms=3", "jiq", "lsq", "leaky-bucket"),
    ],
)
def test_several_nodes_of_each_kind_do_so_too(name):
    _check(load("campus", [*SHORT, "workload.rate=180"]), name)


@pytest.mark.parametrize("name", ["cosmo-next", "aoci-online", "self-tracking"])
def test_others_at_the_sn_and_lost_messages_change_nothing(name):
    lossy = ["status.loss_probability=0.2", "status.jitter_ms=20", "workload.rate=260"]
    _check(load("shared-sn", [*SHORT, *lossy]), name)


@pytest.mark.parametrize("name", ["cosmo-next", "prequal", "self-tracking", "aov-gap"])
@pytest.mark.parametrize("declared", ["true", "false"])
def test_demands_that_nodes_do_not_know_and_tenants_change_nothing(name, declared):
    """R35, R39."""
    unknown = ["workload.demand.spread=0.8", f"workload.demand.declared={declared}"]
    tenants = ["background.rates=[[0, 200], [50, 90]]", "background.cycles=[2e5, 4e5]"]
    tenants += ["background.together=1.0", "background.dwell_ms=[200, 200]", "workload.rate=150"]
    _check(load("campus", [*SHORT, *unknown, *tenants]), name)


# Everything of R35 to R39 at once: demands, speeds, outages, tenants, on unequal ENs.
SURPRISES = [
    *("workload.rate=150", "workload.demand.spread=0.8", "workload.weights=[2, 1, 0.5]"),
    *("background.rates=[[0, 200], [50, 90]]", "background.cycles=[2e5, 4e5]"),
    *("background.together=1.0", "background.dwell_ms=[200, 200]"),
    "en.speed={factors=[1.0, 0.5], dwell_ms=[60, 40]}",
    "sn.speed={factors=[1.0, 0.4], dwell_ms=[80, 40]}",
    "sn.outage={up_ms=100, down_ms=20}",
]


@pytest.mark.parametrize("name", [*PLAIN, "cosmo", "cosmo-next"])
def test_every_method_decides_as_in_the_simulator_where_everything_surprises(name):
    """Actions, ends and what ENs hear, all at the same times (R35, R37 to R39, R41 e)."""
    short = ["episode.window_ms=250", "episode.warmup_ms=0"]
    found, _ = _check(load("campus", [*short, *SURPRISES]), name)
    assert len(found.tasks) > 50
    assert set(found.events.what.tolist()) == {SPEED, FAILS, RETURNS}


@pytest.mark.parametrize("name", ["self-tracking", "aov-gap"])
def test_outages_of_equal_length_that_meet_other_events_change_nothing(name):
    """Round times: changes fall on finishes, deliveries, deadlines and decisions (R5)."""
    scenario = load(
        "paper",
        [
            *(*SHORT, "workload.arrivals=deterministic", "workload.rate=250", "sn.slots=2"),
            *("workload.cycles=[180000,180000]", "workload.input_bytes=[24000,24000]"),
            *("access.rate_mbps=192", "access.overhead_ms=0", "access.contention_ms=0"),
            *("en.cycles_per_ms=18000", "sn.cycles_per_ms=18000"),
            *("workload.deadline.slack_ms=[20, 20]", "sn.outage={up_ms=1e6, down_ms=1.0}"),
        ],
    )
    times = np.arange(20.0, 700.0, 10.0)
    what = np.resize([SPEED, FAILS, RETURNS, SPEED, SPEED], len(times))
    node = np.where(what == SPEED, np.resize([0, 1], len(times)), 1)
    factor = np.where(what == SPEED, np.resize([0.5, 1.0, 2.0], len(times)), np.nan)
    events = NodeEvents(times, node, what, factor)
    found = replace(episode(scenario, 3, 0), events=events)
    compared = differences(scenario, _maker(name), found, 3)
    assert compared.tasks.tolist() == []
    assert compared.live == compared.simulated


@pytest.mark.parametrize("name", ["cosmo", "priced-books"])
def test_links_that_fade_and_ues_that_leave_change_nothing(name):
    away = ["mobility.distances_m=[7.9, 9.0, 2.0, 8.4]", "mobility.headings_deg=[180, 0, 0, 90]"]
    scenario = load("fading-backhaul", [*SHORT, *away, "mobility.speed_m_per_s=4"])
    found, _ = _check(scenario, name)
    assert len(found.tasks) > 0


@pytest.mark.parametrize("name", ["cosmo", "cosmo-next", "prequal", "self-tracking"])
def test_ens_that_reach_different_sns_do_so_too(name):
    uneven = ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]", "workload.rate=180"]
    _check(load("campus", [*SHORT, *uneven]), name)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("paper", ["workload.rate=320"]),
        ("shared-sn", ["workload.rate=260", "status.loss_probability=0.2", "status.jitter_ms=20"]),
        ("campus", ["sn.count=3", "backhaul.reach=[[0, 2], [1], [0, 1, 2]]", "workload.rate=180"]),
        ("volatile", ["status.loss_probability=0.2"]),
        ("block", []),
    ],
)
def test_the_controller_of_the_package_decides_as_in_the_simulator(name, more):
    scenario = load(name, [*SHORT, *more])
    found = episode(scenario, 3, 0)
    compared = differences(scenario, lambda: method("cosmo-next"), found, 3, 0)
    assert compared.tasks.tolist() == []
    assert compared.live == compared.simulated
    assert compared.live[0] > 0  # it tells


@pytest.mark.parametrize("name", ["paper", "shared-sn", "campus"])
def test_so_it_does_for_net_utility(name):
    _check(load(name, [*SHORT, "workload.rate=260"]), "cosmo-next:objective=utility")


def test_equal_instants_keep_their_order():
    """With steady arrivals and round numbers, many events fall on the same instant (R5)."""
    round_numbers = [
        *(
            "workload.arrivals=deterministic",
            "workload.rate=250",
            "workload.cycles=[180000,180000]",
        ),
        *("workload.input_bytes=[24000,24000]", "access.rate_mbps=192", "access.overhead_ms=0"),
        *("access.contention_ms=0", "en.cycles_per_ms=18000", "sn.cycles_per_ms=18000"),
    ]
    scenario = load("paper", [*SHORT, *round_numbers])
    for name in ("local-until-full", "aov-gap", "periodic:interval_ms=4"):
        _check(scenario, name)


# An episode of one task for each column: action, times of decision and end, outcome and fate.
_ALIKE = [
    (1, 5.0, 9.0, TP, False, Fate.DONE),
    (0, 5.0, 9.0, FP, False, Fate.LATE),
    (0, 5.0, 9.0, FP, True, Fate.REFUSED),
    (2, 5.0, 5.0, TN, False, Fate.REJECTED),
    (2, 5.0, 5.0, FN, False, Fate.REJECTED),
]


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        *((each, each, True) for each in _ALIKE),
        ((1, 5.0, 9.0, TP, False, Fate.DONE), (2, 5.0, 9.0, TP, False, Fate.DONE), False),
        ((1, 5.0, 9.0, TP, False, Fate.DONE), (1, 5.5, 9.0, TP, False, Fate.DONE), False),
        ((1, 5.0, 9.0, TP, False, Fate.DONE), (1, 5.0, 9.5, TP, False, Fate.DONE), False),
        ((1, 5.0, 9.0, TP, False, Fate.LATE), (1, 5.0, 9.0, TP, False, Fate.LATE), False),
        ((2, 5.0, 9.0, TN, False, Fate.DONE), (2, 5.0, 9.0, TN, False, Fate.DONE), False),
        # Of a refusal by an SN the EN hears later; of one by itself at once.
        ((1, 5.0, 9.0, FP, True, Fate.REFUSED), (1, 5.0, 8.0, FP, True, Fate.REFUSED), True),
        ((0, 5.0, 9.0, FP, True, Fate.REFUSED), (0, 5.0, 8.0, FP, True, Fate.REFUSED), False),
        # Without a decision there is nothing to compare.
        ((-1, 5.0, 9.0, 0, False, 0), (-1, 6.0, 8.0, 0, False, 0), True),
        ((0, 5.0, 9.0, TP, False, Fate.DONE), (-1, 5.0, 9.0, TP, False, Fate.DONE), False),
    ],
)
def test_what_counts_as_a_difference(ours, theirs, same, monkeypatch):
    live_columns = {"action": 0, "decided_ms": 1, "finished_ms": 2, "fate": 5}
    columns = {"action": 0, "decided_ms": 1, "finished_ms": 2, "outcome": 3, "refused": 4}
    live, simulated = (
        SimpleNamespace(
            episode=None, heard=lambda: None, updates=number, update_decisions=number + 1,
            **{name: np.array([values[place]]) for name, place in named.items()},
        )
        for number, values, named in ((3, ours, live_columns), (5, theirs, columns))
    )  # fmt: skip
    nodes = SimpleNamespace(play=lambda: live)
    monkeypatch.setattr(compared, "VirtualWorld", lambda *told: nodes)
    found = compared.differences(simulated, None, lambda: None)
    assert found.tasks.tolist() == ([] if same else [0])
    assert (found.live, found.simulated) == ((3, 4), (5, 6))


def test_a_difference_would_be_found():
    scenario = load("paper", [*SHORT, "workload.rate=320"])
    kinds = iter([method("priced-books"), method("priced-books"), method("self-tracking")])
    found = episode(scenario, 3, 0)
    assert len(differences(scenario, lambda: next(kinds), found, 3).tasks) > 0
