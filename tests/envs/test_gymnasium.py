"""The Gymnasium environments, single and vector, and their wrappers."""

import json

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import FlattenObservation

import cosmo.envs  # noqa: F401 (registers the environments)
from cosmo import InputError, load, method, simulate
from cosmo.envs import from_callable
from cosmo.envs.wrappers import ActionMasks, NamedObservation, RecordEpisode, SemiMarkovDiscount
from cosmo.measure import task_utility
from cosmo.node import STORAGE, WORK
from cosmo.policy.features import Features

SMALL = ("paper", "campus", "fading-backhaul", "shared-sn")  # of the presets
SHORT = ("episode.window_ms=1200", "episode.warmup_ms=0")
NAMES = ("cosmo/Dispatch-v0", "cosmo/Update-v0")


@pytest.mark.parametrize("scenario", SMALL)
@pytest.mark.parametrize("name", NAMES)
def test_gymnasium_is_content(name, scenario):
    env = gymnasium.make(name, scenario=scenario, settings=SHORT)
    check_env(env.unwrapped)  # all of it, on a machine without a display, too
    names = env.unwrapped.observation_names
    assert len(names) == len(set(names)) == env.observation_space.shape[0]


def _episode(env, choose, seed=0):
    seen, info = env.reset(seed=seed)
    total, steps, over = 0.0, 0, False
    while not over:
        seen, reward, over, truncated, info = env.step(choose(seen, info))
        assert not truncated
        total += reward
        steps += 1
    return total, steps


@pytest.mark.parametrize("updater", ["aoi-threshold", "never", "all-local", "aoci-online"])
def test_dispatch_rewards_are_the_episodes_utility(updater):
    env = gymnasium.make(
        "cosmo/Dispatch-v0", rate=260, settings=SHORT, updater=updater, reward_scale=1.0
    )
    random = np.random.default_rng(0)
    total, steps = _episode(env, lambda seen, info: int(random.integers(3)))
    outcome = env.unwrapped.game.worlds.outcome(0)
    assert steps == len(outcome.tasks)
    expected = task_utility(env.unwrapped.game.scenario, outcome).sum()
    assert total == pytest.approx(expected, rel=1e-9)


def test_update_rewards_are_utility_minus_cost():
    env = gymnasium.make(
        "cosmo/Update-v0", rate=260, settings=SHORT, dispatcher="aov-gap", reward_scale=1.0
    )
    random = np.random.default_rng(0)
    total, steps = _episode(env, lambda seen, info: int(random.integers(18)))
    outcome = env.unwrapped.game.worlds.outcome(0)
    assert steps == outcome.update_decisions
    gained = task_utility(env.unwrapped.game.scenario, outcome).sum()
    assert total == pytest.approx(gained - 8.0 * outcome.updates, rel=1e-9)


def test_the_same_decisions_as_in_simulate_give_the_same_episode():
    scenario = load("shared-sn", [*SHORT, "workload.rate=150"])
    env = gymnasium.make("cosmo/Dispatch-v0", scenario=scenario, updater="aov-gap")
    _episode(env, lambda seen, info: 1, seed=2)
    always = from_callable(lambda seen: np.ones(len(seen), int), updater="aov-gap")
    [expected] = simulate(scenario, always, seeds=2).outcomes
    found = env.unwrapped.game.worlds.outcome(0)
    np.testing.assert_array_equal(found.outcome, expected.outcome)
    assert found.updates == expected.updates


@pytest.mark.parametrize("name", NAMES)
def test_vector_worlds_are_single_worlds_side_by_side(name):
    """Three episodes each, restarts included, against the single environment."""
    options = {"rate": 260, "settings": SHORT}
    if name == NAMES[0]:
        options["updater"] = "aoci-online"  # an updater with a memory
    else:
        options["dispatcher"] = "self-tracking"
    vector = gymnasium.make_vec(name, num_envs=3, vectorization_mode=None, **options)
    single = gymnasium.make(name, **options)
    count = int(single.action_space.n)

    def action(step):
        return (step * 5 + 1) % count

    vector.reset(seed=10)
    lines = [[] for _ in range(3)]
    episodes, steps = np.zeros(3, int), np.zeros(3, int)
    while episodes.min() < 3:
        _, reward, over, truncated, info = vector.step(np.array([action(k) for k in steps]))
        assert not truncated.any()
        for world in range(3):
            lines[world].append((float(reward[world]), bool(over[world])))
            if over[world]:
                assert info["_final_obs"][world]
                assert not info["final_obs"][world].any()
        steps = np.where(over, 0, steps + 1)
        episodes += over
    for world in range(3):
        line = iter(lines[world])
        for number in range(3):
            single.reset(seed=10 + world if number == 0 else None)
            step, over = 0, False
            while not over:
                _, reward, over, _, _ = single.step(action(step))
                assert next(line) == (pytest.approx(reward, abs=1e-9), over)
                step += 1
    vector.close()


