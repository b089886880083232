"""Queueing theory as an oracle: the engine's nodes, channel and links against closed formulas.

Each simulated mean must agree with the formula within its own interval over independent
replications (99.9 %, and seeds are fixed, so that a correct engine does not fail by chance).
"""

import math

import numpy as np
import pytest
from scipy.special import stdtrit

from cosmo import load, method, play
from cosmo.workload import Tasks, from_tasks
from cosmo.world.records import FP

REPLICATIONS, TASKS, WARMUP = 24, 20_000, 2_000
SLOW = 1000.0  # cycles per ms of the node under test

# A node with room for all, and an access channel and links that take no time worth mentioning.
OPEN = (
    "storage.reservation_floor_bytes=0",
    "access.overhead_ms=0",
    "access.contention_ms=0",
    "access.rate_mbps=1e9",
    "mobility.speed_m_per_s=0",
    "en.storage_bytes=1e15",
    "en.queue_capacity=1000000",
    f"en.cycles_per_ms={SLOW}",
    "sn.storage_bytes=1e15",
    "sn.queue_capacity=1000000",
    "episode.window_ms=1e8",
)


def _poisson_tasks(rate_per_ms, draw_cycles, input_bytes, seed, deadline_ms=1e9):
    random = np.random.default_rng(seed)
    return Tasks(
        time_ms=np.cumsum(random.exponential(1.0 / rate_per_ms, TASKS)),
        en=np.zeros(TASKS, np.int64),
        ue=np.zeros(TASKS, np.int64),
        input_bytes=np.full(TASKS, input_bytes),
        cycles=draw_cycles(random),
        deadline_ms=np.full(TASKS, deadline_ms),
    )


def _replications(settings, name, rate_per_ms, draw_cycles, measure, input_bytes=1.0):
    scenario = load("paper", [*OPEN, *settings])
    episodes = [
        from_tasks(scenario, _poisson_tasks(rate_per_ms, draw_cycles, input_bytes, seed), 0, 0)
        for seed in range(REPLICATIONS)
    ]
    return np.array([measure(outcome) for outcome in play(scenario, method(name), episodes)])


def _assert_agrees(values, exact):
    half = stdtrit(len(values) - 1, 0.9995) * values.std(ddof=1) / math.sqrt(len(values))
    assert half < 0.1 * exact, "too noisy to tell anything"
    assert abs(values.mean() - exact) < half, f"{values.mean()} ± {half} against {exact}"


def _wait_at_en(outcome):
    wait = outcome.finished_ms - outcome.decided_ms - outcome.tasks.cycles / SLOW
    return wait[WARMUP:].mean()


def _exponential(mean_ms):
    return lambda random: np.maximum(random.exponential(mean_ms * SLOW, TASKS), 1e-9)


def _erlang_b(servers, load):
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    return blocking


@pytest.mark.parametrize(("servers", "utilisation"), [(1, 0.6), (2, 0.7), (5, 0.85)])
def test_mmc_mean_wait(servers, utilisation):
    mean_ms = 10.0
    rate = utilisation * servers / mean_ms
    values = _replications(
        [f"en.slots={servers}"], "all-local", rate, _exponential(mean_ms), _wait_at_en
    )
    load_ = rate * mean_ms
    blocked = _erlang_b(servers, load_)
    delayed = blocked / (1.0 - utilisation * (1.0 - blocked))  # Erlang C
    _assert_agrees(values, delayed * mean_ms / (servers - load_))


def test_md1_mean_wait():
    service, utilisation = 8.0, 0.75
    values = _replications(
        ["en.slots=1"],
        "all-local",
        utilisation / service,
        lambda random: np.full(TASKS, service * SLOW),
        _wait_at_en,
    )
    _assert_agrees(values, utilisation * service / (2.0 * (1.0 - utilisation)))


@pytest.mark.parametrize(("servers", "places"), [(3, 3), (2, 6)])
def test_mmck_refuses_as_erlang_says(servers, places):
    mean_ms, load_ = 10.0, 2.0
    values = _replications(
        [f"en.slots={servers}", f"en.queue_capacity={places}"],
        "all-local",
        load_ / mean_ms,
        _exponential(mean_ms),
        lambda outcome: (outcome.outcome == FP)[WARMUP:].mean(),
    )
    weights = [
        load_**n / math.factorial(min(n, servers)) / servers ** max(0, n - servers)
        for n in range(places + 1)
    ]
    _assert_agrees(values, weights[-1] / sum(weights))


def test_storage_limits_like_places_do():
    """With equal reservations, storage for K tasks is a finite queue of K places (R9, R10)."""
    mean_ms, load_ = 10.0, 2.0
    values = _replications(
        ["en.slots=3", "storage.reservation_floor_bytes=100", "en.storage_bytes=399"],
        "all-local",
        load_ / mean_ms,
        _exponential(mean_ms),
        lambda outcome: outcome.refused[WARMUP:].mean(),
    )
    _assert_agrees(values, _erlang_b(3, load_))


