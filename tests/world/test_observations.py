"""What agents see, worked out again from the scenario and the outcome (R7, R8, R19)."""

import math

import numpy as np
import pytest

from cosmo import Worlds, load
from cosmo.workload import Tasks, episode, from_tasks
from cosmo.world.records import FP


def _watch(scenario, world, send_every=13.0):
    """Every dispatch and update row of a run with scrambled decisions."""
    worlds = Worlds(scenario, [world], status_dimensions=4)
    seen, looked = [], []
    turn = worlds.advance()
    while not turn.over:
        if len(turn.dispatch):
            row = turn.dispatch
            seen.append(
                (int(worlds.truth().place[0]), row.throughput_mbps[0], row.throughput_trend_mbps[0],
                 row.residual_ms[0], row.up_link_mbps[0].copy(), row.time_ms[0])
            )  # fmt: skip
            worlds.answer(action=(row.task * 5) % (row.sns + 2))
        if len(turn.update):
            row = turn.update
            looked.append(
                (int(row.sn[0]), row.time_ms[0], row.recent_delay_ms[0], row.recent_success[0],
                 row.recent_failure[0], row.down_link_mbps[0].copy())
            )  # fmt: skip
            worlds.answer(send=True, interval_ms=send_every, numbers=0.0)
        turn = worlds.advance()
    return seen, looked, worlds.outcome(0)


def test_throughput_is_smoothed_per_ue_of_each_cell():
    scenario = load("campus", ["workload.rate=120", "episode.window_ms=4000"])
    seen, _, outcome = _watch(scenario, episode(scenario, 1, 0))
    tasks, smoothed = outcome.tasks, {}
    assert len(seen) > 1000
    for k, throughput, trend, *_ in seen:
        ue = int(tasks.en[k]), int(tasks.ue[k])
        delay = outcome.decided_ms[k] - tasks.time_ms[k]
        sample = tasks.input_bytes[k] * 8 / 1000 / delay  # kbit/ms = Mbps
        before = smoothed.get(ue)
        smoothed[ue] = sample if before is None else 0.25 * sample + 0.75 * before
        assert throughput == pytest.approx(smoothed[ue], rel=1e-9)
        change = 0.0 if before is None else smoothed[ue] - before
        assert trend == pytest.approx(change, abs=1e-9)
    assert len(smoothed) == 12
    assert 60 < np.mean(list(smoothed.values())) < 128.6


@pytest.mark.parametrize("at_edge", ["leave", "turn"])
def test_residual_time_is_that_of_a_walk(at_edge):
    settings = ["workload.rate=20", "episode.window_ms=40000", f"mobility.at_edge={at_edge}"]
    settings += ["mobility.headings_deg=[0, 20, -40, 90]", "mobility.residual_cap_ms=9000"]
    scenario = load("paper", settings)
    seen, _, outcome = _watch(scenario, episode(scenario, 0, 0), send_every=1e5)
    assert len(seen) > 100
    for k, _, _, residual, _, now in seen:
        ue = int(outcome.tasks.ue[k])
        distance, heading = (
            scenario.mobility.distances_m[ue], math.radians(scenario.mobility.headings_deg[ue])
        )  # fmt: skip
        x, y = -distance, 0.0  # the EN is at the origin
        vx, vy = math.cos(heading) / 1000.0, math.sin(heading) / 1000.0
        far = distance * math.cos(heading) + math.sqrt(64 - (distance * math.sin(heading)) ** 2)
        chord = 2 * math.sqrt(64 - (distance * math.sin(heading)) ** 2)
        assert math.hypot(x + vx * far * 1000, y + vy * far * 1000) == pytest.approx(8.0)
        edge = far * 1000
        while at_edge == "turn" and edge < now:
            edge += chord * 1000
        assert residual == pytest.approx(min(edge - now, 9000.0), abs=1e-6)


def test_a_ue_that_never_moves_has_the_largest_residual_time():
    scenario = load("paper", ["mobility.speed_m_per_s=0", "episode.window_ms=3000"])
    seen, _, _ = _watch(scenario, episode(scenario, 0, 0))
    assert {residual for _, _, _, residual, _, _ in seen} == {60000.0}


