"""Methods by name, by file, with parameters."""

import numpy as np
import pytest

from cosmo import (
    METHODS,
    DispatchObservation,
    Feedback,
    InputError,
    Method,
    UpdateObservation,
    load,
    method,
    play,
    simulate,
)
from cosmo.control import BASELINES
from cosmo.control.yardsticks import Yardstick
from cosmo.workload import episode
from cosmo.world import Truth
from cosmo.world.turns import Seen

POLICY = '''
"""Policies of a user."""
from cosmo import Dispatcher, InputError, Method
from cosmo.policy.parameters import Positive

class Small(Method, Dispatcher):
    """Runs small tasks locally, rejects the rest."""

    def __init__(self, limit: Positive = 4e5, twice: bool = False) -> None:
        if limit > 1e9:
            raise InputError(f"limit = {limit:g}: must be at most 1e9")
        self.limit = 2 * limit if twice else limit

    def dispatcher(self, site):
        return self

    def decide(self, tasks):
        return [0 if cycles <= self.limit else tasks.reject for cycles in tasks.cycles]
'''


@pytest.fixture
def policy_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(POLICY)
    return path


def test_every_method_has_one_line_and_plays():
    scenario = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])
    for name, kind in ((name, METHODS[name]) for name in BASELINES):
        assert kind.summary().endswith(".")
        assert "\n" not in kind.summary()
        assert simulate(scenario, method(name)).metrics["success_rate"].mean >= 0


def test_every_registered_method_says_itself_where_it_comes_from():
    # Inherited, it would be the reference of another method.
    assert [name for name, kind in METHODS.items() if not vars(kind).get("reference")] == []


def test_a_method_from_a_file_with_parameters(policy_file):
    scenario = load("paper")
    for spec, limit in (
        (f"{policy_file}:Small", 4e5),
        (f"{policy_file}:Small:limit=2e5,twice=true", 4e5),
        (f"{policy_file}:Small:limit=2e5", 2e5),
    ):
        outcome = simulate(scenario, method(spec)).outcomes[0]
        small = outcome.tasks.cycles <= limit
        np.testing.assert_array_equal(outcome.action == 0, small)
        np.testing.assert_array_equal(outcome.action == 2, ~small)


def test_agents_of_others_are_regular_files_of_a_size_that_somebody_could_mean(tmp_path):
    vast = tmp_path / "vast.onnx"
    with vast.open("wb") as file:
        file.truncate(2001 * 10**6)  # takes no room on the disk
    for name in ("onnx", "sb3"):
        with pytest.raises(InputError, match="larger than 2000 MB"):
            method(f"{name}:{vast}")
        with pytest.raises(InputError, match="not a regular file"):
            method(f"{name}:/dev/zero")
        with pytest.raises(InputError, match="there is no file"):
            method(f"{name}:{tmp_path}")


def test_parameters_of_registered_methods():
    assert method("periodic:interval_ms=37").interval_ms == 37.0
    assert method("periodic-37").interval_ms == 37.0
    assert method("periodic-2.5").interval_ms == 2.5
    assert method("aov-gap:threshold=0.1,check_ms=2").threshold == 0.1
    assert method("aov-gap/estimate:threshold=0.1").threshold == 0.1
    assert method("prequal:quantile=0.5,most_uses=3").most_uses == 3


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("periodic:interval_ms=0", "interval_ms = '0': must be greater than 0"),
        ("periodic-0", "interval_ms = '0': must be greater than 0"),
        ("periodic-x", "unknown, did you mean periodic"),
        ("prequal:quantile=1.5", "quantile = '1.5': must be greater than 0 and at most 1"),
        ("prequal:quantile=nan", "quantile = 'nan': must be greater than 0 and at most 1"),
        ("periodic:interval_ms=inf", "interval_ms = 'inf': must be greater than 0"),
        ("prequal:most_uses=2.5", "most_uses = '2.5': must be a whole number"),
        (f"prequal:most_uses=-{'9' * 400}", "must be greater than 0"),
        ("aoci-online:cost=3", "unknown parameter cost .allowed: cost_ms2, check_ms, timeout_ms"),
        ("nope", "unknown; must be one of all-local"),
        ("all-local:x=1", "unknown parameter x .allowed: none"),
        ("none.py:A", "there is no file"),
        ("{file}:Big", "no such Method in .* .found: Small"),
        ("{file}:Small:limit=-1", "limit = '-1': must be greater than 0"),
        ("{file}:Small:limit=a", "limit = 'a': must be a number"),
        ("{file}:Small:limit", "parameter 'limit' must look like name=value"),
        ("{file}:Small:size=1", "unknown parameter size .allowed: limit, twice"),
        ("{file}:Small:twice=maybe", "twice = 'maybe': must be true or false"),
        ("power-of-d:d=1e9", "d = '1e9': must be a whole number"),
        (f"power-of-d:d={2**70}", "must be a whole number of at most 63 bits"),
        ("periodic:interval_ms=5,interval_ms=6", "parameter interval_ms is set twice"),
        ("{file}:Small:limit=1e10", "limit = 1e.10: must be at most 1e9"),
    ],
)
def test_a_wrong_method_is_one_line(spec, reason, policy_file):
    with pytest.raises(InputError, match=reason) as caught:
        method(spec.format(file=policy_file))
    assert "\n" not in str(caught.value)