def test_vector_environments_declare_their_autoreset():
    vector = gymnasium.make_vec(NAMES[0], num_envs=2, settings=SHORT)
    assert vector.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    first, _ = vector.reset(seed=1)
    again, _ = vector.reset(seed=1)
    np.testing.assert_array_equal(first, again)
    assert vector.observation_space.contains(first)
    later, _ = vector.reset()
    assert not np.array_equal(first, later)


def test_semi_markov_discount():
    env = gymnasium.make(NAMES[1], rate=260, settings=SHORT)
    plain, times = [], []
    env.reset(seed=0)
    over = False
    while not over:
        _, reward, over, _, info = env.step(4)
        plain.append(reward)
        times.append(info["elapsed_ms"])
    wrapped = SemiMarkovDiscount(env, discount=0.9, per_ms=20.0, step_discount=0.95)
    wrapped.reset(seed=0)
    over, step, total, expected, elapsed = False, 0, 0.0, 0.0, 0.0
    while not over:
        _, reward, over, _, info = wrapped.step(4)
        total += 0.95**step * reward
        expected += 0.9 ** (elapsed / 20.0) * plain[step]
        elapsed += times[step]
        assert info["discount"] == pytest.approx(0.9 ** (times[step] / 20.0))
        step += 1
    assert total == pytest.approx(expected)


def test_masks_forbid_what_has_no_room():
    env = ActionMasks(gymnasium.make(NAMES[0], rate=320, settings=SHORT, updater="periodic"))
    _, info = env.reset(seed=0)
    masks, over = [], False
    while not over:
        mask = info["action_mask"]
        np.testing.assert_array_equal(mask, env.action_masks())
        masks.append(mask)
        _, _, over, _, info = env.step(0)  # the EN fills up
    masks = np.array(masks)
    assert masks[:, 2].all()
    assert 0.0 < masks[:, 0].mean() < 1.0


def test_named_observations_and_back():
    env = NamedObservation(gymnasium.make(NAMES[0], settings=SHORT))
    seen, _ = env.reset(seed=0)
    assert set(seen) == set(env.unwrapped.observation_names)
    assert env.observation_space.contains(seen)
    flat = FlattenObservation(env)
    assert flat.reset(seed=0)[0].shape == env.unwrapped.observation_space.shape


def test_recorded_episodes_are_what_the_viewer_reads(tmp_path):
    env = RecordEpisode(gymnasium.make(NAMES[0], rate=260, settings=SHORT), tmp_path)
    _, steps = _episode(env, lambda seen, info: 1)
    recording = json.loads((tmp_path / "episode-0.json").read_text())
    assert len(recording["tasks"]["time"]) == steps
    assert len({len(column) for column in recording["tasks"].values()}) == 1
    assert recording["updates"]["send"].count(True) > 0
    assert recording["updates"]["time"][0] == 0.0  # the SN's first decision is in it
    _episode(env, lambda seen, info: 1)
    again = json.loads((tmp_path / "episode-1.json").read_text())
    assert again == recording
    with pytest.raises(InputError, match="only for cosmo/Dispatch-v0"):
        RecordEpisode(gymnasium.make(NAMES[1], settings=SHORT), tmp_path)


def test_a_callable_is_a_method_like_any_other():
    scenario = load("paper", [*SHORT, "workload.rate=200"])
    local = from_callable(lambda seen: np.zeros(len(seen), int), updater="never")
    one = simulate(scenario, local, seeds=1, episodes=2)
    other = simulate(scenario, method("all-local"), seeds=1, episodes=2)
    assert one.metrics["success_rate"] == other.metrics["success_rate"]


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ("sb3:nowhere.zip", "there is no file 'nowhere.zip'"),
        ("onnx:nowhere.onnx", "there is no file 'nowhere.onnx'"),
        ("onnx:nowhere.onnx,update=x", "unknown parameter update"),
    ],
)
def test_models_that_are_not_there_are_one_line(spec, line):
    with pytest.raises(InputError, match=line):
        method(spec)


def test_an_updater_that_cannot_be_made_is_refused():
    with pytest.raises(InputError, match="checkpoint is missing"):
        gymnasium.make(NAMES[0], updater="cosmo")


@pytest.mark.parametrize("scenario", ["paper", "campus"])
def test_methods_with_a_status_of_their_own_play_the_other_side(scenario):
    env = gymnasium.make(
        NAMES[0], scenario=scenario, updater="power-of-d", rate=150, settings=SHORT
    )  # fmt: skip
    names = env.unwrapped.observation_names
    place = names.index("sn0_status_0")
    assert "sn0_idle" not in names
    env.reset(seed=0)
    shown = 0
    for _ in range(100):
        seen, _, over, _, _ = env.step(1)
        if over:
            break
        tasks = env.unwrapped.game.turn.dispatch
        told = tasks.status[0, 0, 0] if tasks.heard[0, 0] else 0.0
        assert seen[place] == pytest.approx(np.log1p(told), rel=1e-6)
        shown += told > 0.0
    assert shown > 10
    for kind, argument in ((NAMES[0], "updater"), (NAMES[1], "dispatcher")):
        game = gymnasium.make(kind, scenario=scenario, settings=SHORT, **{argument: "cosmo-next"})
        _, steps = _episode(game, lambda seen, info: 0)
        assert steps > 5