def _rate_statistics(scenario, factors, nominal, now):
    """Mean and deviation over the last 500 ms and now minus mean, from fine samples of time."""
    start = max(0.0, now - 500.0)
    times = np.linspace(start, now, 40001)[:-1] + (now - start) / 80002
    steps = np.minimum((times // scenario.fading.period_ms).astype(int), len(factors) - 1)
    rates = nominal * factors[steps]
    current = nominal * factors[min(int(now // scenario.fading.period_ms), len(factors) - 1)]
    return rates.mean(), rates.std(), current - rates.mean()


def test_link_rates_are_summed_up_over_the_last_half_second():
    settings = ["episode.window_ms=3000", "workload.rate=60", "fading.period_ms=70"]
    scenario = load("fading-backhaul", settings)
    world = episode(scenario, 3, 0)
    seen, looked, _ = _watch(scenario, world, send_every=97.0)
    checked = 0
    for _, _, _, _, up, now in seen[5::9]:
        want = _rate_statistics(scenario, world.rate_factor[0, 0], 96.0, now)
        np.testing.assert_allclose(up[0], want, rtol=2e-3, atol=0.05)
        checked += 1
    for _, now, _, _, _, down in looked[1::3]:
        want = _rate_statistics(scenario, world.rate_factor[1, 0], 192.0, now)
        np.testing.assert_allclose(down[0], want, rtol=2e-3, atol=0.1)
        checked += 1
    assert checked > 20


def test_constant_links_have_their_nominal_rate():
    settings = ["backhaul.up_mbps=[[10, 20], [30, 40], [50, 60]]", "episode.window_ms=2500"]
    scenario = load("campus", settings)
    seen, looked, outcome = _watch(scenario, episode(scenario, 0, 0))
    for k, _, _, _, up, _ in seen:
        en = int(outcome.tasks.en[k])
        want = [[10 + 20 * en, 0, 0], [20 + 20 * en, 0, 0]]
        np.testing.assert_array_equal(up, want)
    assert all((down[:, 0] == 192.0).all() for *_, down in looked)


# One slot each, 1 cycle/ms, 1 byte/ms everywhere, no delays: everything on whole ms.
WHOLE = (
    "access.overhead_ms=0", "access.contention_ms=0", "access.rate_mbps=0.008",
    "storage.reservation_floor_bytes=0", "mobility.speed_m_per_s=0",
    "en.slots=1", "en.cycles_per_ms=1", "sn.slots=1", "sn.cycles_per_ms=1",
    "backhaul.up_mbps=0.008", "backhaul.down_mbps=0.008", "backhaul.hops=1",
    "backhaul.hop_delay_ms=0", "backhaul.result_bytes=1",
)  # fmt: skip


def _whole(rows, *settings):
    """Rows: (time, bytes, cycles, deadline)."""
    scenario = load("paper", [*WHOLE, *settings])
    time, size, cycles, deadline = (np.array(column, float) for column in zip(*rows, strict=True))
    index = np.zeros(len(rows), np.int64)
    tasks = Tasks(time, index, index, size, cycles, deadline)
    return scenario, from_tasks(scenario, tasks, 0, 0)


def test_an_sn_judges_for_itself_how_its_tasks_of_the_last_half_second_ended():
    """R19, R29: at the finish, with the return on an idle link; a refusal fails and has no delay.

    Task 0 is at the SN at 4, done at 12 and would be back at 13, its deadline. Task 1 comes at 8
    and is refused, so a notice of 64 B holds the link until 72, and the result of task 0 is late:
    the SN does not know. Task 2 is done at 124, back 25 ms after its generation: too late.
    """
    rows = [(0.0, 2.0, 8.0, 13.0), (4.0, 2.0, 8.0, 100.0), (100.0, 2.0, 20.0, 10.0)]
    scenario, world = _whole(rows, "sn.queue_capacity=1")
    expected = {
        0.0: (0.0, 0.0, 0.0),
        7.0: (0.0, 0.0, 0.0),
        9.0: (0.0, 0.0, 1.0),
        13.0: (13.0, 1 / 2, 1 / 2),
        130.0: (19.0, 1 / 3, 2 / 3),
        508.0: (19.0, 1 / 3, 2 / 3),
        509.0: (19.0, 1 / 2, 1 / 2),  # the refusal at 8 is half a second ago
        513.0: (25.0, 0.0, 1.0),
        625.0: (0.0, 0.0, 0.0),
    }
    worlds = Worlds(scenario, [world], status_dimensions=1)
    looks, seen = iter([*list(expected)[1:], np.inf]), {}
    turn = worlds.advance()
    while not turn.over:
        if len(turn.update):
            look = turn.update
            now = float(look.time_ms[0])
            seen[now] = (
                look.recent_delay_ms.item(), look.recent_success.item(), look.recent_failure.item()
            )  # fmt: skip
            worlds.answer(send=False, interval_ms=next(looks) - now)
        else:
            worlds.answer(action=1)
        turn = worlds.advance()
    assert seen == {time: pytest.approx(numbers) for time, numbers in expected.items()}
    outcome = worlds.outcome(0)
    assert outcome.finished_ms.tolist() == [73.0, 8.0, 125.0]
    assert outcome.outcome.tolist() == [FP, FP, FP]
    assert outcome.refused.tolist() == [False, True, False]


def test_a_route_that_ends_exactly_on_the_deadline_is_feasible():
    # Upload 2, local 8: 10. Offload: 2 + 2 + 8 + 1 = 13.
    for deadline, local, offload in ((10.0, True, False), (9.99, False, False), (13.0, True, True)):
        scenario, world = _whole([(0.0, 2.0, 8.0, deadline)])
        worlds = Worlds(scenario, [world])
        worlds.advance()
        assert worlds.truth().feasible[0].tolist() == [local, offload]
        worlds.answer(action=2)
        worlds.advance()


def test_storage_that_is_just_enough_is_enough():
    for storage, refused in ((6.0, False), (5.99, True)):
        scenario, world = _whole(
            [(0.0, 2.0, 50.0, 200.0), (2.0, 4.0, 5.0, 200.0)], f"en.storage_bytes={storage}"
        )
        worlds = Worlds(scenario, [world])
        turn = worlds.advance()
        while not turn.over:
            worlds.answer(action=0)
            turn = worlds.advance()
        assert worlds.outcome(0).refused.tolist() == [False, refused]


def test_a_task_that_reaches_its_en_at_the_last_moment_is_decided():
    for grace, decided in ((3.0, True), (2.99, False)):
        scenario, world = _whole([(0.0, 8.0, 5.0, 5.0)], f"episode.undecided_after_ms={grace}")
        worlds = Worlds(scenario, [world])
        assert worlds.advance().over != decided


def test_an_en_decides_before_an_sn_at_the_same_instant():
    scenario, world = _whole([(0.0, 4.0, 5.0, 50.0)])
    worlds = Worlds(scenario, [world], status_dimensions=4)
    order = []
    turn = worlds.advance()
    while not turn.over:
        order.append("en" if len(turn.dispatch) else "sn")
        worlds.answer(action=0, send=False, interval_ms=4.0 if len(order) == 1 else np.inf)
        turn = worlds.advance()
    assert order == ["sn", "en", "sn"]


def test_a_task_in_flight_that_arrives_at_the_same_instant_is_ahead():
    """Two ENs send to one SN so that both inputs arrive at once: the first sent is first."""
    scenario = load("campus", [*WHOLE, "en.count=2", "sn.count=1",
                               "backhaul.up_mbps=[[0.008], [0.016]]"])  # fmt: skip
    tasks = Tasks(
        np.array([0.0, 0.0]), np.array([0, 1]), np.array([0, 0]), np.array([4.0, 6.0]),
        np.array([10.0, 10.0]), np.array([500.0, 500.0]),
    )  # fmt: skip
    # EN 0 has its input at 4 and sends until 8; EN 1 at 16/3 and, twice as fast, until 8.
    tasks.input_bytes[1] = 16 / 3
    worlds = Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])
    turn = worlds.advance()
    assert int(turn.dispatch.task[0]) == 0
    worlds.answer(action=1)
    turn = worlds.advance()
    # Arrival 8, then 10 behind the other, 10 of its own, result 1.
    assert worlds.truth().delay_ms[0, 1] == pytest.approx(29.0)
    worlds.answer(action=1)
    while not worlds.advance().over:
        pass
    np.testing.assert_allclose(worlds.outcome(0).finished_ms, [19.0, 29.0])


def test_the_size_of_a_status_message_follows_what_it_carries():
    """Down at 1 byte/ms: a message of 64 + 4·d bytes takes that many ms."""
    for dimensions in (2, 4):
        scenario, world = _whole([(9000.0, 1.0, 1.0, 5.0)], "episode.undecided_after_ms=5000")
        worlds = Worlds(scenario, [world], status_dimensions=dimensions)
        turn = worlds.advance()
        while not turn.over:
            worlds.answer(action=2, send=True, interval_ms=500.0, numbers=0.0)
            turn = worlds.advance()
        age = worlds.outcome(0).status.peak_aoi_ms
        assert age == pytest.approx(500.0 + 64 + 4 * dimensions)
