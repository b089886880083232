"""Which episodes are played for which run, and how far that has come; what is played is made up."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from cosmo import InputError, load, method
from cosmo.control import BASELINES, METHODS
from cosmo.policy.controller import Controller, TrainedRun
from cosmo.policy.learned_methods import LEARNED

# By their full names: the package shows the functions of the same names.
evaluation = import_module("cosmo.control.evaluate")
simulation = import_module("cosmo.control.simulate")
SCENARIO = load("paper", ["episode.window_ms=50", "episode.warmup_ms=0", "workload.rate=320"])


class _Agents:
    any_topology, dimensions = True, 2

    def of(self, rows):
        return SimpleNamespace(at_work=lambda: SimpleNamespace(rows=list(rows)))


def _played(monkeypatch, room):
    """Three worlds at a time; an outcome is (who played, seed and place of the episode)."""
    batches = []

    def play(scenario, chosen, worlds, *_, progress=None, watchers=()):
        progress = progress or _[2]
        tasks = sum(len(world.tasks) for world in worlds)
        progress(tasks // 2)
        progress(tasks)
        batches.append((chosen, worlds))
        return [world.tasks.time_ms.tolist() for world in worlds]

    monkeypatch.setattr(room, "play", play)
    monkeypatch.setattr(room, "worlds_at_once", lambda scenario: 3)
    monkeypatch.setattr(room, "Regret", lambda scenario, chosen: None)
    monkeypatch.setattr(room, "episode_metrics", lambda *given: given)
    return batches


def _controller(*seeds):
    runs = tuple(TrainedRun(seed, 320.0, 1.0) for seed in seeds)
    return Controller(Path("trained"), "cosmo-next", runs, 1, _Agents(), {})


def test_every_run_gets_the_outcomes_of_its_own_episodes(monkeypatch):
    batches = _played(monkeypatch, evaluation)
    busy = load("paper", ["episode.window_ms=50", "episode.warmup_ms=0", "workload.rate=120"])
    shares = []
    found = evaluation.evaluate(_controller(4, 7), 2, [SCENARIO, busy], share_done=shares.append)
    wanted = [
        [evaluation.episode(where, seed, number).tasks.time_ms.tolist() for number in (0, 1)]
        for seed, where in ((4, SCENARIO), (7, busy))
    ]
    assert [each.outcomes for each in found] == wanted
    assert [[given[0] for given in each.episodes] for each in found] == [[SCENARIO] * 2, [busy] * 2]
    assert {given[2] for each in found for given in each.episodes} == {2}
    assert [chosen.rows for chosen, _ in batches] == [[0, 0, 1], [1]]
    first, last = (sum(len(world.tasks) for world in worlds) for _, worlds in batches)
    total = first + last
    halves = first // 2, first, first + last // 2, total
    assert shares == [each / total for each in halves]


def test_only_the_load_may_differ(monkeypatch):
    _played(monkeypatch, evaluation)
    other = load("paper", ["episode.window_ms=50", "episode.warmup_ms=0", "sn.slots=9"])
    with pytest.raises(InputError, match="nothing but the load differs"):
        evaluation.evaluate(_controller(4, 7), 1, [SCENARIO, other])
    for seeds in ((4, 7), (4,)):
        assert len(evaluation.evaluate(_controller(*seeds), 1, SCENARIO)) == len(seeds)


def test_simulated_runs_get_theirs_too_and_progress_is_counted_in_episodes(monkeypatch):
    batches = _played(monkeypatch, simulation)
    shares = []
    found = simulation.simulate_runs(
        SCENARIO, method("all-local"), [4, 7], 2, share_done=shares.append, first_episode=5
    )
    assert [each.outcomes for each in found] == [
        [simulation.episode(SCENARIO, seed, number).tasks.time_ms.tolist() for number in (5, 6)]
        for seed in (4, 7)
    ]
    first, last = (sum(len(world.tasks) for world in worlds) for _, worlds in batches)
    assert shares == [
        3 * (first // 2) / first / 4, 3 / 4, (3 + (last // 2) / last) / 4, 1.0, 1.0,
    ]  # fmt: skip


def test_the_work_of_all_runs_is_checked_together(monkeypatch):
    for room, play_runs in (
        (evaluation, lambda: evaluation.evaluate(_controller(4, 7, 9), 2, SCENARIO)),
        (simulation, lambda: simulation.simulate_runs(SCENARIO, method("never"), [4, 7, 9], 2)),
    ):
        _played(monkeypatch, room)
        checked = MagicMock()
        monkeypatch.setattr(room, "check_episodes", checked)
        play_runs()
        assert {call.args[1] for call in checked.call_args_list} == {6}


def test_progress_of_a_single_task(monkeypatch):
    _played(monkeypatch, simulation)
    ways = ["episode.window_ms=15", "episode.warmup_ms=0", "workload.rate=100"]
    one = load("paper", [*ways, "workload.arrivals=deterministic"])
    shares = []
    simulation.simulate(one, "all-local", share_done=shares.append)
    assert shares == [0.0, 1.0, 1.0]


def test_intervals_of_what_is_no_trace_are_as_wide_as_they_are():
    assert simulation.widened_at(SCENARIO, [(0, 0), (0, 1)]) == 1.0


def test_one_episode_of_run_0_is_simulated_where_nothing_is_said(monkeypatch):
    _played(monkeypatch, simulation)
    [found] = simulation.simulate(SCENARIO, "all-local").outcomes
    assert found == simulation.episode(SCENARIO, 0, 0).tasks.time_ms.tolist()


def test_baselines_are_what_can_be_played_without_training():
    assert {"all-local", "aov-gap", "power-of-d", "full-information"} <= set(BASELINES)
    assert set(METHODS) - set(BASELINES) == {*LEARNED}
