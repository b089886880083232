"""An ONNX file as a method."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from cosmo import InputError, load, method, simulate
from cosmo.envs import EnView, SnView
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
        mine = simulate(SCENARIO, method(f"onnx:{path},updater=never"), seed=1)
        theirs = simulate(SCENARIO, method(name), seed=1)
        assert mine.metrics["success_rate"] == theirs.metrics["success_rate"]


def test_an_sn_has_the_intervals_it_was_trained_with(tmp_path):
    en = np.zeros((len(EnView(site_of(SCENARIO)).names), 3), np.float32)
    sn = np.zeros((len(SnView(site_of(SCENARIO)).names), 2), np.float32)
    _linear(tmp_path / "en.onnx", en, np.eye(3, dtype=np.float32)[1])
    _linear(tmp_path / "sn.onnx", sn, np.eye(2, dtype=np.float32)[0])  # sends, always
    pair = f"onnx:{tmp_path / 'en.onnx'},updater={tmp_path / 'sn.onnx'}"
    [found] = simulate(SCENARIO, method(f"{pair},intervals_ms=50"), seed=1).outcomes
    assert found.updates == found.update_decisions == 61  # R21: at both ends of 3 s
    with pytest.raises(InputError, match="intervals_ms = '50ms': must look like 20"):
        method(f"{pair},intervals_ms=50ms")


def test_a_file_that_is_no_onnx_is_one_line(tmp_path):
    (tmp_path / "x.onnx").write_text("no")
    with pytest.raises(InputError, match="cannot be read as ONNX"):
        method(f"onnx:{tmp_path / 'x.onnx'}")
