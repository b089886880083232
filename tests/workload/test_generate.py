"""Workloads: R2, R3, R26."""

import numpy as np
import pytest

from cosmo import load
from cosmo.workload import episode, from_tasks, idle_delay_ms
from cosmo.workload.arrivals import deterministic, modulated
from reference.world import deadline, idle_deadline_base
from replay import reference_parameters


def test_deterministic_arrivals_have_constant_gaps_and_stop_before_the_end():
    scenario = load("paper", ["workload.arrivals=deterministic", "workload.rate=200"])
    tasks = episode(scenario, 0, 0).tasks
    np.testing.assert_allclose(tasks.time_ms, 5.0 * np.arange(1, 2000))
    assert tasks.time_ms[-1] < 10000.0


def test_ues_take_turns():
    tasks = episode(load("paper"), 0, 0).tasks
    np.testing.assert_array_equal(tasks.ue, np.arange(len(tasks)) % 4)


@pytest.mark.parametrize("arrivals", ["poisson", "bursty"])
def test_mean_rate_and_dispersion(arrivals):
    settings = ["episode.window_ms=2000000", f"workload.arrivals={arrivals}", "workload.rate=300"]
    times = episode(load("paper", settings), 1, 0).tasks.time_ms
    rate = len(times) / 2000.0
    assert rate == pytest.approx(300.0, rel=0.01 if arrivals == "poisson" else 0.03)
    counts = np.histogram(times, bins=np.arange(0, 2000001, 1000))[0]
    dispersion = counts.var() / counts.mean()
    if arrivals == "poisson":
        assert dispersion == pytest.approx(1.0, abs=0.1)
    else:
        # Counts over T of a symmetric two-state process with mean dwell d: r = 2/d,
        # 1 + (rate gap)²/(2 r mean) · (1 − (1 − exp(−rT))/(rT)), rate gap = half of 150 to 450.
        r, t = 2.0 / 400.0, 1000.0
        extra = 2.0 * 0.15**2 / (r * 0.3) * (1.0 - (1.0 - np.exp(-r * t)) / (r * t))
        assert dispersion == pytest.approx(1.0 + extra, rel=0.15)


def test_steps_have_their_shares_of_the_rate_and_the_window():
    """Weights 1, 0, 4 for 0.4, 0.2 and 0.4 of the time: 150, 0 and 600 of a mean of 300."""
    settings = ["episode.window_ms=1000000", "workload.arrivals=steps", "workload.rate=300"]
    settings += ["workload.steps.weights=[1, 0, 4]", "workload.steps.at=[0.4, 0.6]"]
    times = episode(load("paper", settings), 1, 0).tasks.time_ms
    counts = np.histogram(times, bins=[0, 4e5, 6e5, 1e6])[0]
    assert counts[1] == 0
    assert counts[0] / 400.0 == pytest.approx(150.0, rel=0.02)
    assert counts[2] / 400.0 == pytest.approx(600.0, rel=0.02)
    assert (np.diff(times) >= 0).all()


def test_modulated_arrivals_start_in_the_long_run_distribution():
    first = [
        len(modulated((0.0, 1000.0), (300.0, 100.0), 20.0, np.random.default_rng(seed))) > 0
        for seed in range(2000)
    ]
    assert np.mean(first) == pytest.approx(0.25 + 0.75 * (1 - np.exp(-20 / 300)), abs=0.04)


@pytest.mark.parametrize("preset", ["paper", "campus"])
def test_sizes_demands_and_deadlines(preset):
    scenario = load(preset, ["workload.rate=300"])
    world = episode(scenario, 2, 3)
    tasks = world.tasks
    for values, low, high in ((tasks.input_bytes, 2e4, 5e4), (tasks.cycles, 1e5, 1.2e6)):
        assert low <= values.min() < low + 0.01 * (high - low)
        assert high - 0.01 * (high - low) < values.max() <= high
        assert values.mean() == pytest.approx((low + high) / 2, rel=0.02)
        assert (values == np.round(values)).all()
    parameters = reference_parameters(scenario, world)
    for k in range(0, len(tasks), 37):
        en, size, cycles = int(tasks.en[k]), tasks.input_bytes[k], tasks.cycles[k]
        base = idle_deadline_base(parameters, en, size, cycles)
        assert idle_delay_ms(scenario, en, size, cycles) == pytest.approx(base)
        assert deadline(base, 10.0) <= tasks.deadline_ms[k] <= deadline(base, 30.0)
    assert (tasks.deadline_ms >= 60.0).all()
    assert (tasks.deadline_ms <= 220.0).all()


