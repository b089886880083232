"""Worlds in a batch, batches in a process, runs in different processes: none touches another."""

import hashlib
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from cosmo import InputError, Worlds, load, method, play
from cosmo.workload import Tasks, episode, from_tasks
from cosmo.world.records import UNDECIDED


def _digest(outcome):
    parts = outcome.action, outcome.outcome, outcome.decided_ms, outcome.finished_ms
    return hashlib.sha256(b"".join(np.ascontiguousarray(part) for part in parts)).hexdigest()


def _step(worlds, turn, salt):
    if len(turn.dispatch):
        worlds.answer(action=(turn.dispatch.task * 7 + turn.dispatch.world * salt) % 3)
    if len(turn.update):
        worlds.answer(send=True, interval_ms=9.0, numbers=turn.update.sn_state[:, :4])
    return worlds.advance()


def _finish(worlds, salt):
    turn = worlds.advance()
    while not turn.over:
        turn = _step(worlds, turn, salt)
    return [_digest(worlds.outcome(world)) for world in range(len(worlds))]


def test_two_batches_in_one_process_never_meet():
    scenario = load("shared-sn", ["episode.window_ms=600", "episode.warmup_ms=0"])
    first = [episode(scenario, 1, number) for number in range(3)]
    second = [episode(scenario, 2, number) for number in range(5)]
    alone = _finish(Worlds(scenario, first, 4), 1), _finish(Worlds(scenario, second, 4), 2)
    a, b = Worlds(scenario, first, 4), Worlds(scenario, second, 4)
    turn_a, turn_b = a.advance(), b.advance()
    while not (turn_a.over and turn_b.over):
        if not turn_a.over:
            turn_a = _step(a, turn_a, 1)
        if not turn_b.over:
            turn_b = _step(b, turn_b, 2)
    together = (
        [_digest(a.outcome(world)) for world in range(3)],
        [_digest(b.outcome(world)) for world in range(5)],
    )
    assert together == alone


@pytest.mark.parametrize("preset", ["paper", "campus", "fading-backhaul", "shared-sn"])
@pytest.mark.parametrize("name", ["random", "aov-gap"])
def test_a_world_does_not_depend_on_its_batch(preset, name):
    scenario = load(preset, ["episode.window_ms=1000", "episode.warmup_ms=200"])
    episodes = [episode(scenario, 4, number) for number in range(4)]
    chosen = method(name)
    together = play(scenario, chosen, episodes, seeds=4)
    for number, outcome in enumerate(together):
        [alone] = play(scenario, chosen, episodes[number : number + 1], seeds=4, numbers=[number])
        assert _digest(alone) == _digest(outcome)
        assert alone.status == outcome.status


def test_same_seed_same_bits_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/world')\n"
        "from test_batches import _digest\n"
        "from cosmo import load, method, play\n"
        "from cosmo.workload import episode\n"
        "scenario = load('campus')\n"
        "episodes = [episode(scenario, 9, 0)]\n"
        "print(_digest(play(scenario, method('random'), episodes, seeds=9)[0]))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()
    scenario = load("campus")
    [outcome] = play(scenario, method("random"), [episode(scenario, 9, 0)], seeds=9)
    assert _digest(outcome) == other


def _flood(count):
    return Tasks(
        time_ms=np.linspace(1.0, 50.0, count),
        en=np.zeros(count, np.int64),
        ue=np.zeros(count, np.int64),
        input_bytes=np.full(count, 1000.0),
        cycles=np.full(count, 1000.0),
        deadline_ms=np.full(count, 1e6),
    )


def test_a_flooded_world_gets_the_room_it_needs_and_its_neighbour_is_not_disturbed():
    scenario = load("paper", ["backhaul.down_mbps=0.1"])
    busy = from_tasks(scenario, _flood(600), 0, 0)
    quiet = from_tasks(scenario, _flood(3), 0, 0)

    def finish(episodes):
        worlds = Worlds(scenario, episodes, 4)
        turn = worlds.advance()
        while not turn.over:
            worlds.answer(action=(turn.dispatch.task * 7) % 3)
            worlds.answer(send=True, interval_ms=0.5, numbers=0.0)
            turn = worlds.advance()
        return worlds

    worlds = finish([busy, quiet, busy])
    assert worlds.outcome(0).updates > 10_000
    assert (worlds.outcome(0).outcome > 0).all()
    assert _digest(worlds.outcome(0)) == _digest(worlds.outcome(2))
    assert _digest(worlds.outcome(1)) == _digest(finish([quiet]).outcome(0))


