"""Which episodes a simulation plays, what it is told of them, and what is no method."""

import itertools
import math

import numpy as np
import pytest

from cosmo import (
    Dispatcher,
    InputError,
    Method,
    Updater,
    compare,
    evaluate,
    load,
    method,
    play,
    tune,
)
from cosmo.control import BASELINES, METHODS
from cosmo.control.arguments import as_method
from cosmo.control.simulate import simulate, simulate_runs
from cosmo.policy.learned_methods import LEARNED
from cosmo.workload import episode

SHORT = load("paper", ["episode.window_ms=50", "episode.warmup_ms=0", "workload.rate=320"])


def _finished(outcomes):
    return [each.finished_ms.tolist() for each in outcomes]


def test_every_run_gets_the_outcomes_of_its_own_episodes_and_progress_ends_at_one():
    shares = []
    found = simulate_runs(
        SHORT, method("all-local"), [4, 7], 2, share_done=shares.append, first_episode=5
    )
    assert [_finished(each.outcomes) for each in found] == [
        _finished(play(SHORT, method("all-local"), [episode(SHORT, seed, n) for n in (5, 6)]))
        for seed in (4, 7)
    ]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert min(shares) >= 0.0


def test_one_episode_of_run_0_is_simulated_where_nothing_is_said():
    [found] = simulate(SHORT, "all-local").outcomes
    assert found.tasks.time_ms.tolist() == episode(SHORT, 0, 0).tasks.time_ms.tolist()


def test_rates_and_seeds_are_runs_of_one_simulation():
    shares = []
    found = simulate(
        SHORT, "all-local", rates=[220, 320], seeds=[4, 7], episodes=2, share_done=shares.append
    )
    assert [_finished(run.outcomes) for run in found.runs] == [
        _finished(simulate(SHORT, "all-local", rates=rate, seeds=seed, episodes=2).outcomes)
        for rate in (220, 320)
        for seed in (4, 7)
    ]
    assert found.episodes == [each for run in found.runs for each in run.episodes]
    assert found.metrics["success_rate"].mean == np.mean(
        [e["success_rate"] for e in found.episodes]
    )
    assert (shares == sorted(shares), shares[-1]) == (True, 1.0)


def test_one_run_is_its_own_only_run():
    found = simulate(SHORT, "all-local", seeds=[4])
    assert found.runs == (found,)


NO_NUMBERS = ("40", b"40", None, object(), [[40]], 1j, {"a": 1}, True, [None], np.bool_(True))
TOO_LARGE = (10**400, 2**70)


@pytest.mark.parametrize(
    "seeds", [[], [1, 1], -1, 0.5, [0.5], "01", math.nan, np.array([0.0]), *NO_NUMBERS, *TOO_LARGE]
)
def test_seeds_are_different_whole_numbers(seeds):
    with pytest.raises(InputError, match=r"^seeds = .*: must be different whole numbers from 0 on"):
        simulate(SHORT, "all-local", seeds=seeds)


@pytest.mark.parametrize("rate", [220, np.int64(220), np.float32(220.0)])
def test_one_rate_may_be_a_number_of_numpy(rate):
    [found] = simulate(SHORT, "all-local", rates=rate).outcomes
    [expected] = simulate(SHORT, "all-local", rates=[220.0]).outcomes
    assert found.tasks.time_ms.tolist() == expected.tasks.time_ms.tolist()


@pytest.mark.parametrize("wrong", [{"seeds": [1, 2]}, {"seeds": []}, {"numbers": [0, 1]}])
def test_episodes_have_a_seed_and_a_number_each(wrong):
    [name] = wrong
    with pytest.raises(InputError, match=rf"^{name}: must be one for each of the 1 episode"):
        play(SHORT, "all-local", [episode(SHORT, 0, 0)], **wrong)
    [found] = play(SHORT, "random", [episode(SHORT, 0, 0)], np.int64(7))
    [same] = play(SHORT, "random", [episode(SHORT, 0, 0)], [7])
    assert found.action.tolist() == same.action.tolist()


def test_there_is_one_rate_at_least():
    with pytest.raises(InputError, match=r"^rates = \[\]: must have one number at least"):
        simulate(SHORT, "all-local", rates=[])


