"""How `cosmo-next` learns."""

import json

import numpy as np
import polars
import pytest

from cosmo import InputError, evaluate, load, load_controller, method, play
from cosmo.arrays import read_arrays
from cosmo.learn import session
from cosmo.learn.next import fit
from cosmo.learn.next.config import load_next_config
from cosmo.learn.next.experience import some_load
from cosmo.learn.next.returns import baseline, load_terms, returns
from cosmo.learn.next.trainer import NextTrainer, rate_at, trace_at
from cosmo.learn.next.worth import Worth, earned_after
from cosmo.learn.run import Run
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import CHANCE, LOCAL, REMOTE, chance_shapes, value_shapes
from cosmo.scenario import changed
from cosmo.workload import episode

SHORT = (
    "episodes=3", "worlds=3", "window_ms=800.0", "en.steps=6", "en.batch=32", "en.hidden=8",
    "en.joint=8", "en.kept_rounds=2", "sn.from_share=0.3",
)  # fmt: skip


def _runs(*seeds, scenario="shared-sn"):
    return [Run(load(scenario), seed) for seed in seeds]


def _config(*more):
    return load_next_config("next", [*SHORT, *more])


def test_returns_by_hand():
    sequence = np.array([0, 0, 0, 1, 1])
    time = np.array([0.0, 10.0, 30.0, 5.0, 10.0])
    found = np.array([9.0, 2.0, 3.0, 9.0, 1.0], np.float32)
    left = np.array([0.5, 1.0, 1.5, 0.25, 0.75], np.float32)
    explores = np.zeros(5, np.bool_)
    target, known = returns(sequence, time, explores, found, left, 100.0, 0.5)
    second = np.exp(-0.2) * 3.0  # nothing is known of what follows the last decision
    first = np.exp(-0.1) * (2.0 + 0.5 * (second - 1.0))
    np.testing.assert_allclose(target[:2], [first, second], rtol=1e-6)
    assert target[3] == pytest.approx(np.exp(-0.05))
    assert known.tolist() == [True, True, False, True, False]
    assert target[~known].tolist() == [1.5, 0.75]  # as they were
    explores[1] = True
    cut, _ = returns(sequence, time, explores, found, left, 100.0, 0.5)
    assert cut[0] == pytest.approx(np.exp(-0.1) * 2.0)


def test_long_returns_first_then_short_ones_and_small_steps_at_the_end():
    config = load_next_config().schedule
    assert [trace_at(done, 0.6, config) for done in (0.0, 0.6, 0.9)] == [0.95, 0.6, 0.6]
    assert trace_at(0.3, 0.6, config) == pytest.approx(0.775)
    assert trace_at(0.0, 0.99, config) == 0.99
    assert [rate_at(done, 2.0, config) for done in (0.0, 0.3)] == [2.0, 2.0]
    assert rate_at(0.7, 2.0, config) == pytest.approx(0.96)
    assert 0.0 < rate_at(1.0, 2.0, config) < 0.1
    halfway = load_next_config("next", ["schedule.constant=0.5", "schedule.last=0.0"]).schedule
    assert rate_at(0.5, 2.0, halfway) == 2.0
    assert rate_at(0.75, 2.0, halfway) == pytest.approx(1.0)


def test_the_baseline_is_the_mean_reward_at_a_load():
    random = np.random.default_rng(0)
    seen = random.uniform(0.0, 2.0, (4000, 5)).astype(np.float32)
    earned = 0.9 - 0.2 * np.maximum(seen[:, 0] - 1.0, 0.0) + random.normal(0.0, 0.1, 4000)
    weights = baseline(seen, earned)
    at = np.array([[0.5] * 5, [1.5] * 5], np.float32)
    np.testing.assert_allclose(load_terms(at, np) @ weights, [0.9, 0.8], atol=0.02)


