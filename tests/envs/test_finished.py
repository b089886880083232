"""The last info, pictures, and the compiled opponents of `cosmo/Update-v0`."""

import importlib.util
from pathlib import Path

import gymnasium
import jax
import numpy as np
import pytest

import cosmo.envs  # registers the environments
from cosmo import InputError, load, method, simulate
from cosmo.envs import UpdateEnv, UpdateVectorEnv, aec
from cosmo.measure import METRICS

SHORT = ("episode.window_ms=1200", "episode.warmup_ms=0")
KNOWN = set(METRICS) - {"decision_regret"}


def _same(metrics, expected):
    assert set(metrics) == KNOWN
    for name in KNOWN:
        assert metrics[name] == pytest.approx(expected[name], nan_ok=True), name


def test_the_last_info_has_the_metrics_of_simulate():
    expected = simulate(load("paper", [*SHORT, "workload.rate=260"]), method("never")).episodes[0]
    env = gymnasium.make("cosmo/Dispatch-v0", rate=260, settings=SHORT, updater="never")
    dispatcher = method("never").dispatcher(env.unwrapped.game.site)
    env.reset(seed=0)
    over = False
    while not over:
        action = dispatcher.decide(env.unwrapped.game.turn.dispatch)[0]
        _, _, over, _, info = env.step(action)
        assert over == ("metrics" in info)
    _same(info["metrics"], expected)


def test_vector_environments_and_aec_have_them_too():
    vector = gymnasium.make_vec("cosmo/Dispatch-v0", num_envs=2, rate=260, settings=SHORT)
    single = gymnasium.make("cosmo/Dispatch-v0", rate=260, settings=SHORT)
    vector.reset(seed=4)
    found = {}
    while len(found) < 2:
        _, _, over, _, info = vector.step(np.array([1, 1]))
        assert over.any() == ("final_info" in info)
        for world in np.flatnonzero(over):
            assert info["final_info"]["_metrics"][world]
            told = info["final_info"]["metrics"]
            found.setdefault(int(world), {name: told[name][world] for name in told})
    for world, metrics in found.items():
        single.reset(seed=4 + world)
        over = False
        while not over:
            _, _, over, _, info = single.step(1)
        _same(metrics, info["metrics"])

    both = aec(rate=260, settings=SHORT)
    both.reset(seed=0)
    ended = {}
    for agent in both.agent_iter():
        _, _, over, _, info = both.last()
        if over:
            ended[agent] = info["metrics"]
        both.step(None if over else 1)
    assert set(ended) == set(both.possible_agents)
    assert set(ended["sn_0"]) == KNOWN


UNEVEN = ("backhaul.reach=[[1], [0, 1], [0]]", "backhaul.up_mbps=96.0", "backhaul.down_mbps=192.0")


@pytest.mark.parametrize(
    ("scenario", "dispatcher", "more"),
    [
        ("paper", "aoi-threshold/estimate", ()),
        ("campus", "aov-gap", UNEVEN),
        ("campus", "periodic-20", UNEVEN),
    ],
)
def test_compiled_rules_decide_as_their_dispatchers_do(scenario, dispatcher, more):
    """To the last bit, over restarts, in several worlds, whatever an EN reaches."""
    settings = {"scenario": scenario, "dispatcher": dispatcher, "settings": (*SHORT, *more)}
    fast, slow = (UpdateVectorEnv(3, **settings) for _ in range(2))
    assert fast.game._compiled is not None
    slow.game._compiled = None
    actions = np.random.default_rng(0).integers(0, 18, (150, 3))
    np.testing.assert_array_equal(fast.reset(seed=0)[0], slow.reset(seed=0)[0])
    ended = 0
    for action in actions:
        one, other = fast.step(action), slow.step(action)
        for k in range(3):  # observations, rewards, ends
            np.testing.assert_allclose(one[k], other[k], rtol=0.0, atol=1e-12 if k == 1 else 0.0)
        ended += int(one[2].sum())
    assert ended >= 3


def test_other_dispatchers_are_asked_as_ever():
    env = UpdateEnv(settings=SHORT, dispatcher="self-tracking")
    assert env.game._compiled is None