@pytest.mark.parametrize(
    "rates", [*(each for each in NO_NUMBERS if each is not None), "220", ["fast"], 10**400]
)
def test_rates_are_numbers(rates):
    """A text is not a list of its characters: "220" would be three rates."""
    with pytest.raises(InputError, match=r"^rates = .*: must be numbers of tasks/s") as raised:
        simulate(SHORT, "all-local", rates=rates)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("rates", [math.nan, math.inf, 0, -0.0, -1, 1e308])
def test_a_rate_that_no_scenario_can_have_is_named(rates):
    with pytest.raises(InputError, match=r"^workload\.rate = "):
        simulate(SHORT, "all-local", rates=rates)


@pytest.mark.parametrize("count", [0, -1, 1.0, math.nan, [], [1], 10**400, 1_000_001, *NO_NUMBERS])
def test_what_counts_is_a_whole_number(count):
    for call in (
        lambda: simulate(SHORT, "all-local", episodes=count),
        lambda: compare(SHORT, ["all-local"], episodes=count),
        lambda: evaluate("nowhere", episodes=count),
        lambda: tune(SHORT, "periodic", {"interval_ms": [10, 20]}, episodes=count),
        lambda: tune(SHORT, "periodic", {"interval_ms": [10, 20]}, trials=count),
    ):
        with pytest.raises(InputError, match=r"^(episodes|trials) = .*: must be a whole number"):
            call()


@pytest.mark.parametrize(
    "one", [np.int64(240), np.float32(240), np.array(240.0), (each for each in [240]), {240}]
)
def test_numbers_of_numpy_and_any_collection_are_rates(one):
    found = simulate(SHORT, "all-local", rates=one, seeds=np.int64(3), episodes=np.int32(1))
    same = simulate(SHORT, "all-local", rates=240, seeds=3, episodes=1)
    assert _finished(found.outcomes) == _finished(same.outcomes)


def test_rates_without_end_are_refused():
    with pytest.raises(InputError, match="at most 100000"):
        simulate(SHORT, "all-local", rates=itertools.count(1))
    with pytest.raises(InputError, match=r"^seeds = "):
        simulate(SHORT, "all-local", seeds=itertools.count())


@pytest.mark.parametrize("tasks", [5, [], "trace.csv"])
def test_what_are_no_tasks_is_one_line(tasks):
    with pytest.raises(InputError, match=r"^tasks = .*: must be tasks, as an episode has them"):
        simulate(SHORT, "all-local", tasks=tasks)
    with pytest.raises(InputError, match=r"^tasks = "):
        evaluate("nowhere", tasks=tasks)


@pytest.mark.parametrize(("seed", "number"), [(-1, 0), (0.5, 0), ("a", 0), (0, -1), (0, 0.5)])
def test_an_episode_is_named_by_whole_numbers(seed, number):
    with pytest.raises(InputError, match=r"^(seed|episode) = .*: must be a whole number"):
        episode(SHORT, seed, number)


def test_baselines_are_what_can_be_played_without_training():
    assert {"all-local", "aov-gap", "power-of-d", "full-information"} <= set(BASELINES)
    assert set(METHODS) - set(BASELINES) == {*LEARNED}


class _EverySecond(Method, Updater):
    """Sends to its second EN at every second decision; keeps what it is asked to encode."""

    carries = 2

    def __init__(self):
        self.asked, self.encoded = 0, 0

    def dispatcher(self, site):
        return method("all-local").dispatcher(site)

    def updater(self, site):
        return self

    def decide(self, nodes):
        self.asked += 1
        send = np.zeros((len(nodes), nodes.ens), bool)
        send[:, 1] = self.asked % 2 == 0
        return send, np.full(len(nodes), 5.0)

    def encode(self, states):
        self.encoded += len(states)
        return np.ones((len(states), 2))


def test_numbers_are_made_of_the_statuses_that_are_sent_and_no_others():
    campus = load("campus", ["episode.window_ms=60", "episode.warmup_ms=0"])
    made = _EverySecond()
    [outcome] = play(campus, made, [episode(campus, 0, 0)])
    assert 0 < made.encoded == outcome.updates


def test_what_is_no_method_is_said_in_one_line():
    for wrong in (5, int):
        with pytest.raises(InputError, match="must be a method's name"):
            as_method(wrong)

    class NeedsMore(Method, Dispatcher):
        def __init__(self, more):
            pass

    with pytest.raises(InputError, match="method NeedsMore: cannot be made"):
        as_method(NeedsMore)