def test_bad_answers_are_refused_and_change_nothing():
    scenario = load("paper")
    worlds = Worlds(scenario, [episode(scenario, 0, 0)], status_dimensions=4)
    worlds.advance()
    for interval in (0.0, -1.0, np.nan):
        worlds.answer(send=True, interval_ms=interval, numbers=0.0)
        with pytest.raises(ValueError, match="intervals must be greater than 0 ms"):
            worlds.advance()
    for number in (np.nan, np.inf):
        worlds.answer(send=True, interval_ms=5.0, numbers=[[0.0, 0.0, 0.0, number]])
        with pytest.raises(ValueError, match="a status must carry 4 finite numbers"):
            worlds.advance()
    worlds.answer(send=False, interval_ms=1e6)
    turn = worlds.advance()
    assert len(turn.dispatch) == 1
    for action in (-1, 3):
        worlds.answer(action=action)
        with pytest.raises(ValueError, match="from 0 to 2"):
            worlds.advance()
    worlds.answer(action=2)
    assert not worlds.advance().over
    assert worlds.outcome(0).update_decisions == 1


def test_an_empty_workload_is_over_at_once():
    scenario = load("paper")
    worlds = Worlds(scenario, [from_tasks(scenario, _flood(0), 0, 0)])
    assert worlds.advance().over


def test_a_ue_that_never_comes_into_range_leaves_its_tasks_undecided():
    scenario = load("paper", ["mobility.speed_m_per_s=0", "mobility.radius_m=6"])
    [outcome] = play(scenario, method("all-local"), [episode(scenario, 0, 0)])
    far = np.array(scenario.mobility.distances_m)[outcome.tasks.ue] > 6
    assert far.any()
    assert ((outcome.outcome == UNDECIDED) == far).all()
    limit = outcome.tasks.time_ms + outcome.tasks.deadline_ms + 5000.0
    np.testing.assert_array_equal(outcome.finished_ms[far], limit[far])


def test_turning_ues_stay_in_range_in_long_runs_and_leaving_ones_do_not():
    settings = ["workload.rate=50", "episode.window_ms=60000"]
    for at_edge, reached in (("turn", True), ("leave", False)):
        scenario = load("paper", [*settings, f"mobility.at_edge={at_edge}"])
        [outcome] = play(scenario, method("all-local"), [episode(scenario, 0, 0)])
        assert (outcome.action[-100:] == 0).all() == reached


def test_an_empty_node_has_all_its_storage_whatever_was_there_before():
    """Sizes that are no whole numbers must not leave rounding errors behind."""
    settings = ["storage.reservation_floor_bytes=0", "mobility.speed_m_per_s=0"]
    scenario = load("paper", settings)
    count, episodes = 60, []
    for seed in range(40):
        sizes = np.round(np.random.default_rng(seed).uniform(20000, 50000, count), 1)
        sizes[-1] = 240000.0  # all that the EN has
        times = np.cumsum(np.full(count, 30.0))
        times[-1] += 3000.0
        index = np.zeros(count, np.int64)
        tasks = Tasks(times, index, index, sizes, np.full(count, 8e5), np.full(count, 1e4))
        episodes.append(from_tasks(scenario, tasks, 0, 0))
    outcomes = play(scenario, method("all-local"), episodes)
    assert not any(outcome.refused[-1] for outcome in outcomes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"ue": [9, 0, 0]}, "tasks.ue = 9: must be from 0 to 3"),
        ({"ue": [-1, 0, 0]}, "tasks.ue = -1: must be from 0 to 3"),
        ({"en": [0, 1, 0]}, "tasks.en = 1: must be from 0 to 0"),
        ({"time_ms": [3.0, 2.0, 4.0]}, "tasks.time_ms: must be in order"),
        ({"time_ms": [1.0, np.nan, 4.0]}, "tasks.time_ms: must be in order"),
        ({"time_ms": [-1.0, 2.0, 4.0]}, "tasks.time_ms: must be finite and not negative"),
        ({"cycles": [1.0, -1.0, 1.0]}, "tasks.cycles: must be finite and greater than 0"),
        ({"input_bytes": [1.0]}, "tasks: all columns must have the same length"),
    ],
)
def test_tasks_that_do_not_fit_are_refused_before_compiled_code_sees_them(changes, reason):
    scenario = load("paper")
    columns = {name: np.array(value) for name, value in changes.items()}
    tasks = replace(_flood(3), **columns)
    with pytest.raises(InputError, match=reason):
        Worlds(scenario, [from_tasks(scenario, tasks, 0, 0)])


def test_an_episode_of_another_scenario_is_refused():
    paper, campus, fading = load("paper"), load("campus"), load("fading-backhaul")
    for scenario, other in ((paper, campus), (campus, paper), (paper, fading), (fading, paper)):
        with pytest.raises(InputError):
            Worlds(scenario, [episode(other, 0, 0)])


def test_whoever_is_asked_must_answer():
    scenario = load("paper")
    worlds = Worlds(scenario, [episode(scenario, 0, 0)], status_dimensions=4)
    worlds.advance()
    with pytest.raises(ValueError, match="intervals must be"):
        worlds.advance()
    worlds.answer(send=True, interval_ms=1e6)
    with pytest.raises(ValueError, match="a status must carry 4 finite numbers"):
        worlds.advance()
    worlds.answer(send=False, interval_ms=1e6)  # nothing is sent, so nothing need be said
    worlds.advance()
    with pytest.raises(ValueError, match="actions must be"):
        worlds.advance()


