"""An ONNX file as a method."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from cosmo import InputError, load, load_controller, method, simulate
from cosmo.envs import EnView, SnView
from cosmo.learn import session
from cosmo.learn.run import Run
from cosmo.policy.onnx_export import export_onnx
from cosmo.policy.trained import shipped
from cosmo.world import site_of

SCENARIO = load("paper", ["episode.window_ms=3000", "workload.rate=200"])


def _linear(path, weights, bias):
    """Action values = x W + b."""
    inputs, actions = weights.shape
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["xw"]),
            helper.make_node("Add", ["xw", "b"], ["values"]),
        ],
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, inputs])],
        [helper.make_tensor_value_info("values", TensorProto.FLOAT, [None, actions])],
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(bias, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, path)


def test_its_actions_are_taken(tmp_path):
    size = len(EnView(site_of(SCENARIO)).names)
    zeros = np.zeros((size, 3), np.float32)
    for action, name in enumerate(("all-local", "all-offload")):
        path = tmp_path / f"{action}.onnx"
        _linear(path, zeros, np.eye(3, dtype=np.float32)[action])
        mine = simulate(SCENARIO, method(f"onnx:{path},updater=never"), seeds=1)
        theirs = simulate(SCENARIO, method(name), seeds=1)
        assert mine.metrics["success_rate"] == theirs.metrics["success_rate"]


def test_an_sn_has_the_intervals_it_was_trained_with(tmp_path):
    en = np.zeros((len(EnView(site_of(SCENARIO)).names), 3), np.float32)
    sn = np.zeros((len(SnView(site_of(SCENARIO)).names), 2), np.float32)
    _linear(tmp_path / "en.onnx", en, np.eye(3, dtype=np.float32)[1])
    _linear(tmp_path / "sn.onnx", sn, np.eye(2, dtype=np.float32)[0])  # sends, always
    pair = f"onnx:{tmp_path / 'en.onnx'},updater={tmp_path / 'sn.onnx'}"
    [found] = simulate(SCENARIO, method(f"{pair},intervals_ms=50"), seeds=1).outcomes
    assert found.updates == found.update_decisions == 61  # R21: at both ends of 3 s
    with pytest.raises(InputError, match="intervals_ms = '50ms': must look like 20"):
        method(f"{pair},intervals_ms=50ms")


def test_a_file_that_is_no_onnx_is_one_line(tmp_path):
    (tmp_path / "x.onnx").write_text("no")
    with pytest.raises(InputError, match="cannot be read as ONNX"):
        method(f"onnx:{tmp_path / 'x.onnx'}")


SHORT = ("episodes=2", "validate_every=1", "encoder.collection_episodes=2", "encoder.epochs=2")
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("name", ["cosmo", "cosmo-flat"])
def test_exported_networks_decide_as_the_trained_ones_for_any_number_of_nodes(tmp_path, name):
    where = load("campus", ["episode.window_ms=400", "episode.warmup_ms=0"])
    config = session.load_config_of(name, None, SHORT)
    session.train(tmp_path / "trained", name, [Run(where, 3), Run(where, 4)], config)
    files = export_onnx(tmp_path / "trained", tmp_path / "files", run=4)
    asked = {path.stem: onnxruntime.InferenceSession(str(path)).run for path in files}
    random, rows = np.random.default_rng(1), 300
    # A world a row: the networks of NumPy take one row of each.
    agents = load_controller(tmp_path / "trained").agents.of([1] * rows)
    worlds = np.arange(rows)

    def drawn(*shape):
        return (4.0 * random.standard_normal((rows, *shape))).astype(np.float32)

    state = drawn(4)
    semantic = agents.semantics(worlds, state)
    np.testing.assert_allclose(asked["encoder"](None, {"state": state})[0], semantic, **CLOSE)
    taken = set()
    for sns in (1, 2, 5):
        local, remote = drawn(10), drawn(sns, 5)
        if sns > 1:
            remote[random.random((rows, sns)) < 0.3] = 0.0  # SNs that are not there
            remote[:, 0] = drawn(5)
        flat = remote.reshape(rows, -1)
        *scores, action = asked["en"](None, {"local": local, "remote": remote})
        theirs = agents._en_scores(worlds, local, flat)
        np.testing.assert_allclose(np.concatenate(scores, axis=1), theirs, **CLOSE)
        np.testing.assert_array_equal(action, agents.en_actions(worlds, local, flat))
        taken |= set(action.tolist())
    assert len(taken) > 3
    seen, hidden = drawn(3, 11), np.tanh(drawn(3, agents.hidden))
    values, after = agents.sn_values(worlds, seen, hidden)
    inputs = {"seen": seen.reshape(-1, 11), "hidden": hidden.reshape(-1, agents.hidden)}
    mine = [each.reshape(rows, 3, -1) for each in asked["sn"](None, inputs)]
    np.testing.assert_allclose(mine[0], values, **CLOSE)
    np.testing.assert_allclose(mine[1], after, **CLOSE)
    np.testing.assert_array_equal(mine[2][..., 0], values.argmax(axis=2))
    files[1].unlink()  # as an interrupted export leaves it
    assert export_onnx(tmp_path / "trained", tmp_path / "files", run=4) == files
    assert all(path.is_file() for path in files)
    with pytest.raises(InputError, match="is not empty"):
        export_onnx(tmp_path / "trained", tmp_path / "files", run=3)
    with pytest.raises(InputError, match="run: must be one of 3, 4"):
        export_onnx(tmp_path / "trained", tmp_path / "more")


def test_only_networks_are_exported(tmp_path):
    with pytest.raises(InputError, match="holds cosmo-next, of which a rule decides"):
        export_onnx(shipped("cosmo-next"), tmp_path)
