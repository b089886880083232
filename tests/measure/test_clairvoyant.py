"""The clairvoyant bound: known optima by hand, and no policy above it in any small world."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo import load, method, play
from cosmo.errors import InputError
from cosmo.measure import clairvoyant, clairvoyant_bound, episode_metrics
from cosmo.measure.windows import nominal_ms, service_windows
from cosmo.workload import NodeEvents, Tasks, episode, from_tasks
from cosmo.workload.table import FAILS, RETURNS, SPEED
from cosmo.world.records import TP
from scenarios import worlds

# A free channel, 1 ms of work per 1000 cycles at a lone EN slot; the SN is faster, but far away.
PLAIN = load(
    "paper",
    [
        "episode.warmup_ms=1000", "episode.window_ms=2000", "access.rate_mbps=1e9",
        "access.overhead_ms=0", "access.contention_ms=0", "en.slots=1", "en.cycles_per_ms=1000",
        "sn.slots=1", "sn.cycles_per_ms=2000", "backhaul.up_mbps=80", "backhaul.down_mbps=80",
        "backhaul.hops=1", "backhaul.hop_delay_ms=5", "backhaul.result_bytes=10000",
    ],
)  # fmt: skip
UP_MS, DOWN_MS = 15.0, 6.0  # of 100000 and 10000 bytes at 10000 bytes/ms, and a hop


def _bound(rows, scenario=PLAIN, events=None, **options):
    """Rows: (generated, cycles, deadline); successes at most."""
    time_ms, cycles, deadline_ms = np.array(rows, float).T
    nobody = np.zeros(len(rows), np.int64)
    tasks = Tasks(time_ms, nobody, nobody, np.full(len(rows), 1e5), cycles, deadline_ms)
    world = from_tasks(scenario, tasks, 0, 0)
    world = world if events is None else replace(world, events=events)
    return clairvoyant_bound(scenario, world, **options)


def test_a_task_that_just_fits_counts_and_one_that_does_not_does_not():
    # 40 ms at the EN, 20 at the SN beside both transfers: 41.
    assert _bound([(1000.0, 40000.0, 40.001)]).successes == 1
    assert _bound([(1000.0, 40000.0, 39.99)]).successes == 0
    slow_en = load("paper", [*_settings(PLAIN), "en.cycles_per_ms=1"])
    assert _bound([(1000.0, 40000.0, UP_MS + 20.0 + DOWN_MS)], slow_en).successes == 1
    assert _bound([(1000.0, 40000.0, UP_MS + 19.99 + DOWN_MS)], slow_en).successes == 0


def _settings(scenario):
    """All that differs from `paper` as settings."""
    paper = load("paper").model_dump()
    return [
        f"{part}.{name}={value}"
        for part, fields in scenario.model_dump().items()
        if isinstance(fields, dict)
        for name, value in fields.items()
        if value != paper[part][name]
    ]


def test_slots_are_shared_by_what_can_be_served_in_turns_and_in_part():
    """Tasks of 20 ms at the EN in 50 ms, of 10 ms at the SN in the 29 ms between transfers: room
    for 2.5 and 2.9 of them, 5.4 in all.
    """
    same = [(1000.0, 20000.0, 50.0)] * 7
    assert _bound(same[:5]).successes == 5
    assert _bound(same, grid_ms=1.0).successes == 5
    # Cells of 10 ms that begin before the upload ends or last beyond the return: 2.5 and 4.
    assert _bound(same, grid_ms=10.0).successes == 6
    # A cell that is longer than all of it only says that each of them could be served.
    assert _bound(same, grid_ms=1000.0).successes == 7
    # A task cannot be at work on two slots at once, so that one of 60 ms is not served in 50.
    assert _bound([(1000.0, 120000.0, 50.0)]).successes == 0
    # Of unequal ones the small are served, and there is time left for one of the large.
    small = [(1000.0, 4000.0, 50.0)] * 7
    assert _bound([*small, *[(1000.0, 48000.0, 50.0)] * 9], grid_ms=1.0).successes == 8


def test_a_finer_grid_never_raises_the_bound():
    scenario = load("paper", ["workload.rate=340", "episode.window_ms=500", "episode.warmup_ms=0"])
    world = episode(scenario, 3, 0)
    found = [clairvoyant_bound(scenario, world, grid).successes for grid in (80.0, 40.0, 20.0, 5.0)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0]


def test_only_measured_tasks_count_and_warm_up_tasks_take_nothing():
    before = [(995.0, 40000.0, 80.0)] * 4
    after = [(1000.0, 40000.0, 41.5)] * 2
    found = _bound(before + after)
    assert (found.successes, found.measured) == (2, 2)
    assert found.success_rate == 1.0
    nothing = _bound(before)
    assert (nothing.successes, nothing.measured, nothing.unknowns) == (0, 0, 0)
    assert np.isnan(nothing.success_rate)


def test_changing_rates_are_taken_at_their_best_within_a_task_s_time():
    """The EN is out of question; uploads and results at the best start that steps of 10 ms give."""
    scenario = load(
        "paper",
        [*_settings(PLAIN), "en.cycles_per_ms=1", "fading.factors=[0.5,2.0]",
         "fading.period_ms=10"],
    )  # fmt: skip
    tasks = Tasks(
        np.array([1000.0]), *np.zeros((2, 1), np.int64), np.array([1e5]), np.array([40000.0]),
        np.array([200.0]),
    )  # fmt: skip
    world = from_tasks(scenario, tasks, 0, 0)
    world.rate_factor[:] = 0.5
    world.rate_factor[0, 0, 101] = 2.0  # up, from 1010 to 1020
    world.rate_factor[1, 0, 118] = 2.0  # down, from 1180 to 1190
    windows = service_windows(scenario, world, np.ones(1, bool))
    # From 1000 on at half the rate: 1025; from 1010 on at twice the rate: 1020.
    assert windows.from_ms == pytest.approx([1020.0], abs=1e-4)
    # By 1200 at half the rate: 7 ms before, at 1193, which is later than any start before 1190.
    assert windows.until_ms == pytest.approx([1193.0], abs=1e-4)
    world.rate_factor[1, 0, 119:] = 0.05  # 25 ms from 1190 on
    windows = service_windows(scenario, world, np.ones(1, bool))
    assert windows.until_ms == pytest.approx([1190.0], abs=1e-4)


def test_it_knows_all_changes_of_speed_and_outages():
    """At 1000 the EN goes to half speed, at 1020 to double; the SN is down from 1000 to 1030."""
    when = np.array([1000.0, 1000.0, 1020.0, 1030.0])
    node, what = np.array([0, 1, 0, 1]), np.array([SPEED, FAILS, SPEED, RETURNS])
    events = NodeEvents(when, node, what, np.array([0.5, np.nan, 2.0, np.nan]))
    times = np.array([990.0, 1010.0, 1025.0, 1040.0])
    assert nominal_ms(events, 0, times) == pytest.approx([990.0, 1005.0, 1020.0, 1050.0])
    assert nominal_ms(events, 1, times) == pytest.approx([990.0, 1000.0, 1000.0, 1010.0])
    assert nominal_ms(events, 2, times) is times
    row = [(1000.0, 40000.0, 35.01)]  # 40 ms at the EN: 10 in the first 20 ms, 30 in the next 15
    assert _bound(row, events=events).successes == 1
    assert _bound([(1000.0, 40000.0, 34.9)], events=events).successes == 0


def test_outages_are_those_of_the_sn_that_fails():
    """Of two SNs, where a task has just enough time for one alone, the second one is down."""
    two = load("paper", [*_settings(PLAIN), "en.cycles_per_ms=1", "sn.count=2"])
    rows = [(1000.0, 40000.0, UP_MS + 20.0 + DOWN_MS)] * 3
    second = 2  # nodes are ENs, then SNs
    down = NodeEvents(np.array([1000.0]), np.array([second]), np.array([FAILS]), np.array([np.nan]))
    assert _bound(rows, two).successes == 2
    assert _bound(rows, two, down).successes == 1


METHODS = (
    "all-local", "all-offload", "local-until-full", "random", "self-tracking", "back-off",
    "priced-books", "adaptive-prices", "full-information",
)  # fmt: skip


@settings(max_examples=15)
@given(worlds(), st.sampled_from([3.0, 10.0, 50.0]))
def test_no_method_exceeds_it(world, grid_ms):
    scenario, one = world
    bound = clairvoyant_bound(scenario, one, grid_ms)
    assert bound.measured == (one.tasks.time_ms >= scenario.episode.warmup_ms).sum()
    for name in METHODS:
        [outcome] = play(scenario, method(name), [one])
        measured = outcome.tasks.time_ms >= scenario.episode.warmup_ms
        assert (outcome.outcome[measured] == TP).sum() <= bound.successes, name


def test_on_the_paper_s_world_it_lies_between_full_information_and_one():
    scenario = load("paper", ["workload.rate=320", "episode.window_ms=4000"])
    world = episode(scenario, 0, 0)
    bound = clairvoyant_bound(scenario, world).success_rate
    [outcome] = play(scenario, method("full-information"), [world])
    reached = episode_metrics(scenario, outcome, 0)["success_rate"]
    assert reached + 0.03 < bound < 0.9


def test_bad_grids_large_programs_and_other_engines_are_refused(monkeypatch):
    world = [(1000.0, 40000.0, 50.0)]
    for grid_ms in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match=r"^grid_ms = .*: must be"):
            _bound(world, grid_ms=grid_ms)
    with pytest.raises(InputError, match=r"^grid_ms = 1e-07: makes a program of \d+ unknowns"):
        _bound(world, grid_ms=1e-7)
    monkeypatch.setattr(clairvoyant, "MOST_UNKNOWNS", 9)
    with pytest.raises(InputError, match="more than the 9 that are allowed"):
        _bound(world, grid_ms=5.0)
    with pytest.raises(InputError, match=r"^engine = 'ns3'"):
        _bound(world, load("paper", [*_settings(PLAIN), "engine=ns3"]))


def test_the_command_prints_the_bound_of_every_episode(cosmo):
    short = "--set", "episode.window_ms=2400", "--rate", "320", "--episodes", "2"
    code, out, err = cosmo("bound", *short, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    rates = [each["success_rate"] for each in document["episodes"]]
    assert document["success_rate"]["mean"] == pytest.approx(np.mean(rates))
    assert document["grid_ms"] == 10.0
    assert all(
        each["success_rate"] == each["successes"] / each["measured"]
        for each in document["episodes"]
    )
    code, out, _ = cosmo("bound", *short)
    assert code == 0
    assert f"{rates[0]:.4f}" in out
    code, _, err = cosmo("bound", "--grid-ms", "0")
    assert (code, err) == (2, "cosmo: grid_ms = 0: must be greater than 0\n")
