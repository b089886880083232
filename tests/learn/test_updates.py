"""Losses and targets against NumPy, on hand-made transitions."""

import numpy as np
import pytest

from cosmo.learn import en_agent, sn_agent
from cosmo.learn.config import EN_EXTRA, load_config
from cosmo.learn.learner import Learner, Steps
from cosmo.learn.replay import Replay, SequenceReplay
from cosmo.learn.stack import Layout
from cosmo.policy import networks

CONFIG = load_config()
EN = Layout(networks.shapes(10, 5, True, 32, 64))
SN = Layout(networks.sn_shapes(11, 32, 32, 18))
INPUTS = (10, 5)


def _huber(x):
    return np.where(np.abs(x) < 1, 0.5 * x**2, np.abs(x) - 0.5)


def _en_batch(seed, count=32):
    random = np.random.default_rng(seed)
    batch = random.normal(size=(count, 15 + EN_EXTRA)).astype(np.float32)
    batch[:, 15 + en_agent.ACTION] = random.integers(0, 3, count)
    batch[:, 15 + en_agent.UTILITY] = random.uniform(-5, 1.2, count)
    failed = (batch[:, 15 + en_agent.UTILITY] < -4) & (batch[:, 15 + en_agent.ACTION] < 2)
    batch[:, 15 + en_agent.FAILED] = failed
    batch[:, 15 + en_agent.ACCEPT_LABEL] = random.integers(0, 2, count)
    batch[:, 15 + en_agent.ROUTE_LABEL] = random.integers(0, 2, count)
    return batch


@pytest.mark.parametrize("most", [0, 1, 32])
def test_en_loss_is_td_plus_the_four_auxiliary_losses(most):
    """Also of a batch with no failure and no label "accept", or with one of each."""
    row = EN.initial(np.random.default_rng(0))
    batch = _en_batch(1)
    for column in (15 + en_agent.FAILED, 15 + en_agent.ACCEPT_LABEL):
        batch[np.flatnonzero(batch[:, column])[most:], column] = 0
    got = float(en_agent.loss(CONFIG.en, INPUTS, EN.views(row), {}, batch))

    local, remote, told = batch[:, :10], batch[:, 10:15], batch[:, 15:]
    gate, route = networks.gate_and_route(EN.views(row), local, remote)
    td, cross_gate, cross_route, margin, boundary = [], [], [], [], []
    for k in range(len(batch)):
        action, utility, failed, accept, best = told[k]
        q = [*(gate[k, 1] + route[k] - route[k].max()), gate[k, 0]]
        td.append(_huber(q[int(action)] - utility))
        cross_gate.append(np.log(np.exp(gate[k]).sum()) - gate[k, int(accept)])
        if accept:
            cross_route.append(np.log(np.exp(route[k]).sum()) - route[k, int(best)])
        sign = 1 if accept else -1
        margin.append(max(0, 0.5 - sign * (gate[k, 1] - gate[k, 0])))
        if failed:
            boundary.append(max(0, 0.25 - (gate[k, 0] - q[int(action)])))
    assert min(most, 2) <= len(boundary) <= most
    assert min(most, 2) <= len(cross_route) <= most
    want = (
        np.mean(td) + 1.0 * np.mean(cross_gate) + 0.5 * np.mean(cross_route or [0.0])
        + 0.2 * np.mean(margin) + 0.3 * np.mean(boundary or [0.0])
    )  # fmt: skip
    assert got == pytest.approx(want, rel=1e-4)