def test_what_an_en_sees_number_by_number():
    """One decision in a scenario with two SNs, every number worked out from the raw observation."""
    env = gymnasium.make(NAMES[0], scenario="campus", rate=150, updater="periodic-37")
    env.reset(seed=3)
    game, steps = env.unwrapped.game, 0
    while steps < 400 or not game.turn.dispatch.local_wait_ms[0]:
        seen, *_ = env.step(steps % 3)
        steps += 1
    named = dict(zip(env.unwrapped.observation_names, seen.tolist(), strict=True))
    tasks, scales = game.turn.dispatch, Features(game.site)
    en = int(tasks.en[0])
    expected = {
        "throughput": tasks.throughput_mbps[0] / 100.0,
        "residual_time": tasks.residual_ms[0] / 15_000.0,
        "en_work": tasks.en_state[0, WORK] / scales.en_scale[en, 2],
        "task_cycles": tasks.cycles[0] / 1.2e6,
        "task_slack": (tasks.generated_ms + tasks.deadline_ms - tasks.time_ms)[0] / 220.0,
        "local_wait": tasks.local_wait_ms[0] / 100.0,
        "local_room": float(tasks.local_room[0]),
    }
    for sn in range(2):
        expected |= {
            f"sn{sn}_work": tasks.status[0, sn, WORK] / scales.sn_scale[sn, 2],
            f"sn{sn}_storage": tasks.status[0, sn, STORAGE] / scales.sn_scale[sn, 3],
            f"sn{sn}_age": tasks.age_ms[0, sn] / 200.0,
            f"sn{sn}_link_rate": tasks.up_link_mbps[0, sn, 0] / scales.links.up_mbps[en, sn],
            f"sn{sn}_link_backlog": tasks.up_backlog_ms[0, sn] / 100.0,
        }
    for name, value in expected.items():
        assert named[name] == pytest.approx(np.clip(value, -10, 10), rel=1e-5), name
    assert named["sn0_age"] > 0
    assert named["sn1_age"] > 0


@pytest.mark.parametrize("updater", ["never", "all-local"])
def test_an_sn_that_tells_nothing_is_seen_as_idle_and_its_age_is_cut_off(updater):
    env = gymnasium.make(NAMES[0], rate=260, updater=updater)
    seen, _ = env.reset(seed=0)
    over = False
    while not over:
        named = dict(zip(env.unwrapped.observation_names, seen.tolist(), strict=True))
        told = [named[f"sn0_{name}"] for name in ("idle", "wait", "work", "storage")]
        assert told == [1.0, 0.0, 0.0, 1.0]
        following, _, over, *_ = env.step(1)
        seen = seen if over else following
    assert named["sn0_age"] == 10.0  # R18: of 200 ms each


def test_what_an_sn_sees_number_by_number():
    env = gymnasium.make(NAMES[1], scenario="campus", rate=150)
    env.reset(seed=3)
    for _ in range(60):
        seen, *_ = env.step(3)
    game = env.unwrapped.game
    named = dict(zip(env.unwrapped.observation_names, seen.tolist(), strict=True))
    nodes, scales = game.turn.update, Features(game.site)
    sn = int(nodes.sn[0])
    expected = {
        "work": nodes.sn_state[0, WORK] / scales.sn_scale[sn, 2],
        "recent_delay": nodes.recent_delay_ms[0] / 220.0,
        "recent_success": nodes.recent_success[0],
    }
    for en in range(3):
        held = nodes.acknowledged[0, en]
        expected |= {
            f"en{en}_acknowledged_work": held[WORK] / scales.sn_scale[sn, 2],
            f"en{en}_age": nodes.age_ms[0, en] / 200.0,
            f"en{en}_link_rate": nodes.down_link_mbps[0, en, 0] / scales.links.down_mbps[en, sn],
        }
    for name, value in expected.items():
        assert named[name] == pytest.approx(np.clip(value, -10, 10), rel=1e-5), name
    assert named["recent_success"] > 0


def test_the_hand_written_example():
    from examples.hand_written import main

    assert main(episodes=1) > 0


@pytest.mark.parametrize("name", NAMES)
def test_steps_before_a_reset_and_odd_actions_of_several_worlds_are_refused(name):
    with pytest.raises(gymnasium.error.ResetNeeded):
        gymnasium.make(name, settings=SHORT).unwrapped.step(0)
    envs = gymnasium.make_vec(name, num_envs=2, settings=SHORT)
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step([0, 0])
    envs.reset(seed=np.int64(3))
    now = envs.game.time_ms.copy()
    for odd in (
        [np.nan, 0], np.array([np.nan, 0.0]), [0.7, 0.2], [0], [0, 0, 0], 0, [[0, 0]], None,
        [99, 0], [-1, 0], [2**70, 0], ["a", "b"], [True, False],
    ):  # fmt: skip
        with pytest.raises(gymnasium.error.InvalidAction):
            envs.step(odd)
    assert (envs.game.time_ms == now).all()
    envs.step(np.array([0, 1], np.int32))
    assert (envs.game.time_ms > now).any()
