"""The paper's trained networks as ONNX files, for programs that have no Python.

    encoder.onnx   state → semantic                                 (where a status is one)
    en.onnx        local, remote → gate, route, action              (`cosmo-flat`: values, action)
    sn.onnx        seen, hidden → values, hidden_after, action

Inputs are on R18's scales, as `cosmo.policy.features` makes them. Rows are as many as one likes;
`remote` is [row, SN, feature] for any number of SNs, zeros where an EN reaches fewer.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cosmo.errors import InputError
from cosmo.files import MOST_ARRAYS, made_folder, read_bytes, whole_file
from cosmo.policy.controller import load_controller
from cosmo.policy.learned import Agents

ENCODER, EN, SN = "encoder.onnx", "en.onnx", "sn.onnx"
_OPSET, _IR = 17, 8
Layers = Mapping[str, NDArray[np.float32]]


def export_onnx(checkpoint: Path, out: Path, run: int | None = None) -> list[Path]:
    """Write the networks of a trained run as ONNX files.

    Args:
        checkpoint: A folder of `cosmo train`.
        out: The folder to write to; new, empty, or with what an interrupted export left.
        run: The seed of the run; may be left out if there is one.

    Returns:
        The files, encoder first where there is one.

    Raises:
        InputError: The folder holds no networks of the paper, no such run, or `onnx` is missing.

    """
    controller = load_controller(checkpoint)
    agents = controller.agents
    if not isinstance(agents, Agents):
        raise InputError(
            f"checkpoint = '{checkpoint}': holds {controller.method}, of which a rule decides;"
            " only the networks of cosmo and cosmo-flat are exported"
        )
    seeds = ", ".join(map(str, controller.seeds))
    if run is None and len(controller.seeds) > 1:
        raise InputError(f"run: must be one of {seeds}")
    if run is not None and run not in controller.seeds:
        raise InputError(f"run = {run}: must be one of {seeds}")
    row = 0 if run is None else controller.seeds.index(run)
    files = {name: model.SerializeToString() for name, model in _models(agents.of([row])).items()}
    if not made_folder(out) and not _begun(out, files):
        raise InputError(f"out = '{out}': is not empty")
    for name, content in files.items():
        with whole_file(out / name) as temporary:
            temporary.write_bytes(content)
    return [out / name for name in files]


def _begun(out: Path, files: Mapping[str, bytes]) -> bool:
    """Whether the folder has nothing but some of these files: an export was interrupted there."""
    there = list(out.iterdir())
    return all(path.name in files and path.is_file() for path in there) and all(
        read_bytes(path, MOST_ARRAYS) == files[path.name] for path in there
    )


def _models(agents: Agents) -> dict[str, Any]:
    found = {}
    if agents.encoder is not None:
        found[ENCODER] = _encoder(_one(agents.encoder))
    found[EN] = _en(_one(agents.en), agents.hierarchical)
    found[SN] = _sn(_one(agents.sn))
    return found


def _one(layers: Layers) -> Layers:
    """Of the one run, without the axis of runs."""
    return {name: layer[0] for name, layer in layers.items()}


class _Graph:
    """A graph under construction; values are known by their names."""

    def __init__(self, layers: Layers) -> None:
        try:
            import onnx
        except ImportError:
            raise InputError("export needs the package onnx: python -m pip install onnx") from None
        self._onnx, self._layers = onnx, layers
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """One operation; the name of its value."""
        output = name or f"v{len(self._nodes)}"
        node = self._onnx.helper.make_node(operator, inputs, [output], **attributes)
        self._nodes.append(node)
        return output

    def constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def linear(self, name: str, x: str, rows: slice = slice(None), bias: bool = True) -> str:
        """X W + b, or a part of the inputs' rows of W."""
        found = self.add("MatMul", x, self.constant(self._layers[f"{name}.w"][rows]))
        if not bias:
            return found
        return self.add("Add", found, self.constant(self._layers[f"{name}.b"]))

    def rectified(self, name: str, x: str) -> str:
        return self.add("Relu", self.linear(name, x))

    def part(self, x: str, start: int, stop: int) -> str:
        """Of the last axis."""
        ends = (self.constant(np.array([each], np.int64)) for each in (start, stop, -1))
        return self.add("Slice", x, *ends)

    def summed(self, x: str, axis: int, keep: bool = True) -> str:
        return self.add("ReduceSum", x, self.constant(np.array([axis], np.int64)), keepdims=keep)

    def dueling(self, name: str, x: str, output: str = "") -> str:
        """V + A − mean A."""
        advantage = self.linear(f"{name}.advantage", x)
        less = self.add("Sub", advantage, self.add("ReduceMean", advantage, axes=[-1]))
        return self.add("Add", self.linear(f"{name}.value", x), less, name=output)

    def best(self, values: str, output: str = "") -> str:
        return self.add("ArgMax", values, axis=-1, keepdims=0, name=output)

    def model(self, inputs: Mapping[str, list[Any]], outputs: Mapping[str, list[Any]]) -> Any:
        """The finished model; shapes with names for what is free, of float but for `action`."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto

        def told(shapes: Mapping[str, list[Any]]) -> list[Any]:
            return [
                helper.make_tensor_value_info(
                    name, kinds.INT64 if name == "action" else kinds.FLOAT, shape
                )
                for name, shape in shapes.items()
            ]

        graph = helper.make_graph(
            self._nodes, "cosmo", told(inputs), told(outputs), self._constants
        )
        opset = [helper.make_opsetid("", _OPSET)]
        made = helper.make_model(
            graph, opset_imports=opset, ir_version=_IR, producer_name="cosmo-edge"
        )
        self._onnx.checker.check_model(made)
        return made


def _encoder(p: Layers) -> Any:
    g = _Graph(p)
    hidden = g.rectified("encode2", g.rectified("encode1", "state"))
    g.add("Identity", g.linear("encode3", hidden), name="semantic")
    shape = [p["encode1.w"].shape[0]], [p["encode3.w"].shape[1]]
    return g.model({"state": ["row", *shape[0]]}, {"semantic": ["row", *shape[1]]})


def _en(p: Layers, hierarchical: bool) -> Any:
    """The network for several SNs; with one it is the paper's (`cosmo.policy.networks`)."""
    g = _Graph(p)
    branch, size = p["local2.w"].shape[1], p["fusion.b"].shape[0]
    zero, one = g.constant(np.float32(0.0)), g.constant(np.float32(1.0))
    seen = g.add("ReduceMax", g.add("Abs", "remote"), axes=[-1])  # [row, SN, 1]
    reached = g.add("Greater", seen, zero)
    local = g.rectified("local2", g.rectified("local1", "local"))
    remote = g.rectified("remote2", g.rectified("remote1", "remote"))
    # The fusion of both branches side by side is the sum of what it makes of each.
    of_local = g.linear("fusion", local, slice(branch))
    of_local = g.add("Unsqueeze", of_local, g.constant(np.array([1], np.int64)))
    of_remote = g.linear("fusion", remote, slice(branch, None), bias=False)
    fused = g.add("Relu", g.add("Add", of_remote, of_local))  # [row, SN, feature]
    there = g.add("Where", reached, fused, zero)
    counted = g.summed(g.add("Cast", reached, to=1), 1, keep=False)  # [row, 1]
    mean = g.summed(g.part(there, 0, size // 2), 1, keep=False)
    mean = g.add("Div", mean, g.add("Max", counted, one))
    most = g.add("ReduceMax", g.part(there, size // 2, size), axes=[1], keepdims=0)
    summary = g.add("Concat", mean, most, axis=-1)
    rows_sns = g.add("Squeeze", reached, g.constant(np.array([2], np.int64)))
    inputs = {
        "local": ["row", p["local1.w"].shape[0]],
        "remote": ["row", "sn", p["remote1.w"].shape[0]],
    }
    if not hierarchical:
        _scores(g, p, "flat", fused, summary, rows_sns, "values")
        g.best("values", "action")
        return g.model(inputs, {"values": ["row", "choice"], "action": ["row"]})
    g.dueling("gate", summary, "gate")
    _scores(g, p, "route", fused, summary, rows_sns, "route")
    rejects = g.add("GreaterOrEqual", g.part("gate", 0, 1), g.part("gate", 1, 2))
    rejects = g.add("Squeeze", rejects, g.constant(np.array([1], np.int64)))
    reject = g.add("Gather", g.add("Shape", "route"), g.constant(np.int64(1)))
    g.add("Where", rejects, reject, g.best("route"), name="action")
    return g.model(inputs, {"gate": ["row", 2], "route": ["row", "choice"], "action": ["row"]})


def _scores(
    g: _Graph, p: Layers, name: str, fused: str, summary: str, reached: str, output: str
) -> None:
    """V + A − mean A over [local, SN 1, …(, reject)]; −∞ for SNs that are not there."""
    count = p[f"{name}.advantage.b"].shape[0]
    of_sns = g.part(g.linear(f"{name}.advantage", fused), 1, 2)
    of_sns = g.add("Squeeze", of_sns, g.constant(np.array([2], np.int64)))  # [row, SN]
    others = g.linear(f"{name}.advantage", summary)
    first = g.part(others, 0, 1)
    always = g.add("Equal", first, first)
    parts, masks = [first, of_sns], [always, reached]
    if count > 2:
        parts.append(g.part(others, 2, count))
        masks.append(always)
    advantage = g.add("Concat", *parts, axis=-1)
    there = g.add("Concat", *masks, axis=-1)
    masked = g.add("Where", there, advantage, g.constant(np.float32(0.0)))
    mean = g.add("Div", g.summed(masked, 1), g.summed(g.add("Cast", there, to=1), 1))
    value = g.linear(f"{name}.value", summary)
    scores = g.add("Sub", g.add("Add", value, advantage), mean)
    g.add("Where", there, scores, g.constant(np.float32(-np.inf)), name=output)


def _sn(p: Layers) -> Any:
    g = _Graph(p)
    size = p["gru.h.w"].shape[0]
    from_x, from_h = g.linear("gru.x", g.rectified("project", "seen")), g.linear("gru.h", "hidden")

    def thirds(x: str) -> list[str]:
        return [g.part(x, k * size, (k + 1) * size) for k in range(3)]

    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = thirds(from_x), thirds(from_h)
    reset = g.add("Sigmoid", g.add("Add", reset_x, reset_h))
    update = g.add("Sigmoid", g.add("Add", update_x, update_h))
    new = g.add("Tanh", g.add("Add", new_x, g.add("Mul", reset, new_h)))
    rest = g.add("Sub", g.constant(np.float32(1.0)), update)
    g.add("Add", g.add("Mul", rest, new), g.add("Mul", update, "hidden"), name="hidden_after")
    g.dueling("update", "hidden_after", "values")
    g.best("values", "action")
    inputs = {"seen": ["row", p["project.w"].shape[0]], "hidden": ["row", size]}
    actions = p["update.advantage.b"].shape[0]
    outputs = {"values": ["row", actions], "hidden_after": ["row", size], "action": ["row"]}
    return g.model(inputs, outputs)
