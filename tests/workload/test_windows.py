"""Traces as episodes: windows as recorded, resampled blocks, UEs that are there."""

import numpy as np
import pytest

from cosmo import InputError, load, method, simulate
from cosmo.measure import interval, lost_task_notices, lost_tasks
from cosmo.workload import (
    Tasks,
    episode,
    mean_rate,
    read_trace,
    trace_of,
    whole_windows,
    widening,
    window,
    write_trace,
)

SHORT = ["episode.window_ms=2000.0", "episode.warmup_ms=200.0"]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Seven seconds, 100 tasks a second: three windows of two seconds, and one second more."""
    path = tmp_path_factory.mktemp("trace") / "trace.parquet"
    made = load("paper", ["workload.rate=100", "episode.window_ms=7000"])
    write_trace(path, episode(made, 5, 0).tasks, 1)
    return path


@pytest.fixture(scope="module")
def scenario(trace):
    return load("paper", [f'workload.trace="{trace}"', *SHORT])


def test_the_windows_of_run_0_are_the_trace_as_it_was_recorded(scenario, trace):
    recorded = read_trace(trace, scenario)
    assert whole_windows(recorded, 2000.0) == 3
    played = [episode(scenario, 0, number) for number in range(3)]
    times = np.concatenate([2000.0 * k + each.tasks.time_ms for k, each in enumerate(played)])
    np.testing.assert_allclose(times, recorded.time_ms[recorded.time_ms < 6000.0], rtol=1e-12)
    cycles = np.concatenate([each.tasks.cycles for each in played])
    np.testing.assert_array_equal(cycles, recorded.cycles[: len(cycles)])
    assert {each.window_ms for each in played} == {2000.0}


def test_no_two_episodes_are_the_same(scenario):
    played = [episode(scenario, seed, number).tasks for seed in (0, 1) for number in range(6)]
    assert len({tasks.time_ms.tobytes() for tasks in played}) == 12
    for tasks in played:
        assert (np.diff(tasks.time_ms) >= 0.0).all()
        assert 0.0 <= tasks.time_ms[0] <= tasks.time_ms[-1] < 2000.0
    again = episode(scenario, 1, 4).tasks  # R26: by seed and number alone
    assert again.time_ms.tobytes() == played[10].time_ms.tobytes()


def test_resampled_episodes_are_blocks_of_the_trace(scenario):
    recorded, resampled = trace_of(scenario), episode(scenario, 3, 0).tasks
    for start in (0.0, 1000.0):
        inside = (resampled.time_ms >= start) & (resampled.time_ms < start + 1000.0)
        block = resampled.cycles[inside]
        [first] = [
            k for k in range(len(recorded) - len(block) + 1)
            if (recorded.cycles[k : k + len(block)] == block).all()
        ]  # fmt: skip
        shift = resampled.time_ms[inside] - recorded.time_ms[first : first + len(block)]
        np.testing.assert_allclose(shift, shift[0])


def test_resampling_keeps_the_rate(scenario):
    counts = [len(window(scenario, trace_of(scenario), 1, number)) for number in range(200)]
    assert np.mean(counts) == pytest.approx(2.0 * mean_rate(trace_of(scenario), 1), rel=0.03)


def test_a_trace_shorter_than_an_episode_is_one_episode_and_can_be_resampled():
    paper = load("paper")
    columns = [np.full(5, value) for value in (30000.0, 2e5, 90.0)]
    tasks = Tasks(np.arange(5) * 100.0, np.zeros(5, int), np.zeros(5, int), *columns)
    assert window(paper, tasks, 0, 0).time_ms.tolist() == tasks.time_ms.tolist()
    resampled = window(paper, tasks, 0, 1)
    assert resampled.time_ms.tolist() != tasks.time_ms.tolist()
    assert len(window(paper, Tasks(*(np.empty(0),) * 6), 0, 3)) == 0


def test_five_episodes_of_given_tasks_differ_too(scenario):
    found = simulate(
        load("paper", SHORT), method("all-local"), seeds=0, episodes=5, tasks=trace_of(scenario)
    )
    assert len({row["delay_ms_mean"] for row in found.episodes}) == 5


def test_ues_of_a_trace_are_in_reach_whenever_they_upload(trace):
    far = ["mobility.distances_m=[1.0, 6.0, 9.0, 20.0]", "mobility.speed_m_per_s=6.0"]
    far += ["mobility.headings_deg=[180.0, 0.0, 90.0, 180.0]", *SHORT, f'workload.trace="{trace}"']
    there = load("paper", far)
    outcomes = simulate(there, method("all-local"), seeds=0, episodes=3).outcomes
    assert lost_tasks(there, outcomes) == (0, 0)
    assert lost_task_notices(there, outcomes) == []
    walking = load("paper", [*far, "workload.trace_ues=walk"])
    outcomes = simulate(walking, method("all-local"), seeds=0, episodes=3).outcomes
    away, waited = lost_tasks(walking, outcomes)
    assert waited == 0
    assert away == sum(int((outcome.action < 0).sum()) for outcome in outcomes) > 0
    [line] = lost_task_notices(walking, outcomes)
    assert "were outside the cell (R7)" in line
    assert line.endswith("--set workload.trace_ues=present")


def test_a_channel_that_is_too_busy_is_another_cause():
    busy = load("paper", [*SHORT, "workload.rate=60", "access.rate_mbps=0.4"])
    outcomes = simulate(busy, method("all-local")).outcomes
    away, waited = lost_tasks(busy, outcomes)
    assert (away, waited) == (0, int((outcomes[0].action < 0).sum()))
    assert waited > 0
    assert "the cell's channel was busy" in lost_task_notices(busy, outcomes)[0]


def test_a_scenario_names_its_trace_relative_to_itself(tmp_path, trace, monkeypatch):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "mine.csv").write_text(
        "time_ms,ue,input_bytes,cycles,deadline_ms\n1.5,0,20000,100000,60\n"
    )
    (tmp_path / "site" / "base.toml").write_text('extends="paper"\n[workload]\ntrace="mine.csv"')
    (tmp_path / "own.toml").write_text('extends="site/base.toml"\n[episode]\nwarmup_ms=0')
    monkeypatch.chdir(tmp_path)
    found = load("own.toml")
    assert found.workload.arrivals == "trace"
    assert len(episode(found, 0, 0).tasks) == 1
    assert load("own.toml", ['workload.trace=""']).workload.arrivals == "poisson"
    with pytest.raises(InputError, match=r"workload.arrivals: the tasks come from workload.trace"):
        load("own.toml", ["workload.arrivals=poisson"])
    with pytest.raises(InputError, match=r"workload.trace: missing, and arrivals = 'trace' needs"):
        load("paper", ["workload.arrivals=trace"])


def test_a_trace_that_changes_is_read_again(tmp_path):
    path, header = tmp_path / "t.csv", "time_ms,ue,input_bytes,cycles,deadline_ms\n"
    path.write_text(f"{header}1,0,20000,100000,60\n")
    scenario = load("paper", [f'workload.trace="{path}"'])
    assert len(episode(scenario, 0, 0).tasks) == 1
    path.write_text(f"{header}1,0,20000,100000,60\n2,0,20000,100000,60\n")
    assert len(episode(scenario, 0, 0).tasks) == 2
    path.unlink()
    with pytest.raises(InputError, match=r"t.csv': cannot be read"):
        episode(scenario, 0, 0)


@pytest.mark.parametrize(("runs", "episodes"), [(1, 6), (1, 9), (3, 4), (3, 6), (10, 9)])
def test_intervals_are_widened_by_what_episodes_of_one_trace_have_in_common(runs, episodes):
    """Many traces of six windows each: windows are independent numbers around a true 0."""
    random, windows, traces = np.random.default_rng(3), 6, 20_000
    recorded = random.normal(size=(traces, windows))
    played = random.choice(windows, (traces, runs, episodes))
    values = np.take_along_axis(recorded, played.reshape(traces, -1), 1).reshape(played.shape)
    some = min(windows, episodes)
    values[:, 0, :some] = recorded[:, :some]
    pairs = [(run, number) for run in range(runs) for number in range(episodes)]
    independent = 1.0 / np.sqrt(len(pairs))
    # Drawing with replacement among six spreads by 5/6 of the variance that windows have.
    grown = values.mean(axis=(1, 2)).std() / independent
    assert grown == pytest.approx(widening(windows, pairs), rel=0.07)
    assert widening(windows, pairs) >= grown * 0.99


def test_windows_as_recorded_are_independent_and_long_traces_cost_nothing():
    assert widening(6.8, [(0, number) for number in range(6)]) == 1.0
    assert widening(1e9, [(1, number) for number in range(6)]) == pytest.approx(1.0)


def test_episodes_of_a_trace_say_so_in_their_intervals(scenario):
    plain = [each["success_rate"] for each in simulate(scenario, "random", episodes=3).episodes]
    assert simulate(scenario, "random", episodes=3).metrics["success_rate"] == interval(plain)
    more = simulate(scenario, "random", episodes=5)
    values = [each["success_rate"] for each in more.episodes]
    widened = widening(3.5, [(0, number) for number in range(5)])
    assert widened > 1.3
    assert more.metrics["success_rate"] == interval(values, widened)
