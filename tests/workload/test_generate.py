"""Workloads: R2, R3, R26."""

import numpy as np
import pytest

from cosmo import InputError, load
from cosmo.workload import Tasks, episode, from_tasks, idle_delay_ms
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


def test_weights_share_the_rate_among_ens():
    """R36: rates of 150 in the mean, in proportion 1 : 0 : 3, so 112.5, 0 and 337.5."""
    settings = ["workload.rate=150", "workload.weights=[1, 0, 3]", "episode.window_ms=200000"]
    for arrivals in ("deterministic", "poisson", "bursty", "steps"):
        made = episode(load("campus", [*settings, f"workload.arrivals={arrivals}"]), 2, 0)
        each = np.bincount(made.tasks.en, minlength=3) / 200.0
        exact = {"deterministic": 1e-3, "bursty": 0.06}.get(arrivals, 0.03)
        np.testing.assert_allclose(each, [112.5, 0.0, 337.5], rtol=exact)
        assert made.rate == 450.0


def test_equal_weights_and_a_flat_wave_change_nothing():
    plain = episode(load("campus"), 4, 1).tasks
    same = ["workload.weights=[2, 2, 2]", "workload.wave={amplitude = 0, period_ms = 700}"]
    np.testing.assert_array_equal(episode(load("campus", same), 4, 1).tasks.time_ms, plain.time_ms)


@pytest.mark.parametrize("arrivals", ["poisson", "bursty", "steps"])
def test_a_wave_multiplies_each_ens_rate_with_a_phase_of_its_own(arrivals):
    """R36, over quarters of a period: the mean of sin over the first quarter is 2/π, EN 1 is half a
    period ahead of EN 0.
    """
    settings = ["workload.rate=400", "workload.wave={amplitude = 0.6, period_ms = 1000}"]
    settings += [f"workload.arrivals={arrivals}", "en.count=2", "episode.window_ms=400000"]
    tasks = episode(load("paper", settings), 1, 0).tasks
    for en, signs in ((0, [1, 1, -1, -1]), (1, [-1, -1, 1, 1])):
        quarter = (tasks.time_ms[tasks.en == en] % 1000.0) // 250.0
        each = np.bincount(quarter.astype(int), minlength=4) / 100.0
        np.testing.assert_allclose(
            each, 400.0 * (1.0 + 0.6 * 2.0 / np.pi * np.array(signs)), rtol=0.06
        )
    # UEs take turns after thinning, and all else is drawn for what is left.
    np.testing.assert_array_equal(tasks.ue[tasks.en == 0], np.arange((tasks.en == 0).sum()) % 4)


def test_the_rate_of_an_episode_follows_a_wave_that_is_cut_off():
    """Half a period: the mean of sin over it is 2/π. Costs a second are of the window's seconds."""
    settings = ["workload.rate=300", "workload.wave={amplitude = 1, period_ms = 20000}"]
    made = episode(load("paper", settings), 0, 0)
    assert made.rate == pytest.approx(300.0 * (1.0 + 2.0 / np.pi))
    assert len(made.tasks) / made.rate == pytest.approx(10.0, rel=0.03)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            ["workload.weights=[1, 2]"],
            "workload.weights = [1.0, 2.0]: must be a list of 3, one for each EN",
        ),
        (["workload.weights=[0, 0, 0]"], "workload.weights = [0.0, 0.0, 0.0]: must not all be 0"),
        (
            ["workload.wave={amplitude = 2, period_ms = 9}"],
            "workload.wave.amplitude = 2: must be less than or equal to 1",
        ),
        (
            ["background.rates=[1, 2, 3]"],
            "background.rates = [1, 2, 3]: must be two numbers, or a list with two numbers for each"
            " SN, in tasks/s",
        ),
        (
            ["background.dwell_ms=[[1, 2]]"],
            "background.dwell_ms = [[1.0, 2.0]]: must be two numbers, or a list of 2 such pairs,"
            " one for each SN",
        ),
        (
            ["workload.demand.spread=3"],
            "workload.demand.spread = 3: must be less than or equal to 2",
        ),
        (
            ["background.together=-1"],
            "background.together = -1: must be greater than or equal to 0",
        ),
        (
            ["workload.wave={amplitude = 0.5, period_ms = 9}", "workload.arrivals=deterministic"],
            "workload.wave.amplitude = 0.5: must be 0 with arrivals = 'deterministic';"
            " poisson, bursty and steps may have a wave",
        ),
    ],
)
def test_loads_that_cannot_be_are_refused_in_one_line(settings, line):
    with pytest.raises(InputError) as refused:
        load("campus", settings)
    assert str(refused.value) == line


