"""Controllers of others: whatever is in their files is a controller, or one line."""

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import InputError
from cosmo.arrays import read_arrays
from cosmo.checksums import sealed_arrays, sealed_record
from cosmo.control.evaluate import trained_on
from cosmo.learn.config import load_config
from cosmo.learn.next.config import load_next_config
from cosmo.node import RAW
from cosmo.policy.controller import FORMAT, Controller, TrainedRun, load_controller
from cosmo.policy.features import EN_LINK, EN_LOCAL, SN_OTHERS
from cosmo.policy.networks import encoder_shapes, shapes, sn_shapes
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.policy.next.values import chance_shapes, value_shapes
from cosmo.scenario import load
from cosmo.seeds import run_digest

CONFIGS = {"cosmo": load_config(), "cosmo-next": load_next_config()}
PARTS = {
    "cosmo": {
        "encoder": encoder_shapes((4, 3), 2),
        "en": shapes(EN_LOCAL, 2 + EN_LINK, True, 4, 5),
        "sn": sn_shapes(4 + SN_OTHERS, 4, 3, 18),
    },
    "cosmo-next": {
        "en": value_shapes(4, 3) | chance_shapes(5),
        "sn": {"worth": (CHANGE_SIZE,), "doubt": (CHANGE_SIZE, CHANGE_SIZE)},
    },
}


def _told(method):
    run = {
        "seed": 0,
        "expects": {"rate": 320.0, "squared_variation": 1.0},
        "scenario": load().model_dump(mode="json"),
    }
    training = CONFIGS[method].model_dump(mode="json")
    return {
        "format": FORMAT, "version": "1", "method": method, "sns": 1, "runs": [run],
        "training": training,
    }  # fmt: skip


def _arrays(method):
    return {
        f"{part}/{name}": np.ones((1, *shape), np.float32)
        for part, layers in PARTS[method].items()
        for name, shape in layers.items()
    }


def _write(folder, told, arrays, seal=True):
    record = sealed_record(told) if seal else told
    (folder / "training.json").write_text(json.dumps(record))
    np.savez(folder / "agents.npz", **sealed_arrays(arrays))


def _changed(told, field, value):
    *groups, last = field.split(".")
    at = told
    for group in groups:
        at = at[int(group)] if group.isdigit() else at[group]
    if value is KeyError:
        del at[last]
    else:
        at[last] = value
    return told


@pytest.mark.parametrize("seal", [True, False])
@pytest.mark.parametrize("method", CONFIGS)
def test_a_controller_is_read(tmp_path, method, seal):
    _write(tmp_path, _told(method), _arrays(method), seal)
    controller = load_controller(tmp_path)
    assert (controller.method, controller.seeds, controller.sns) == (method, (0,), 1)
    assert controller.agents.dimensions == 2
    assert trained_on(controller) == (load(),)


FIELDS = [
    ("cosmo", "method"), ("cosmo", "sns"), ("cosmo", "runs"), ("cosmo", "training"),
    ("cosmo", "runs.0.seed"), ("cosmo", "runs.0.expects"), ("cosmo", "runs.0.expects.rate"),
    ("cosmo", "training.encoder.semantic"), ("cosmo", "training.sn.intervals_ms"),
    ("cosmo", "training.en.hierarchical"), ("cosmo", "training.en.with_age"),
    ("cosmo-next", "training.en.failure"), ("cosmo-next", "training.en.own_traffic"),
    ("cosmo-next", "training.sn.near"), ("cosmo-next", "training.spans.slack"),
    ("cosmo-next", "training.spans.look"), ("cosmo-next", "training.spans"),
]  # fmt: skip
ODD = [
    KeyError,
    None,
    "text",
    -1,
    [],
    {},
    [{}],
    float("nan"),
    float("inf"),
    10**400,
    [float("nan")],
]


@pytest.mark.parametrize("value", ODD, ids=lambda value: str(value)[:9])
@pytest.mark.parametrize(("method", "field"), FIELDS)
def test_a_wrong_field_is_named(tmp_path, method, field, value):
    """Sealed, so that it is not damage but what somebody wrote."""
    _write(tmp_path, _changed(_told(method), field, value), _arrays(method))
    with pytest.raises(InputError) as caught:
        load_controller(tmp_path)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 400
    assert field.rpartition(".")[2] in line


def test_a_controller_of_an_earlier_version_is_to_be_trained_again(tmp_path):
    told = _told("cosmo-next")
    en = told["training"]["en"]
    en["books"], en["haste"] = en.pop("own_traffic"), en.pop("delay_cost")
    _write(tmp_path, told, _arrays("cosmo-next"))
    line = r"training\.en\.own_traffic: is missing; train it again, with this version"
    with pytest.raises(InputError, match=line):
        load_controller(tmp_path)