def _random_play(worlds, hold, seed=0, carries=2, seen=None):
    """Play to the end with actions that depend on the task alone; returns the outcomes."""
    turn = worlds.advance()
    while not turn.over:
        if seen is not None:
            told, heard, look = turn.dispatch, turn.feedback, turn.update
            seen += [told.status.copy(), told.status_ms.copy(), heard.task.copy()]
            seen += [heard.time_ms.copy(), look.acknowledged.copy(), look.acknowledged_ms.copy()]
            seen += [look.recent_delay_ms.copy(), look.recent_success.copy()]
        if len(turn.dispatch):
            worlds.answer(action=(turn.dispatch.task * 7 + seed) % 3)
        if len(turn.update):
            told = turn.update.sn_state[:, -carries:]
            worlds.answer(send=True, interval_ms=25.0 + turn.update.world, numbers=told)
        if hold == "en" and len(turn.update):
            turn = worlds.advance(hold="en")
        elif hold == "sn" and len(turn.dispatch):
            turn = worlds.advance(hold="sn")
        else:
            turn = worlds.advance()
    return [worlds.outcome(world) for world in range(len(worlds))]


@pytest.mark.parametrize("hold", ["en", "sn"])
def test_holding_worlds_back_changes_nothing(hold):
    scenario = load("paper", ["workload.rate=300", "episode.window_ms=2000", "episode.warmup_ms=0"])
    episodes = [episode(scenario, seed, 0) for seed in range(5)]
    plain = _random_play(Worlds(scenario, episodes, status_dimensions=2), "")
    held = _random_play(Worlds(scenario, episodes, status_dimensions=2), hold)
    for one, other in zip(plain, held, strict=True):
        np.testing.assert_array_equal(one.outcome, other.outcome)
        np.testing.assert_array_equal(one.finished_ms, other.finished_ms)
        assert one.updates == other.updates


def test_held_rows_stay_and_what_is_told_adds_up():
    scenario = load("paper", ["workload.rate=300", "episode.window_ms=2000", "episode.warmup_ms=0"])
    worlds = Worlds(scenario, [episode(scenario, seed, 0) for seed in range(6)], 2)
    turn, settled, heard, seen = worlds.advance(), 0, 0, 0
    while True:
        while len(turn.update):  # bring every world to an EN decision
            before = turn.dispatch.world.tolist(), turn.dispatch.time_ms.tolist()
            worlds.answer(send=False, interval_ms=40.0)
            turn = worlds.advance(hold="en")
            rows = len(before[0])
            assert turn.dispatch.world.tolist()[:rows] == before[0]
            assert turn.dispatch.time_ms.tolist()[:rows] == before[1]
        settled += len(worlds.settled())
        heard += len(turn.feedback)
        if turn.over:
            break
        assert sorted(turn.dispatch.world) == np.flatnonzero(~worlds.over).tolist()
        seen += len(turn.dispatch)
        worlds.answer(action=0)
        turn = worlds.advance()
    total = sum(len(each.tasks) for each in worlds.episodes)
    assert (seen, settled, heard) == (total, total, total)


def test_a_restarted_world_plays_like_a_new_one():
    scenario = load(
        "shared-sn", ["workload.rate=200", "episode.window_ms=1500", "episode.warmup_ms=0"]
    )
    first, second = ([episode(scenario, seed, n) for seed in range(3)] for n in (0, 1))
    worlds = Worlds(scenario, first, status_dimensions=4)
    _random_play(worlds, "", carries=4)
    for world in (2, 0, 1):
        worlds.restart(world, second[world])
    seen, seen_fresh = [], []
    again = _random_play(worlds, "", carries=4, seen=seen)
    batch = Worlds(scenario, second, status_dimensions=4)
    fresh = _random_play(batch, "", carries=4, seen=seen_fresh)
    for one, other in zip(seen, seen_fresh, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(again, fresh, strict=True):
        np.testing.assert_array_equal(one.action, other.action)
        np.testing.assert_array_equal(one.outcome, other.outcome)
        np.testing.assert_array_equal(one.finished_ms, other.finished_ms)
        assert one.updates == other.updates
        assert one.status == other.status
    running = Worlds(scenario, first, status_dimensions=4)
    with pytest.raises(ValueError, match="is not over"):
        running.restart(0, second[0])


def test_another_episode_takes_the_place_of_the_old_one():
    """Copying the table of all tasks at every restart would cost more than the episodes do."""
    scenario = load("paper", ["episode.window_ms=1500", "episode.warmup_ms=0"])
    episodes = [episode(scenario, seed, 0) for seed in range(4)]
    worlds = Worlds(scenario, episodes, status_dimensions=2)
    _random_play(worlds, "")
    table = worlds._state.tasks
    for number in range(1, 6):
        following = episode(scenario, 0, number)
        worlds.restart(0, following)
        [alone] = _random_play(Worlds(scenario, [following], status_dimensions=2), "")
        again = _random_play(worlds, "")
        np.testing.assert_array_equal(again[0].outcome, alone.outcome)
        assert worlds._state.tasks is table
