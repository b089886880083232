"""The networks of the paper, each against a few lines written another way."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cosmo.learn.config import load_config
from cosmo.learn.encoder import encoder_layout
from cosmo.learn.stack import Layout
from cosmo.policy import networks
from cosmo.policy.learned import Agents

CONFIG = load_config()
EN = Layout(networks.shapes(10, 5, True, 32, 64))
FLAT = Layout(networks.shapes(10, 5, False, 32, 64))
SN = Layout(networks.sn_shapes(11, 32, 32, 18))


def _row(layout, seed):
    return layout.initial(np.random.default_rng(seed))


def _inputs(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _relu(x):
    return np.where(x > 0, x, 0)


def test_table_3_sizes():
    assert EN.shapes["local1.w"] == (10, 32)
    assert EN.shapes["remote1.w"] == (5, 32)
    assert EN.shapes["fusion.w"] == (64, 64)
    assert SN.shapes["update.advantage.w"] == (32, 18)
    encoder = encoder_layout(CONFIG.encoder)
    assert [encoder.shapes[f"encode{k}.w"] for k in (1, 2, 3)] == [(4, 32), (32, 16), (16, 2)]
    assert CONFIG.sn.actions == 18


def test_encoder_is_three_layers():
    p = encoder_layout(CONFIG.encoder).views(_row(encoder_layout(CONFIG.encoder), 0))
    for x in _inputs(1, 5, 4):
        h = _relu(p["encode1.w"].T @ x + p["encode1.b"])
        h = _relu(p["encode2.w"].T @ h + p["encode2.b"])
        want = p["encode3.w"].T @ h + p["encode3.b"]
        np.testing.assert_allclose(networks.encode(p, x[None])[0], want, rtol=1e-5, atol=1e-6)


def test_gate_and_route_are_dueling_heads_on_fused_branches():
    p = EN.views(_row(EN, 2))
    for local, remote in zip(_inputs(3, 4, 10), _inputs(4, 4, 5), strict=True):
        hl = _relu(p["local2.w"].T @ _relu(p["local1.w"].T @ local + p["local1.b"]) + p["local2.b"])
        hr = _relu(
            p["remote2.w"].T @ _relu(p["remote1.w"].T @ remote + p["remote1.b"]) + p["remote2.b"]
        )
        h = _relu(p["fusion.w"].T @ np.r_[hl, hr] + p["fusion.b"])
        for name, got in zip(
            ("gate", "route"), networks.gate_and_route(p, local[None], remote[None]), strict=True
        ):
            value = p[f"{name}.value.w"].T @ h + p[f"{name}.value.b"]
            advantage = p[f"{name}.advantage.w"].T @ h + p[f"{name}.advantage.b"]
            want = value + advantage - advantage.mean()
            np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-50, 50, width=32), min_size=4, max_size=6))
def test_hierarchical_consistency(scores):
    """The paper's two identities, and that the decoder takes the action with the largest Q."""
    gate, route = np.array([scores[:2]]), np.array([scores[2:]])
    q = networks.hierarchical_values(gate, route)
    routes = route.shape[1]
    assert q[0, :routes].max() == pytest.approx(gate[0, 1])
    np.testing.assert_allclose(
        q[0, :routes, None] - q[0, None, :routes], route[0, :, None] - route[0, None, :], atol=1e-4
    )
    assert q[0, routes] == gate[0, 0]
    action = int(networks.gate_first(gate, route)[0])
    assert q[0, action] == pytest.approx(q[0].max())


def test_gru_follows_its_equations():
    p = SN.views(_row(SN, 5))
    x, h = _inputs(6, 32), _inputs(7, 32)
    wx, bx, wh, bh = p["gru.x.w"], p["gru.x.b"], p["gru.h.w"], p["gru.h.b"]

    def logistic(v):
        return 1.0 / (1.0 + np.exp(-v))

    r = logistic(x @ wx[:, :32] + bx[:32] + h @ wh[:, :32] + bh[:32])
    u = logistic(x @ wx[:, 32:64] + bx[32:64] + h @ wh[:, 32:64] + bh[32:64])
    new = np.tanh(x @ wx[:, 64:] + bx[64:] + r * (h @ wh[:, 64:] + bh[64:]))
    got = networks.gru(p, x[None], h[None])[0]
    np.testing.assert_allclose(got, (1 - u) * new + u * h, rtol=1e-4, atol=1e-6)


def test_numpy_and_jax_agree_and_so_do_a_lone_row_and_a_stack():
    rows = np.stack([_row(EN, seed) for seed in range(3)])
    local, remote = _inputs(8, 3, 1, 10), _inputs(9, 3, 1, 5)
    stacked = networks.gate_and_route(EN.views(rows), local, remote)
    for run in range(3):
        alone = networks.gate_and_route(EN.views(rows[run]), local[run], remote[run])
        under_jax = networks.gate_and_route(
            EN.views(jnp.asarray(rows[run])), local[run], remote[run], jnp
        )
        for got, other, jax_value in zip(stacked, alone, under_jax, strict=True):
            np.testing.assert_allclose(got[run], other, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(got[run], np.asarray(jax_value), rtol=1e-4, atol=1e-5)
    rows = np.stack([_row(SN, seed) for seed in range(2)])
    seen, hidden = _inputs(10, 2, 1, 11), _inputs(11, 2, 1, 32)
    values, after = networks.sn_step(SN.views(rows), seen, hidden)
    jax_values, jax_after = networks.sn_step(SN.views(jnp.asarray(rows)), seen, hidden, jnp)
    np.testing.assert_allclose(values, np.asarray(jax_values), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(after, np.asarray(jax_after), rtol=1e-4, atol=1e-5)


def test_layout_round_trip():
    row = _row(FLAT, 3)
    np.testing.assert_array_equal(FLAT.joined(FLAT.views(row), np), row)


@pytest.mark.parametrize("hierarchical", [True, False])
def test_agents_of_a_subset_of_worlds_are_those_worlds_agents(hierarchical):
    layout = EN if hierarchical else FLAT
    encoder = encoder_layout(CONFIG.encoder)
    agents = Agents(
        encoder=encoder.views(np.stack([_row(encoder, s) for s in range(4)])),
        en=layout.views(np.stack([_row(layout, s) for s in range(4)])),
        sn=SN.views(np.stack([_row(SN, s) for s in range(4)])),
        intervals_ms=CONFIG.sn.intervals_ms,
        hierarchical=hierarchical,
        with_age=False,
    )
    worlds = np.array([3, 1])
    local, remote = _inputs(12, 2, 10), _inputs(13, 2, 5)
    both = agents.en_actions(worlds, local, remote)
    for place, world in enumerate(worlds):
        p = layout.views(_row(layout, world))
        x = local[place : place + 1], remote[place : place + 1]
        if hierarchical:
            want = networks.gate_first(*networks.gate_and_route(p, *x))
        else:
            want = networks.flat_values(p, *x).argmax(-1)
        assert both[place] == want[0]
    send, interval = agents.sn_answer(np.array([0, 8, 9, 17]))
    assert send.tolist() == [True, True, False, False]
    assert interval.tolist() == [20.0, 200.0, 20.0, 200.0]