@pytest.mark.parametrize("name", ["cosmo/Dispatch-v0", "cosmo/Update-v0"])
def test_pictures(name):
    env = gymnasium.make(name, rate=260, settings=SHORT, render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    assert (first.shape, first.dtype) == ((360, 640, 3), np.uint8)
    for _ in range(12):
        env.step(1)
    later = env.render()
    assert later.std() > 0
    assert not np.array_equal(first, later)
    env.close()


def test_pictures_of_both_sides_name_the_sns_that_are_reached():
    env = aec("campus", rate=160, settings=(*SHORT, *UNEVEN), render_mode="rgb_array")
    env.reset(seed=0)
    first = env.render()
    for agent in env.agent_iter(40):
        env.step(env.action_space(agent).n - 1 if agent == "en_0" else 0)
    later = env.render()
    assert (later.shape, later.dtype) == ((360, 640, 3), np.uint8)
    assert not np.array_equal(first, later)
    assert set(env._screen._lines) == {"EN 0", "EN 1", "EN 2", "SN 0", "SN 1"}
    env.reset(seed=0)
    assert np.array_equal(env.render(), first)
    env.close()
    assert aec().render() is None


def test_without_a_display_a_window_is_not_opened(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    env = UpdateEnv(render_mode="human", settings=["episode.window_ms=300", "episode.warmup_ms=0"])
    env.reset(seed=0)
    env.step(0)
    assert env._screen._window is None
    env.close()
    with pytest.raises(InputError, match="render_mode = 'ascii': must be 'rgb_array' or 'human'"):
        UpdateEnv(render_mode="ascii")
    aec(render_mode="human").close()


def _example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def test_ppo_on_one_page_runs(monkeypatch):
    example = _example("jax_ppo")
    for name, value in (("WORLDS", 2), ("STEPS", 16), ("BATCHES", 2), ("EPOCHS", 1)):
        monkeypatch.setattr(example, name, value)
    before = example.initial(jax.random.PRNGKey(0), 22, 3)
    after = example.train(64)
    assert not np.array_equal(before[0][0], after[0][0])
    greedy = cosmo.envs.from_callable(
        lambda seen: np.asarray(example.forward(after, seen)[0].argmax(axis=1)), "never"
    )
    assert simulate(load("paper", SHORT), greedy).episodes[0]["success_rate"] >= 0.0


def test_mappo_on_one_page_learns_from_what_each_agent_has_earned(monkeypatch, tmp_path, capsys):
    example = _example("jax_mappo")
    monkeypatch.chdir(tmp_path)
    for name, value in (("EPISODES", 2), ("EPOCHS", 1), ("SETTINGS", SHORT)):
        monkeypatch.setattr(example, name, value)
    monkeypatch.setattr(example, "BATCH", {"en": 64, "sn": 8})
    learned, real, paths = [], example.Learner.learn, []

    def learn(self, some, *given):
        before = jax.tree.map(np.array, self.parameters)
        real(self, some, *given)
        paths.append(some)
        pairs = zip(jax.tree.leaves(before), jax.tree.leaves(self.parameters), strict=True)
        learned.append(all((old != new).any() for old, new in pairs))

    monkeypatch.setattr(example.Learner, "learn", learn)
    actors, curve = example.train(100)
    assert learned == [True, True]  # every weight of both roles
    ens, sns = paths
    assert (len(ens), len(sns)) == (2 * 3, 2 * 2)  # a path for each node of both episodes
    # Each of the two SNs earns what all ENs do, less what its updates cost: one to each of 3 ENs.
    scenario = load("campus", SHORT)
    weights = scenario.utility
    price = 3 * 4 * weights.update_weight * weights.update_cost_per_dimension / weights.value / 10.0
    sent = sum(action == 0 for path in sns for _, _, action, *_ in path)
    earned = [sum(step[-1] for path in role for step in path) for role in (ens, sns)]
    assert sent > 0
    assert earned[1] == pytest.approx(2.0 * earned[0] - price * sent)
    assert len(curve) == 1
    pair = cosmo.envs.from_callable(
        example.policy(actors["en"]), example.policy(actors["sn"]), [example.INTERVAL_MS]
    )
    [found] = simulate(scenario, pair).outcomes
    assert 0 < found.updates < 3 * found.update_decisions
    example.draw(curve, {"rival": (0.5, 0.1, 3.0)})
    assert (tmp_path / "mappo-curve.png").stat().st_size > 10_000


def test_advantages_of_an_agent_discount_by_time():
    example = _example("jax_mappo")
    reward, value, at_ms = np.array([1.0, 2.0]), np.array([0.5, 0.25]), np.array([0.0, 50.0])
    step = np.exp(-50.0 / example.HORIZON_MS)
    last = 2.0 - 0.25
    first = 1.0 + step * 0.25 - 0.5 + step * example.TRACE * last
    np.testing.assert_allclose(example.advantages(reward, value, at_ms), [first, last])
