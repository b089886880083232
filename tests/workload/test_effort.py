"""What would not end, or not fit into memory, is refused in one line that says how to allow it."""

import pytest

from cosmo import InputError, load, method, simulate
from cosmo.envs import DispatchEnv, UpdateEnv
from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.workload import episode, from_tasks, read_trace
from cosmo.workload.effort import LIMIT, expected_events


def test_the_estimate_by_hand():
    paper = load("paper")  # 220 tasks a second for ten seconds, a look each 100 ms
    assert expected_events(paper, 10_000.0) == 2200 + 100
    assert expected_events(paper, 10_000.0, tasks=7) == 7 + 100
    bursty = load("paper", ["workload.arrivals=bursty"])  # changes each 400 ms
    assert expected_events(bursty, 10_000.0) == 2200 + 25 + 100
    other = load("campus", [
        "workload.rate=100", "background.rates=[10,30]", "background.dwell_ms=[50,150]",
        "fading.factors=[0.5,1]", "fading.period_ms=100",
    ])  # fmt: skip
    ens, sns = other.en.count, other.sn.count
    by_hand = ens * 1000 + sns * (300 + 100) + 2 * ens * sns * 100 + sns * 100
    assert expected_events(other, 10_000.0) == by_hand


@pytest.mark.parametrize(
    "settings",
    [
        ["workload.rate=1e6", "episode.window_ms=1e9"],
        ["workload.rate=1e6", "workload.arrivals=deterministic"],
        ["workload.arrivals=bursty", "workload.burst.dwell_ms=[1e-3,1e-3]"],
        ["background.rates=[1e6,0]"],
        ["background.rates=[1,1]", "background.dwell_ms=[1e-3,1e-3]"],
        ["fading.period_ms=1e-3", "fading.factors=[0.5,1]"],
        ["episode.window_ms=1e9", "workload.rate=1e-3"],
    ],
)
def test_endless_episodes_are_refused_before_they_are_drawn(settings):
    with pytest.raises(InputError, match=rf"events \(.*\).*more than 2e.06; .* {LIMIT} to"):
        episode(load("paper", settings), 0, 0)


def test_the_limit_can_be_lifted(monkeypatch):
    monkeypatch.setenv(LIMIT, "100")
    with pytest.raises(InputError, match=r"more than 1e.02"):
        episode(load(), 0, 0)
    monkeypatch.setenv(LIMIT, "1e4")
    assert len(episode(load(), 0, 0).tasks) > 1000
    for text in ("none", "nan", "0", "-1"):
        monkeypatch.setenv(LIMIT, text)
        with pytest.raises(InputError, match=f"{LIMIT} = '{text}': must be a number from 1 on"):
            episode(load(), 0, 0)


def test_more_episodes_than_memory_holds_are_refused():
    with pytest.raises(InputError, match="workload: 1000000 episodes of about"):
        simulate(load(), method("all-local"), episodes=1_000_000)


def test_the_times_of_a_trace_count_from_its_start(tmp_path):
    path = tmp_path / "epoch.csv"
    path.write_text("time_ms,ue,input_bytes,cycles,deadline_ms\n1700000000000,0,5,5,5\n")
    with pytest.raises(InputError, match="less than 1e9: count from the start of the trace"):
        read_trace(path, load())
    path.write_text("time_ms,ue,input_bytes,cycles,deadline_ms\n9e8,0,5,5,5\n")
    with pytest.raises(InputError, match=LIMIT):  # a look each 100 ms, for ten days
        from_tasks(load(), read_trace(path, load()), 0, 0)


SHORT = ["episode.window_ms=50", "episode.warmup_ms=0"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("periodic:interval_ms=1e-9", []),
        ("aoi-threshold", ["utility.update_weight=1e-12"]),
        ("aoi-threshold", ["utility.update_weight=0"]),
        ("aov-gap:check_ms=1e-6", []),
        ("aoci-online:check_ms=1e-9", []),
    ],
)
def test_an_updater_that_hardly_waits_is_refused(name, settings):
    with pytest.raises(InputError, match=r"intervals.*(at least 0\.1 ms on average|than 0 ms)"):
        simulate(load("paper", [*SHORT, *settings]), method(name))


def test_an_updater_at_a_quarter_of_a_millisecond_is_not():
    found = simulate(load("paper", SHORT), method("periodic:interval_ms=0.25"))
    assert found.outcomes[0].update_decisions == 201  # at 0, 0.25, …, 50 (R21)


def test_nor_in_environments():
    env = DispatchEnv(load("paper", SHORT), updater="periodic:interval_ms=1e-9")
    with pytest.raises(InputError, match=r"0\.1 ms on average"):
        env.reset(seed=0)
    with pytest.raises(InputError, match=r"must be 0\.1 ms or longer"):
        UpdateEnv(load("paper", SHORT), intervals_ms=(1e-9,))


def test_trainings_have_bounds():
    for settings in (
        "episodes=1000000000",
        "sn.intervals_ms=[1e-9]",
        "en.branch=1000000",
        "en.learning_rate=1e300",
    ):
        with pytest.raises(InputError, match=r"must be (less|greater) than or equal to"):
            load_config("paper", [settings])
    for settings in ("episodes=1000000000", "spans.look=1e-9", "sn.look=1e-12", "window_ms=1e300"):
        with pytest.raises(InputError, match=r"must be (less|greater) than or equal to"):
            load_next_config("next", [settings])