def test_streams_depend_on_seed_and_episode_only():
    paper = load("paper")
    first, again = episode(paper, 7, 2).tasks, episode(paper, 7, 2).tasks
    for name in ("time_ms", "input_bytes", "cycles", "deadline_ms"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    for other in (episode(paper, 7, 3), episode(paper, 8, 2)):
        assert not np.array_equal(other.tasks.cycles[:50], first.cycles[:50])
    # No stream depends on another's length: a longer window keeps the first tasks as they were.
    longer = episode(load("paper", ["episode.window_ms=20000"]), 7, 2).tasks
    np.testing.assert_array_equal(longer.cycles[: len(first)], first.cycles)
    np.testing.assert_allclose(longer.time_ms[: len(first)], first.time_ms, rtol=1e-12)


def test_background_and_fading_follow_the_scenario():
    shared = episode(load("shared-sn", ["episode.window_ms=400000"]), 0, 0)
    assert len(shared.background) / 400.0 == pytest.approx(80.0, rel=0.06)
    assert (np.diff(shared.background.time_ms) >= 0).all()
    assert shared.rate_factor.shape == (2, 1, 0)
    fading = episode(load("fading-backhaul"), 0, 0)
    assert fading.rate_factor.shape == (2, 1, 50)
    assert fading.rate_factor.min() >= 0.25
    assert fading.rate_factor.max() <= 1.0
    assert len(fading.background) == 0


def test_given_tasks_stretch_the_window_to_the_next_full_second():
    paper = load("paper")
    tasks = episode(load("paper", ["episode.window_ms=12345"]), 0, 0).tasks
    assert from_tasks(paper, tasks, 0, 0).window_ms == 13000.0
    short = episode(load("paper", ["episode.window_ms=3000"]), 0, 0).tasks
    assert from_tasks(paper, short, 0, 0).window_ms == 10000.0


def test_a_stretched_window_has_background_and_rates_to_its_end():
    tasks = episode(load("paper", ["episode.window_ms=30000"]), 0, 0).tasks
    shared = from_tasks(load("shared-sn"), tasks, 0, 0)
    assert shared.background.time_ms[-1] > 29000.0
    fading = from_tasks(load("fading-backhaul"), tasks, 0, 0)
    assert fading.rate_factor.shape[-1] == 150


def test_the_rate_of_an_episode_counts_all_cells():
    campus = load("campus", ["workload.rate=120"])
    world = episode(campus, 0, 0)
    assert world.rate == 360.0
    assert len(world.tasks) == pytest.approx(3600, rel=0.1)
    assert set(world.tasks.en) == {0, 1, 2}


def test_deterministic_arrivals_never_reach_the_windows_end():
    for rate in range(1, 1200, 7):
        assert len(deterministic(float(rate), 10000.0)) == 10 * rate - 1


def test_a_longer_window_keeps_the_first_background_tasks():
    short = episode(load("shared-sn"), 0, 0).background
    longer = episode(load("shared-sn", ["episode.window_ms=20000"]), 0, 0).background
    # The last dwell of the short window is cut off at its end: compare what is well before it.
    count = np.searchsorted(short.time_ms, 5000.0)
    assert count > 100
    np.testing.assert_allclose(longer.time_ms[:count], short.time_ms[:count])
    np.testing.assert_array_equal(longer.cycles[:count], short.cycles[:count])
    np.testing.assert_array_equal(longer.input_bytes[:count], short.input_bytes[:count])