def test_true_demands_are_declared_ones_times_a_factor_of_mean_1():
    """R35: the logarithm is normal with mean -s²/2 and deviation s; declared cycles, sizes and
    deadlines are drawn as ever.
    """
    plain = episode(load("paper", ["episode.window_ms=200000"]), 3, 0).tasks
    spread = ["episode.window_ms=200000", "workload.demand.spread=0.6"]
    tasks = episode(load("paper", spread), 3, 0).tasks
    for name in ("time_ms", "ue", "input_bytes", "cycles", "deadline_ms"):
        np.testing.assert_array_equal(getattr(tasks, name), getattr(plain, name))
    assert plain.as_declared
    assert plain.work_cycles is plain.cycles
    factor = np.log(tasks.true_cycles / tasks.cycles)
    assert factor.mean() == pytest.approx(-0.18, abs=0.02)
    assert factor.std() == pytest.approx(0.6, rel=0.02)
    assert abs(np.corrcoef(factor, tasks.cycles)[0, 1]) < 0.02


def test_given_tasks_get_true_demands_unless_they_have_some():
    scenario = load("paper", ["workload.demand.spread=1.0"])
    drawn = episode(load("paper"), 0, 0).tasks
    spread = from_tasks(scenario, drawn, 0, 0).tasks
    assert np.log(spread.true_cycles / drawn.cycles).std() == pytest.approx(1.0, rel=0.1)
    own = Tasks(*drawn.columns, 2.0 * drawn.cycles)
    np.testing.assert_array_equal(
        from_tasks(scenario, own, 0, 0).tasks.work_cycles, own.work_cycles
    )


TENANTS = ["sn.count=3", "episode.window_ms=200000", "background.cycles=[5e4, 6e4]"]
TENANTS += ["background.rates=[[0, 100], [0, 200], [0, 400]]"]
TENANTS += ["background.dwell_ms=[[1000, 1000], [3000, 1000], [100, 100]]"]


def _present(made, sn):
    """[100 ms] whether tenants of an SN are there."""
    times = made.background.time_ms[made.background.sn == sn]
    return np.histogram(times, bins=np.arange(0, 200001, 100))[0] > 0


def test_tenants_of_each_sn_have_rates_and_dwell_times_of_their_own():
    """R39: mean rates 50, 50 and 200 tasks/s."""
    made = episode(load("paper", TENANTS), 5, 0)
    each = np.bincount(made.background.sn) / 200.0
    np.testing.assert_allclose(each, [50.0, 50.0, 200.0], rtol=0.15)
    assert 5e4 <= made.background.cycles.min() < made.background.cycles.max() <= 6e4
    assert made.background.as_declared
    assert abs(np.corrcoef(_present(made, 0), _present(made, 1))[0, 1]) < 0.3


def test_tenants_come_and_go_together():
    """R39: round(0.7 · 3) = 2 SNs share one process with SN 0's dwell times; the third has its
    own, as without.
    """
    alone = episode(load("paper", TENANTS), 5, 0).background
    made = episode(load("paper", [*TENANTS, "background.together=0.7"]), 5, 0)
    both = np.corrcoef(_present(made, 0), _present(made, 1))[0, 1]
    assert both > 0.9
    assert _present(made, 0).mean() == pytest.approx(0.5, abs=0.1)
    assert (made.background.sn == 1).sum() / 200.0 == pytest.approx(100.0, rel=0.2)
    times = made.background.time_ms[made.background.sn == 2]
    np.testing.assert_array_equal(times, alone.time_ms[alone.sn == 2])


def test_tenants_demands_have_the_same_spread_from_a_stream_of_their_own():
    made = episode(load("paper", [*TENANTS, "workload.demand.spread=0.5"]), 5, 0)
    factor = np.log(made.background.true_cycles / made.background.cycles)
    assert factor.std() == pytest.approx(0.5, rel=0.03)
    own = np.log(made.tasks.true_cycles / made.tasks.cycles)
    count = min(len(own), len(factor))
    assert abs(np.corrcoef(own[:count], factor[:count])[0, 1]) < 0.02


def test_speeds_alternate_with_exponential_dwell_times_and_hold_after_the_window():
    """R37: a third of the time at 0.4, the first state drawn in that proportion."""
    speed = "{factors = [1.0, 0.4], dwell_ms = [200, 100]}"
    scenario = load("paper", [f"sn.speed={speed}", "sn.count=3", "episode.window_ms=200000"])
    speeds = episode(scenario, 1, 0).events
    assert set(speeds.node.tolist()) == {1, 2, 3}  # nodes are the EN, then the SNs
    assert (np.diff(speeds.time_ms) >= 0).all()
    for node in (1, 2, 3):
        own = speeds.node == node
        times, factors = speeds.time_ms[own], speeds.factor[own]
        assert times[0] == 0.0
        assert times[-1] < 200000.0
        assert (factors[1:] != factors[:-1]).all()
        slow = np.diff([*times, 200000.0])[factors == 0.4]
        assert slow.sum() == pytest.approx(200000.0 / 3.0, rel=0.1)
        assert slow.mean() == pytest.approx(100.0, rel=0.15)
    short = load("paper", [f"en.speed={speed}", "episode.window_ms=10", "episode.warmup_ms=0"])
    first = [episode(short, seed, 0).events.factor[0] for seed in range(600)]
    assert np.mean(np.array(first) == 0.4) == pytest.approx(1.0 / 3.0, abs=0.06)
    assert scenario.capacity_cycles_per_ms == pytest.approx(36000.0 + 3 * 108000.0 * 0.8)
