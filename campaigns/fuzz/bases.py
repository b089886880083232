"""What cases are mutations of: a scenario, a plan, a trace, a controller, an ONNX file."""

import io
import json
from functools import cache
from typing import Any

import numpy as np
import polars

from cosmo.checksums import sealed_arrays, sealed_record
from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.policy.controller import FORMAT
from cosmo.policy.features import EN_LINK, EN_LOCAL, SN_OTHERS
from cosmo.policy.networks import encoder_shapes, shapes, sn_shapes
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.scenario import dump, load

SHORT = ("episode.window_ms=300", "episode.warmup_ms=0", "workload.rate=40")
# What is off by default, and then not in the file of a scenario.
SURPRISES = (
    "workload.demand.spread=0.3", "workload.weights=[1.0]", "workload.wave.amplitude=0.5",
    "workload.wave.period_ms=100.0", "background.rates=[5.0, 20.0]",
    "background.cycles=[1e5, 2e5]", "background.together=1.0", "live.slower=2.0",
    "sn.speed={factors = [1.0, 0.4], dwell_ms = [50.0, 20.0]}",
    "en.speed={factors = [1.0, 0.4], dwell_ms = [50.0, 20.0]}",
)  # fmt: skip
COLUMNS = ("time_ms", "ue", "input_bytes", "cycles", "deadline_ms")
ROWS = [(3.0 * k, k % 4, 20000 + k, 100000 + 7 * k, 100.0) for k in range(12)]

PLAN = """name = "small"
description = "a plan"
settings = ["episode.window_ms=300", "episode.warmup_ms=0"]
arrivals = ["poisson"]
rates = [40.0]
seeds = [0, 1]
episodes = 1

[training]
settings = ["episodes=2"]

[[train]]
name = "mine"
method = "cosmo-next"
settings = ["episodes=2"]

[[compare]]
methods = ["all-local", "random", "aoi-threshold"]

[[compare]]
methods = ["periodic"]
sweep = {field = "method.interval_ms", values = [20.0, 50.0]}
"""


@cache
def scenario() -> str:
    """A short one in full, as TOML."""
    return dump(load("paper", (*SHORT, *SURPRISES)))


@cache
def fields() -> dict[str, Any]:
    """Every field of a scenario, by its dotted name, and its value."""
    return flat(load("paper", (*SHORT, *SURPRISES)).model_dump(mode="json"))


def flat(group: dict[str, Any], start: str = "") -> dict[str, Any]:
    """{dotted name: value} of nested groups."""
    found: dict[str, Any] = {}
    for name, value in group.items():
        if isinstance(value, dict):
            found |= flat(value, f"{start}{name}.")
        else:
            found[f"{start}{name}"] = value
    return found


def trace_csv() -> str:
    """Twelve tasks."""
    return "\n".join([",".join(COLUMNS), *(",".join(map(str, row)) for row in ROWS)]) + "\n"


def parquet(columns: dict[str, Any]) -> bytes:
    """A table as a Parquet file; columns of all kinds of values become text."""
    buffer, table = io.BytesIO(), polars.DataFrame(columns, strict=False)
    objects = [name for name in table.columns if table[name].dtype == polars.Object]
    texts = [polars.Series(name, list(map(str, columns[name]))) for name in objects]
    table.with_columns(texts).write_parquet(buffer)
    return buffer.getvalue()


def described(method: str) -> dict[str, Any]:
    """What the training.json of a controller says."""
    world = load("paper", SHORT).model_dump(mode="json")
    expects = {"rate": 40.0, "squared_variation": 1.0}
    config = load_next_config() if method == "cosmo-next" else load_config()
    return {
        "format": FORMAT, "version": "1", "method": method, "sns": 1,
        "runs": [{"seed": 0, "expects": expects, "scenario": world}],
        "training": config.model_dump(mode="json"),
    }  # fmt: skip


def layers(method: str) -> dict[str, Any]:
    """Its arrays: networks of a few neurons."""
    if method == "cosmo-next":
        parts = {
            "en": value_shapes(4, 3) | chance_shapes(5),
            "sn": {"worth": (CHANGE_SIZE,), "doubt": (CHANGE_SIZE, CHANGE_SIZE)},
        }
    else:
        parts = {
            "encoder": encoder_shapes((4, 3), 2),
            "en": shapes(EN_LOCAL, 2 + EN_LINK, True, 4, 5),
            "sn": sn_shapes(4 + SN_OTHERS, 4, 3, 18),
        }
    random = np.random.default_rng(0)
    return {
        f"{part}/{name}": random.normal(size=(1, *shape)).astype(np.float32)
        for part, named in parts.items()
        for name, shape in named.items()
    }


def controller(told: dict[str, Any], arrays: dict[str, Any], seal: bool = True) -> dict[str, bytes]:
    """The files of a controller's folder."""
    buffer = io.BytesIO()
    np.savez(buffer, **(sealed_arrays(arrays) if seal else arrays))
    record = sealed_record(told) if seal else told
    return {
        "trained/training.json": json.dumps(record).encode(),
        "trained/agents.npz": buffer.getvalue(),
    }


# A graph in ONNX's protocol buffers, written by hand: y = x < x, numbers [n, 22], which an EN of
# `paper` sees, to truths [n, 22], none of them true, of which the first is the action.
def _tensor(kind: int) -> bytes:
    return b"\x0a\x0d\x08" + bytes([kind]) + b"\x12\x09\x0a\x03\x12\x01n\x0a\x02\x08\x16"


_INPUT, _OUTPUT = (
    b"\x0a\x01" + name + b"\x12" + bytes([len(_tensor(kind))]) + _tensor(kind)
    for name, kind in ((b"x", 1), (b"y", 9))
)
_NODE = b"\x0a\x01x\x0a\x01x\x12\x01y\x22\x04Less"
_GRAPH = b"".join(
    tag + bytes([len(part)]) + part
    for tag, part in ((b"\x0a", _NODE), (b"\x12", b"g"), (b"\x5a", _INPUT), (b"\x62", _OUTPUT))
)
ONNX = b"\x08\x08\x3a" + bytes([len(_GRAPH)]) + _GRAPH + b"\x42\x04\x0a\x00\x10\x0d"


# A log of somebody else, and what its columns are for `cosmo import`.
LOG_COLUMNS = {
    "time_ms": "at:epoch_s", "ue": "who", "input_bytes": "size:kB", "cycles": "work:cpu_ms",
    "deadline_ms": "limit:s",
}  # fmt: skip


def log_rows() -> list[dict[str, Any]]:
    """Its rows."""
    return [
        {"at": 1.7e9 + k, "who": f"cam-{k % 3}", "size": 30 + k, "work": 10.0, "limit": 0.1}
        for k in range(12)
    ]


def log(kind: str, rows: list[dict[str, Any]]) -> bytes:
    """The rows as CSV or as lines of JSON."""
    if kind == "jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        lines = [",".join(str(value) for value in row.values()) for row in rows]
        text = "\n".join(["at,who,size,work,limit", *lines])
    return text.encode("utf-8", "surrogatepass")