def test_access_channel_is_an_md1_queue():
    service, utilisation = 2.0, 0.7

    def wait(outcome):
        return (outcome.decided_ms - outcome.tasks.time_ms)[WARMUP:].mean() - service

    values = _replications(
        ["access.rate_mbps=8", "en.cycles_per_ms=1e12"],
        "all-local",
        utilisation / service,
        lambda random: np.ones(TASKS),
        wait,
        input_bytes=2000.0,
    )
    _assert_agrees(values, utilisation * service / (2.0 * (1.0 - utilisation)))


def test_backhaul_is_an_md1_queue():
    """EN→SN serialisation is the only queue; hops, last packet and result add a constant."""
    service, utilisation = 3.0, 0.6
    input_bytes, rate = 3000.0, 1000.0  # bytes, bytes per ms
    constant = service + 2.0 + 1500.0 / rate + 1000.0 / 24000.0 + 2.0 + 1000.0 / 24000.0

    def wait(outcome):
        return (outcome.finished_ms - outcome.decided_ms)[WARMUP:].mean() - constant

    values = _replications(
        ["backhaul.up_mbps=8", "sn.cycles_per_ms=1e12"],
        "all-offload",
        utilisation / service,
        lambda random: np.ones(TASKS),
        wait,
        input_bytes=input_bytes,
    )
    _assert_agrees(values, utilisation * service / (2.0 * (1.0 - utilisation)))


# Windows are stretched to the last task: no more changes are drawn than are needed.
CHANGING = ("episode.window_ms=3000",)


def _stationary(rates):
    """The stationary distribution of a Markov chain with these rates from row to column."""
    generator = rates - np.diag(rates.sum(axis=1))
    system = np.vstack([generator.T, np.ones(len(rates))])
    found, *_ = np.linalg.lstsq(system, np.eye(len(system))[-1], rcond=None)
    return found


def _long_run(settings, name, rate, mean_ms, deadline_ms=1e9):
    """[replication] mean time of a task at its node."""
    scenario = load("paper", [*OPEN, *CHANGING, *settings])
    found = []
    for seed in range(REPLICATIONS):
        tasks = _poisson_tasks(rate, _exponential(mean_ms), 1.0, seed, deadline_ms)
        world = from_tasks(scenario, tasks, seed, 0)
        [outcome] = play(scenario, method(name), [world])
        found.append((outcome.finished_ms - outcome.decided_ms)[WARMUP:].mean())
    return np.array(found)


def _assert_within_two_percent(values, exact):
    half = stdtrit(len(values) - 1, 0.9995) * values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - exact) < min(half, 0.02 * exact), f"{values.mean()} against {exact}"


def test_an_mm1_queue_whose_speed_is_modulated_waits_as_its_markov_chain_says():
    """R37: two speeds with exponential dwell times; states are (phase, tasks)."""
    mean_ms, rate, factors, dwell = 10.0, 0.045, (1.0, 0.4), (60.0, 30.0)
    most = 150
    chain = np.zeros((2, most, 2, most))
    for phase in range(2):
        for tasks in range(most):
            chain[phase, tasks, 1 - phase, tasks] = 1.0 / dwell[phase]
            if tasks + 1 < most:
                chain[phase, tasks, phase, tasks + 1] = rate
            if tasks:
                chain[phase, tasks, phase, tasks - 1] = factors[phase] / mean_ms
    states = _stationary(chain.reshape(2 * most, 2 * most)).reshape(2, most)
    exact = (states.sum(axis=0) * np.arange(most)).sum() / rate  # Little
    speed = f"en.speed={{factors = {list(factors)}, dwell_ms = {list(dwell)}}}"
    values = _long_run(["en.slots=1", speed], "all-local", rate, mean_ms)
    _assert_within_two_percent(values, exact)


@pytest.mark.parametrize("servers", [1, 3])
def test_an_mmc_queue_with_breakdowns_that_lose_all_waits_as_its_markov_chain_says(servers):
    """R38: the last state is down. Deadlines are over at once, so that a lost task is final then:
    the mean time at the SN over all tasks, lost ones too, is Little's.
    """
    mean_ms, up_ms, down_ms, most = 10.0, 300.0, 50.0, 120
    rate = 0.8 * servers / mean_ms
    chain = np.zeros((most + 1, most + 1))
    for tasks in range(most):
        chain[tasks, most] = 1.0 / up_ms
        if tasks + 1 < most:
            chain[tasks, tasks + 1] = rate
        if tasks:
            chain[tasks, tasks - 1] = min(tasks, servers) / mean_ms
    chain[most, 0] = 1.0 / down_ms
    states = _stationary(chain)
    exact = (states[:most] * np.arange(most)).sum() / rate
    assert states[most] == pytest.approx(down_ms / (up_ms + down_ms))
    settings = [
        f"sn.slots={servers}", f"sn.cycles_per_ms={SLOW}", "backhaul.up_mbps=1e9",
        "backhaul.down_mbps=1e9", "backhaul.hop_delay_ms=0",
        f"sn.outage={{up_ms = {up_ms}, down_ms = {down_ms}}}",
    ]  # fmt: skip
    values = _long_run(settings, "all-offload", rate, mean_ms, deadline_ms=1e-6)
    _assert_within_two_percent(values, exact)