def test_a_fit_goes_where_the_targets_are_and_the_acting_weights_follow_slowly():
    random = np.random.default_rng(3)
    runs, rows = 2, 4000
    shapes = value_shapes(8, 8) | chance_shapes(6)
    p = {
        name: random.normal(0.0, 0.3, (runs, *shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    data = {
        "local": random.random((runs, rows, LOCAL)).astype(np.float32),
        "remote": random.random((runs, rows, 1, REMOTE)).astype(np.float32),
        "load": random.random((runs, rows, 5)).astype(np.float32),
        "chance": random.normal(size=(runs, rows, 1, CHANCE)).astype(np.float32),
    }
    data["target"] = data["local"][..., 0] - 2.0 * data["remote"][:, :, 0, 1]
    data["feasible"] = (data["chance"][..., 0] > 0).astype(np.float32)
    state = fit.started(p, 5.0)
    quick = fit.fitted(state, data, 0, np.float32(3e-3), np.float32(0.01), 5.0, 200, 256)
    start, now, average = (
        float(fit.loss(each, data)) for each in (p, quick["p"], quick["average"])
    )
    assert now < average < 0.6 * start
    assert now < 0.25 * start
    # One run's numbers are its own: nothing of the other's data comes in.
    other = {name: np.concatenate([value[:1], value[1:] + 1.0]) for name, value in data.items()}
    alone = fit.fitted(state, other, 0, np.float32(3e-3), np.float32(0.01), 5.0, 200, 256)
    for name, value in alone["p"].items():
        np.testing.assert_allclose(value[0], quick["p"][name][0], rtol=1e-4, atol=1e-5)
        assert not np.allclose(value[1], quick["p"][name][1])


def test_the_worth_of_news_is_found_in_what_is_earned_after():
    random = np.random.default_rng(0)
    news = random.normal(size=(60_000, CHANGE_SIZE))
    share = random.choice([0.1, 0.4], 60_000)
    send = random.random(60_000) < share
    true = np.zeros(CHANGE_SIZE)
    true[[0, 2]] = 0.1, -0.2
    earned = 3.0 * news[:, 1] + random.normal(0.0, 1.0, 60_000) + send * (news @ true)
    worth = Worth(1, ridge=20.0, confidence=2.0)
    worth.add(0, news, send, share, earned)
    np.testing.assert_allclose(worth.weights()[0], true, atol=0.05)
    doubt = np.linalg.norm(news[:1000] @ worth.doubt()[0], axis=1)
    error = np.abs(news[:1000] @ (worth.weights()[0] - true))
    assert (error <= doubt).mean() > 0.8
    assert doubt.mean() < 0.2
    nobody = Worth(1, ridge=20.0, confidence=2.0)
    nobody.add(0, news, np.ones(60_000, np.bool_), np.ones(60_000), earned)
    assert not nobody.weights().any()


def test_what_is_earned_after_a_look_is_of_its_world_and_in_its_horizon():
    world, time = np.array([0, 1, 0, 0, 1]), np.array([5.0, 6.0, 20.0, 90.0, 30.0])
    earned = np.array([1.0, 10.0, 2.0, 4.0, 20.0])
    looks = np.array([0, 0, 1]), np.array([5.0, 6.0, 0.0])
    assert earned_after(*looks, world, time, earned, 80.0).tolist() == [3.0, 2.0, 30.0]
    assert earned_after(*looks, world, time, earned, 85.0).tolist() == [3.0, 6.0, 30.0]


def test_training_sees_all_loads_of_interest_and_a_little_more():
    scenario = load("paper")
    config, random = load_next_config().loads, np.random.default_rng(0)
    rates = [some_load(scenario, config, random, 0, k).rate for k in range(40)]
    low, *_, high = scenario.workload.rates_of_interest
    assert 0.8 * low < min(rates) < low < high < max(rates) < 1.08 * high


def test_a_step_in_training_is_from_one_rate_to_another_in_the_middle():
    scenario = load("paper", ["episode.window_ms=400000", "mobility.at_edge=turn"])
    config = load_next_config("next", ["loads.arrivals=['steps']"]).loads
    times = some_load(scenario, config, np.random.default_rng(1), 0, 0).tasks.time_ms
    first, second = np.histogram(times, [0, 2e5, 4e5])[0] / 200.0
    draws = np.random.default_rng(1)
    draws.integers(1)  # the kind
    low, *_, high = scenario.workload.rates_of_interest
    expected = draws.uniform(0.8 * low, 1.08 * high, 2)
    np.testing.assert_allclose([first, second], expected, rtol=0.03)
    assert abs(first - second) > 20


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("next") / "whole"
    session.train(folder, "cosmo-next", _runs(4, 5), _config())
    return folder


def _agents(folder):
    return read_arrays(folder / "agents.npz")


def test_an_interrupted_training_ends_as_if_it_had_not_been(trained):
    trainer = NextTrainer(_runs(4, 5), _config())
    trainer.train_episode()
    trainer.train_episode()
    other = NextTrainer(_runs(4, 5), _config())
    other.restore({name: value.copy() for name, value in trainer.saved().items()})
    other.train_episode()
    for name, value in _agents(trained).items():
        np.testing.assert_array_equal(other.delivered()[name], value, err_msg=name)


def test_a_run_is_the_same_alone_and_in_a_stack(trained):
    alone = NextTrainer(_runs(5), _config())
    for _ in range(3):
        alone.train_episode()
    stacked = _agents(trained)
    for name, value in alone.delivered().items():
        np.testing.assert_array_equal(value[0], stacked[name][1], err_msg=name)


def test_trained_agents_act_on_any_load_and_topology(trained):
    controller = load_controller(trained)
    assert (controller.method, controller.seeds) == ("cosmo-next", (4, 5))
    window = ["episode.window_ms=1200.0", "episode.warmup_ms=200.0"]
    for name in ("paper", "campus", "fading-backhaul"):
        scenario = load(name, ["workload.rate=150", "workload.arrivals=bursty", *window])
        found = evaluate(controller, scenario=[scenario] * 2, episodes=1)
        assert all(0.2 < each.metrics["success_rate"].mean <= 1.0 for each in found)
    scenario = load("shared-sn", window)
    [one, *_] = play(
        scenario, method(f"cosmo-next:checkpoint={trained}"), [episode(scenario, 5, 0)], 5
    )
    other = evaluate(controller, scenario=[scenario] * 2, episodes=1)[1].outcomes[0]
    np.testing.assert_array_equal(one.action, other.action)


def test_what_cannot_be_trained_is_refused(trained):
    mixed = [Run(load("paper", ["workload.rate=120"]), 0), Run(load("paper"), 1)]
    with pytest.raises(InputError, match="trained on one scenario"):
        NextTrainer(mixed, _config())
    with pytest.raises(InputError, match="was started with"):
        session.train(trained, "cosmo-next", _runs(4, 5), _config("en.batch=16"), resume=True)
    told = json.loads((trained / "training.json").read_text())
    assert told["training"]["en"]["failure"] == 1.0


def test_a_raw_status_has_four_numbers(tmp_path):
    config = _config("sn.semantic=false", "episodes=2", "sn.send_shares=[1.0]")
    session.train(tmp_path / "raw", "cosmo-next", _runs(4), config)
    assert method(f"cosmo-next:checkpoint={tmp_path / 'raw'}").carries == 4
    curves = polars.read_parquet(tmp_path / "raw" / "curves.parquet")
    # Every 20 ms four numbers at 0.5 units each.
    np.testing.assert_allclose(curves["update_cost_rate"], 100.0, rtol=0.15)


def test_it_is_trained_on_the_embedded_engine():
    runs = [Run(changed(run.scenario, ["engine=ns3"]), run.seed) for run in _runs(4)]
    with pytest.raises(InputError, match="engine = 'ns3': cosmo-next is trained on many worlds"):
        NextTrainer(runs, _config())


def test_what_is_earned_after_a_look_does_not_depend_on_the_other_worlds():
    """To the last bit, with numbers that do not add up exactly."""
    random = np.random.default_rng(3)
    world = np.repeat([0, 1, 3], [400, 300, 500])
    time_ms = np.concatenate([np.sort(random.uniform(0, 4000, n)) for n in (400, 300, 500)])
    earned = random.choice([1.0, 0.0, -0.3], len(world))
    looks = np.repeat([0, 1, 2, 3], 50)
    look_ms = random.uniform(0, 4000, len(looks))
    all_worlds = earned_after(looks, look_ms, world, time_ms, earned, 80.0)
    for one in (0, 1, 3):
        mine, own = looks == one, world == one
        alone = earned_after(
            looks[mine], look_ms[mine], world[own], time_ms[own], earned[own], 80.0
        )
        np.testing.assert_array_equal(all_worlds[mine], alone)
        for found, at in zip(alone, look_ms[mine], strict=True):
            within = (time_ms[own] >= at) & (time_ms[own] < at + 80.0)
            assert found == pytest.approx(earned[own][within].sum(), abs=1e-9)
    assert not all_worlds[looks == 2].any()  # nothing happens there
