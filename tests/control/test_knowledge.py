"""R41: what a method decides depends on what its nodes have seen, and on nothing else."""

from collections.abc import Iterable, Mapping

import numpy as np
import pytest

from cosmo import InputError, load, method, play
from cosmo.node import Dispatcher, Method
from cosmo.seeds import Purpose
from cosmo.workload import Tasks, episode, from_tasks, write_trace

SHORT = ["episode.window_ms=2000", "episode.warmup_ms=0"]
TOLD_A_RATE = ["aoi-threshold", "prequal", "cosmo-next"]  # methods that use the rate of the site


def _until(tasks: Tasks, end_ms: float) -> Tasks:
    """The tasks before a time."""
    return tasks.taken(tasks.time_ms < end_ms)


@pytest.mark.parametrize("preset", ["paper", "campus"])
@pytest.mark.parametrize("name", [*TOLD_A_RATE, "power-of-d"])
def test_worlds_that_agree_until_a_time_lead_to_the_same_decisions_until_then(
    tmp_path, preset, name
):
    """(d), with traces: how many tasks come later is not known before."""
    whole = episode(load(preset, [*SHORT, "workload.rate=260"]), 3, 0).tasks
    ens, found = load(preset).en.count, []
    for number, tasks in enumerate((whole, _until(whole, 1000.0))):
        path = tmp_path / f"{number}.csv"
        write_trace(path, tasks, ens)
        scenario = load(preset, [*SHORT, f'workload.trace="{path}"'])
        [outcome] = play(scenario, method(name), [episode(scenario, 0, 0)])
        found.append(outcome)
    longer, shorter = found
    early = longer.decided_ms[: len(shorter.action)] < 1000.0
    assert early.sum() > 200
    np.testing.assert_array_equal(
        longer.action[: len(early)][early], shorter.action[early], strict=True
    )


@pytest.mark.parametrize("name", TOLD_A_RATE)
def test_an_episode_of_a_trace_is_played_the_same_alone_and_beside_a_light_one(name):
    """(c): the rate of one episode says nothing to another."""
    scenario = load("paper", [*SHORT, "workload.rate=300"])
    whole = episode(scenario, 1, 0).tasks
    light = whole.taken(slice(None, None, 10))
    heavy_alone = from_tasks(scenario, whole, 0, 1)
    beside = [from_tasks(scenario, light, 0, 0), heavy_alone]
    [alone] = play(scenario, method(name), [heavy_alone], numbers=[1])
    _, together = play(scenario, method(name), beside, numbers=[0, 1])
    np.testing.assert_array_equal(alone.action, together.action)
    assert (alone.updates, alone.status_bytes) == (together.updates, together.status_bytes)


def test_nodes_are_told_the_rate_that_was_planned_beside_a_trace(tmp_path):
    """R36: `workload.rate` changes no arrival of a trace, and is what nodes are told."""
    made = load("paper", SHORT)
    write_trace(tmp_path / "t.csv", episode(made, 0, 0).tasks, 1)
    costs = []
    for rate in (40, 400):
        settings = [*SHORT, f'workload.trace="{tmp_path / "t.csv"}"', f"workload.rate={rate}"]
        scenario = load("paper", settings)
        one = episode(scenario, 0, 0)
        np.testing.assert_array_equal(one.tasks.time_ms, episode(made, 0, 0).tasks.time_ms)
        [outcome] = play(scenario, method("aoi-threshold"), [one])
        costs.append(outcome.updates)
    assert costs[1] == pytest.approx(10**0.5 * costs[0], rel=0.15)  # age ~ 1/sqrt(rate)


def _whole_numbers(thing, seen=None):
    """All whole numbers that can be read from an object: fields, items, states and seeds."""
    seen = {} if seen is None else seen
    if isinstance(thing, (bool, str, bytes, float, np.ndarray)) or thing is None:
        return set()
    if isinstance(thing, (int, np.integer)):
        return {int(thing)}
    if id(thing) in seen or callable(thing):
        return set()
    seen[id(thing)] = thing  # kept, so that no other object gets its id
    parts = [*getattr(thing, "__dict__", {}).values()]
    parts += [getattr(thing, name) for name in getattr(thing, "__dataclass_fields__", ())]
    for name in ("bit_generator", "state", "seed_seq", "entropy", "spawn_key", "pool"):
        parts.append(getattr(thing, name, None))
    if isinstance(thing, Mapping):
        parts += [*thing.keys(), *thing.values()]
    elif isinstance(thing, Iterable):
        parts += list(thing)
    return set().union(*(_whole_numbers(part, seen) for part in parts))


class Burglar(Method, Dispatcher):
    """Looks for numbers from which it could make the background load that it must not see."""

    def dispatcher(self, site):
        self.numbers = _whole_numbers(site)
        for purpose in (Purpose.DISPATCHER, Purpose.UPDATER):
            self.numbers |= _whole_numbers(site.random(purpose))
        for purpose in set(Purpose) - {Purpose.DISPATCHER, Purpose.UPDATER}:
            with pytest.raises(InputError, match=r"must be Purpose.DISPATCHER or Purpose.UPDATER"):
                site.random(purpose)
        return self

    def decide(self, tasks):
        return np.full(len(tasks), tasks.reject)


def test_no_seed_from_which_the_world_could_be_made_reaches_a_method():
    """(a): of all numbers that a method can find, none makes the world's hidden load."""
    scenario = load("volatile", [*SHORT, "episode.window_ms=300"])
    seed, number = 771_203, 5
    world = episode(scenario, seed, number)
    burglar = Burglar()
    play(scenario, burglar, [world], seed, [number])
    assert len(world.background) > 0
    found = {each for each in burglar.numbers if each >= 0}
    assert seed not in found
    assert len(found) > 5  # it has looked: states of generators are among them
    for guess in found:
        for where in range(8):  # even if it knew the episode
            made = episode(scenario, guess, where).background
            assert not np.array_equal(made.time_ms, world.background.time_ms)


def test_draws_of_a_method_are_its_own_and_the_same_every_time():
    scenario = load("paper", SHORT)
    world = episode(scenario, 0, 0)
    one, same, other = (
        play(scenario, method("random"), [world], seed)[0].action for seed in (4, 4, 5)
    )
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


class Listener(Method, Dispatcher):
    """Keeps what it hears."""

    def dispatcher(self, site):
        self.heard = []
        return self

    def decide(self, tasks):
        return tasks.task % (tasks.reject + 1)

    def observe(self, feedback):
        columns = feedback.world.tolist(), feedback.en.tolist(), feedback.task.tolist()
        self.heard += zip(*columns, strict=True)


def test_all_that_an_en_is_to_hear_is_told_before_the_episode_ends():
    """(f), and every EN hears of every task that it has decided on exactly once."""
    scenario = load("campus", [*SHORT, "workload.rate=260", "workload.demand.spread=1.0"])
    listener = Listener()
    outcomes = play(scenario, listener, [episode(scenario, 0, number) for number in range(2)])
    decided = [
        (world, en, task)
        for world, outcome in enumerate(outcomes)
        for en in range(scenario.en.count)
        for task in np.flatnonzero(outcome.action[outcome.tasks.en == en] >= 0).tolist()
    ]
    assert sorted(listener.heard) == decided