def test_of_flat_values_accepting_is_worth_its_best_route():
    flat = CONFIG.en.model_copy(update={"hierarchical": False})
    layout = Layout(networks.shapes(10, 5, False, 32, 64))
    layers, seen = layout.views(layout.initial(np.random.default_rng(0))), _en_batch(1)[:, :15]
    values, gate, route = en_agent._values(flat, INPUTS, layers, seen)
    want = networks.flat_values(layers, seen[:, :10], seen[:, 10:])
    assert want.shape == (32, 3)
    np.testing.assert_allclose(values, want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(route, want[:, :2], rtol=1e-4, atol=1e-5)
    accept = want[:, :2].max(axis=1)
    np.testing.assert_allclose(gate, np.stack([want[:, 2], accept], 1), rtol=1e-4, atol=1e-5)


def _sn_batch(seed, count=16):
    random = np.random.default_rng(seed)
    width = sn_agent.EXTRA_COLUMNS + 11 + 32 + 11
    batch = random.normal(size=(count, 2, width)).astype(np.float32)
    batch[:, :, sn_agent.ACTION] = random.integers(0, 18, (count, 2))
    batch[:, :, sn_agent.INTERVAL] = random.choice(CONFIG.sn.intervals_ms, (count, 2))
    batch[:, :, sn_agent.TERMINAL] = 0
    batch[: count // 2, 1, sn_agent.TERMINAL] = 1
    return batch


def test_sn_loss_is_semi_markov_double_dqn():
    online = SN.initial(np.random.default_rng(2))
    target = SN.initial(np.random.default_rng(3))
    batch = _sn_batch(4)
    got = float(sn_agent.loss(CONFIG.sn, 11, SN.views(online), SN.views(target), batch))

    start = sn_agent.EXTRA_COLUMNS
    errors = []
    for sample in batch:
        sequence = [sample[0, start : start + 11], sample[1, start : start + 11], sample[1, -11:]]
        first = sample[0, start + 11 : start + 43]
        values, evaluated, h, g = [], [], first[None], first[None]
        for x in sequence:
            q, h = networks.sn_step(SN.views(online), x[None], h)
            t, g = networks.sn_step(SN.views(target), x[None], g)
            values.append(q[0])
            evaluated.append(t[0])
        for n in range(2):
            _, action, reward, interval, terminal = sample[n, :start]
            goal = reward
            if not terminal:
                goal += 0.99 ** (interval / 20.0) * evaluated[n + 1][values[n + 1].argmax()]
            errors.append(_huber(values[n][int(action)] - goal))
    assert got == pytest.approx(np.mean(errors), rel=1e-4)


def test_the_semi_markov_discount_counts_time_not_decisions():
    """Ten intervals of 20 ms discount as one of 200 ms does."""
    assert pytest.approx((0.99 ** (20.0 / 20.0)) ** 10) == 0.99 ** (200.0 / 20.0)
    batch = _sn_batch(5, 2)
    batch[:, :, sn_agent.TERMINAL] = 0
    online, target = SN.initial(np.random.default_rng(6)), SN.initial(np.random.default_rng(7))
    losses = []
    for interval in (20.0, 200.0):
        batch[:, :, sn_agent.INTERVAL] = interval
        losses.append(
            float(sn_agent.loss(CONFIG.sn, 11, SN.views(online), SN.views(target), batch))
        )
    assert losses[0] != losses[1]


def _learner(rows, seed=0, **more):
    replay = Replay(len(rows), 64, 15 + EN_EXTRA)
    for run in range(len(rows)):
        replay.write(np.full(64, run), _en_batch(seed + run, 64))
    gradient = en_agent.gradient(EN, CONFIG.en, INPUTS)
    return Learner(rows, gradient, Steps(3e-4, 1.0), replay, 32, 4, **more)


def _random(count):
    return [np.random.default_rng(100 + run) for run in range(count)]


def test_owed_updates_are_made_they_descend_and_runs_that_owe_none_stay():
    rows = np.stack([EN.initial(np.random.default_rng(seed)) for seed in range(3)])
    learner = _learner(rows)
    learner.updates[1] = 16  # 64 transitions, one update for four: nothing owed
    learner.update(_random(3))
    assert learner.updates.tolist() == [16, 16, 16]
    np.testing.assert_array_equal(learner.parameters[1], rows[1])
    moved = np.abs(learner.parameters - rows).max(axis=1)
    # A step of Adam is at most the learning rate (up to its bias correction).
    assert 3e-4 < moved[0] <= 16 * 3e-4 * 1.05
    for run in (0, 2):
        batch = _en_batch(run, 64)
        before = en_agent.loss(CONFIG.en, INPUTS, EN.views(rows[run]), {}, batch)
        after = en_agent.loss(CONFIG.en, INPUTS, EN.views(learner.parameters[run]), {}, batch)
        assert float(after) < float(before)
    learner.update(_random(3))  # nothing more is owed
    assert learner.updates.tolist() == [16, 16, 16]


def test_stacked_and_lone_updates_have_the_same_bits():
    rows = np.stack([EN.initial(np.random.default_rng(seed)) for seed in range(4)])
    together = _learner(rows)
    together.update(_random(4))
    for run in range(4):
        alone = _learner(rows[run : run + 1], seed=run)
        alone.update(_random(4)[run : run + 1])
        np.testing.assert_array_equal(together.parameters[run], alone.parameters[0])


def test_one_update_is_a_clipped_step_of_adam():
    row = EN.initial(np.random.default_rng(0))
    batch = _en_batch(1)
    gradient = en_agent.gradient(EN, CONFIG.en, INPUTS)(row, row, batch)
    clipped = np.asarray(gradient) / max(1.0, float(np.linalg.norm(gradient)))
    first = -3e-4 * clipped / (np.abs(clipped) + 1e-8)  # Adam's first step, bias corrected
    replay = Replay(1, 32, batch.shape[1])
    replay.write(np.zeros(32, np.int64), batch)
    replay.sample = lambda run, count, random: batch  # the very rows, once each
    learner = Learner(
        row[None], en_agent.gradient(EN, CONFIG.en, INPUTS), Steps(3e-4, 1.0), replay, 32, 32
    )
    learner.update(_random(1))
    clear = np.abs(clipped) > 1e-5  # Adam blows rounding noise up
    assert clear.mean() > 0.8
    step = learner.parameters[0] - row
    np.testing.assert_allclose(step[clear], first[clear], atol=2e-6)


def test_the_target_network_follows_every_so_many_updates():
    rows = np.stack([EN.initial(np.random.default_rng(seed)) for seed in range(2)])
    learner = _learner(rows, target_every=10)
    learner.updates[1] = 12
    learner.update(_random(2))  # run 0 makes updates 1 to 16, run 1 13 to 16
    np.testing.assert_array_equal(learner.target[1], rows[1])
    assert not np.array_equal(learner.target[0], rows[0])
    assert not np.array_equal(learner.target[0], learner.parameters[0])
    short = _learner(rows[:1], target_every=10)
    short.updates[0] = 6  # updates 7 to 16: the target is what the fourth of them left
    first = short.parameters
    short.update(_random(1))
    assert not np.array_equal(short.target[0], first[0])


def test_auxiliary_losses_can_be_switched_off():
    row, batch = EN.initial(np.random.default_rng(0)), _en_batch(1)
    off = CONFIG.en.model_copy(
        update={"auxiliary": CONFIG.en.auxiliary.model_copy(update={"enabled": False})}
    )
    zero = dict.fromkeys(("gate", "route", "margin", "boundary"), 0.0)
    weightless = CONFIG.en.model_copy(
        update={"auxiliary": CONFIG.en.auxiliary.model_copy(update=zero)}
    )
    alone = float(en_agent.loss(off, INPUTS, EN.views(row), {}, batch))
    assert alone == pytest.approx(
        float(en_agent.loss(weightless, INPUTS, EN.views(row), {}, batch))
    )
    assert alone < float(en_agent.loss(CONFIG.en, INPUTS, EN.views(row), {}, batch))


def test_replay_keeps_the_newest_of_each_run_and_never_mixes_runs():
    replay = Replay(runs=2, capacity=10, width=2)
    for k in range(25):
        replay.write(np.array([0]), np.array([[0, k]], np.float32))
    replay.write(np.array([1, 1]), np.array([[1, 7], [1, 8]], np.float32))
    drawn = replay.sample(0, 1000, np.random.default_rng(0))
    assert set(drawn[:, 0]) == {0.0}
    assert set(drawn[:, 1]) == set(range(15, 25))
    drawn = replay.sample(1, 100, np.random.default_rng(0))
    assert set(map(tuple, drawn)) == {(1.0, 7.0), (1.0, 8.0)}
    many = np.stack([np.zeros(23), np.arange(23)], axis=1).astype(np.float32)
    replay.write(np.zeros(23, np.int64), many)  # more at once than it holds
    assert set(replay.sample(0, 1000, np.random.default_rng(0))[:, 1]) == set(range(13, 23))
    assert replay.held().tolist() == [10, 2]


@pytest.mark.parametrize("together", [1, 3, 40])
def test_sequences_are_consecutive_decisions_of_one_episode_even_when_the_memory_wraps(together):
    replay = SequenceReplay(runs=1, capacity=50, width=2)
    step = 0
    for episode, length in enumerate((30, 1, 7, 40)):
        rows = [[episode, step + k] for k in range(length)]
        for first in range(0, length, together):
            part = np.array(rows[first : first + together], np.float32)
            replay.write(np.zeros(len(part), np.int64), part)
        step += length
    pairs = replay.sample(0, 3000, np.random.default_rng(0))
    assert (pairs[:, 0, 0] == pairs[:, 1, 0]).all()
    assert (pairs[:, 1, 1] == pairs[:, 0, 1] + 1).all()
    assert set(pairs[:, 0, 0]) == {2.0, 3.0} | ({0.0} if step - 50 < 29 else set())
    assert pairs[:, 0, 1].min() >= step - 50
    assert len({tuple(pair) for pair in pairs[:, 0]}) == replay.held()[0]