def test_a_changed_file_is_damage(tmp_path):
    _write(tmp_path, _told("cosmo"), _arrays("cosmo"))
    path = tmp_path / "training.json"
    path.write_text(path.read_text().replace('"sns": 1', '"sns": 2'))
    with pytest.raises(InputError, match="not what was written; the file is damaged"):
        load_controller(tmp_path)


@pytest.mark.parametrize("scenario", [KeyError, 5, {}, {"name": "x"}])
def test_a_wrong_scenario_is_refused_where_it_is_needed(tmp_path, scenario):
    _write(tmp_path, _changed(_told("cosmo"), "runs.0.scenario", scenario), _arrays("cosmo"))
    controller = load_controller(tmp_path)  # a node does not need it
    with pytest.raises(InputError, match=r"training\.json': runs\.0\.scenario"):
        trained_on(controller)


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("en/local1.w", lambda a: np.full_like(a, np.nan), "not finite"),
        ("en/local1.w", lambda a: a.astype(complex), r"is complex128 .* must be numbers"),
        ("en/local1.w", lambda a: a.astype(int), r"is int64 .* must be numbers"),
        ("en/local1.w", lambda a: a[:, :-1], r"must be numbers in \[1, 10, 4\]"),
        ("en/local1.w", lambda a: np.concatenate([a, a]), r"must be numbers in \[1, 10, 4\]"),
        ("en/local1.b", lambda a: np.float32(1), "no layer local1.b"),
        ("sn/gru.h.b", lambda a: a[:, :0], "no layer gru.h.b"),
        ("sn/update.advantage.b", lambda a: a[:, :5], r"must be numbers in \[1, 3, 18\]|\[1, 18\]"),
        ("encoder/encode3.b", lambda a: a[:, :1], "must be numbers in"),
    ],
)
def test_arrays_that_make_no_networks_are_refused(tmp_path, name, change, line):
    arrays = _arrays("cosmo")
    _write(tmp_path, _told("cosmo"), arrays | {name: change(arrays[name])})
    with pytest.raises(InputError, match=rf"agents\.npz': is damaged \(.*{line}"):
        load_controller(tmp_path)
    del arrays[name]
    _write(tmp_path, _told("cosmo"), arrays)
    with pytest.raises(InputError, match=r"agents\.npz': is damaged"):
        load_controller(tmp_path)


def test_a_bomb_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(10**6))
    assert path.stat().st_size < 10_000
    with pytest.raises(InputError, match="is compressed, which cosmo's files are not"):
        read_arrays(path)
    # One that claims more than it has, in the array's own header.
    np.savez(path, a=np.zeros(8))
    path.write_bytes(path.read_bytes().replace(b"'shape': (8,), }", b"'shape': (8**9,)}"[:16]))
    with pytest.raises(InputError, match="damaged or cut short"):
        read_arrays(path)
    with zipfile.ZipFile(path, "w") as file:
        header = b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': "
        file.writestr("a.npy", (header + b"(99999999999,), }").ljust(127) + b"\n")
    with pytest.raises(InputError, match="declares another size than it has"):
        read_arrays(path)


def test_raw_status_has_as_many_numbers_as_a_state(tmp_path):
    told = _changed(_told("cosmo"), "training.encoder.semantic", False)
    parts = {"en": shapes(EN_LOCAL, RAW + EN_LINK, True, 4, 5)}
    parts["sn"] = sn_shapes(2 * RAW + SN_OTHERS, 4, 3, 9)
    arrays = {
        f"{part}/{name}": np.ones((1, *shape), np.float32)
        for part, layers in parts.items()
        for name, shape in layers.items()
    }
    _write(tmp_path, told, arrays)
    assert load_controller(tmp_path).agents.dimensions == RAW


@pytest.mark.parametrize(
    ("seed", "rate", "variation", "run"),
    [
        (4, 100.0, 0.0, 0),
        (4, 100.0, 1.0, 1),
        (4, 290.0, 1.0, 2),
        (7, 100.0, 0.0, 3),
        (9, 100.0, 0.9, 1),
    ],
)
def test_a_site_gets_the_run_that_was_trained_for_the_nearest_load(seed, rate, variation, run):
    told = ((4, 100.0, 0.0), (4, 100.0, 1.0), (4, 300.0, 0.0), (7, 200.0, 0.5))
    controller = Controller(
        Path("trained"), "cosmo", tuple(TrainedRun(*each) for each in told), 1, None, {}
    )
    where = SimpleNamespace(tasks=SimpleNamespace(rate=rate, squared_variation=variation))
    assert controller.run_of(run_digest(seed), where) == run