def test_a_file_that_fails_on_import_is_one_line(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("import nonexistent_module_of_mine\n")
    with pytest.raises(InputError, match=r"fails on import \(ModuleNotFoundError"):
        method(f"{path}:A")


def test_only_yardsticks_are_handed_the_truth():
    scenario = load("paper", ["episode.window_ms=300", "episode.warmup_ms=0"])
    handed = []

    class Knows(Method, Yardstick):
        """Decides knowing."""

        privileged = True

        def dispatcher(self, site):
            return self

        def decide_knowing(self, tasks, truth):
            handed.append((len(tasks), truth.feasible.shape, truth.sn_state.shape))
            return np.zeros(len(tasks), int)

    simulate(scenario, Knows())
    assert set(handed) == {(1, (1, 2), (1, 1, 6))}
    # Nobody else has any field of it before them: an EN not even an SN's state, which is the SN's.
    hidden = {"truth", "settled", "outcome", *Truth._fields}
    for seen in (DispatchObservation, Feedback, Seen):  # the last is all that compiled rules get
        assert not hidden & set(dir(seen))
    assert hidden & set(dir(UpdateObservation)) == {"sn_state"}
    assert {name for name, kind in METHODS.items() if kind.privileged} == {
        "full-information",
        "shared-knowledge",
    }


def test_all_methods_face_the_same_workload():
    scenario = load("shared-sn")
    times = [simulate(scenario, method(name), seeds=3).outcomes[0] for name in BASELINES]
    for outcome in times[1:]:
        np.testing.assert_array_equal(outcome.tasks.cycles, times[0].tasks.cycles)
        np.testing.assert_array_equal(
            outcome.episode.background.time_ms, times[0].episode.background.time_ms
        )


def test_random_uses_all_actions_alike_and_its_own_stream():
    scenario = load("campus", ["workload.rate=400"])
    first = simulate(scenario, method("random"), seeds=1, episodes=2)
    share = np.bincount(first.outcomes[0].action[first.outcomes[0].action >= 0]) / len(
        first.outcomes[0].action
    )
    np.testing.assert_allclose(share, 0.25, atol=0.02)
    count = min(len(outcome.action) for outcome in first.outcomes)
    a, b = (outcome.action[:count] for outcome in first.outcomes)
    assert not np.array_equal(a, b)


def test_progress_goes_up_to_one():
    shares = []
    scenario = load("paper", ["workload.rate=320"])
    simulate(scenario, method("all-local"), episodes=70, share_done=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 10


def test_episodes_do_not_depend_on_how_many_are_played():
    scenario = load("paper")
    few = simulate(scenario, method("random"), seeds=2, episodes=2)
    many = simulate(scenario, method("random"), seeds=2, episodes=66)
    assert few.episodes == many.episodes[:2]


def test_several_sns_take_turns_under_the_fixed_rules():
    scenario = load("campus", ["workload.rate=100"])
    outcome = simulate(scenario, method("all-offload")).outcomes[0]
    for en in range(3):  # each EN by its own count (R41)
        own = outcome.action[outcome.tasks.en == en]
        np.testing.assert_array_equal(own, 1 + np.arange(len(own)) % 2)
    overflow = simulate(scenario, method("local-until-full")).outcomes[0].action
    assert set(overflow) == {0, 1, 2}


def test_the_number_of_an_episode_decides_its_draws_not_its_place():
    scenario = load("paper")
    worlds = [episode(scenario, 0, 0)] * 2
    first, second = play(scenario, method("random"), worlds, seeds=0, numbers=[4, 9])
    [again] = play(scenario, method("random"), worlds[:1], seeds=0, numbers=[9])
    assert not np.array_equal(first.action, second.action)
    np.testing.assert_array_equal(second.action, again.action)


def test_updates_are_charged_by_what_they_carry():
    scenario = load("paper", ["workload.rate=200"])
    raw = simulate(scenario, method("periodic:interval_ms=100"))
    assert raw.metrics["episode_update_cost"].mean == 101 * 4 * 0.5  # R21: at both ends
    probes = simulate(scenario, method("prequal:probes_per_task=0.05"))
    assert probes.metrics["episode_update_cost"].mean == 101 * 2 * 0.5
    campus = simulate(load("campus"), method("periodic:interval_ms=100"))
    assert campus.metrics["episode_update_cost"].mean == 2 * 3 * 101 * 4 * 0.5  # 2 SNs, 3 ENs
