"""Trainings in a folder: interrupted, resumed, damaged, refused."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import polars
import pytest
from short import short_config, short_runs

import cosmo
from cosmo import InputError, load, load_controller, method, play
from cosmo.control.evaluate import trained_on
from cosmo.envs import UpdateEnv
from cosmo.learn import checkpoint, session
from cosmo.learn.trainer import Trainer
from cosmo.policy.controller import TrainedRun
from cosmo.seeds import run_digest
from cosmo.workload import episode
from observations import site


def _gpus():
    try:
        return jax.devices("gpu")
    except RuntimeError:
        return []


def _train(folder, episodes=5, seeds=(0, 1), **more):
    session.train(folder, "cosmo", short_runs(*seeds), short_config(episodes), **more)


def _contents(folder):
    arrays = {}
    for name in ("state.npz", "agents.npz"):
        with np.load(folder / name) as file:
            arrays |= {f"{name}/{key}": file[key] for key in file.files}
    return arrays, polars.read_parquet(folder / "curves.parquet")


def _assert_equal(one, other):
    arrays, curves = _contents(one)
    arrays_, curves_ = _contents(other)
    assert arrays.keys() == arrays_.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(value, arrays_[name], err_msg=name)
    assert curves.equals(curves_)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("training") / "whole"
    _train(folder, tensorboard=True)
    return folder


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {learn!r}]
import numpy
from cosmo.learn import session
from test_session import _train
session._CHECKPOINT_S = {every}
if {in_save}:
    whole, calls = numpy.savez, []
    def cut_short(file, **arrays):
        calls.append(file)
        if len(calls) == {in_save}:
            file.write(b"PK half a file")
            file.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        whole(file, **arrays)
    numpy.savez = cut_short
def told(episode, curves):
    if episode == {after}:
        os.kill(os.getpid(), signal.SIGKILL)
_train(Path({folder!r}), on_episode=told)
"""


@pytest.mark.parametrize(
    ("every", "after", "in_save"),
    [(0.0, 2, 0), (1e9, 3, 0), (0.0, 99, 5), (0.0, 99, 4)],
    ids=["after a checkpoint", "before any", "writing a state", "writing the agents"],
)
def test_killed_and_resumed_it_ends_as_if_it_had_not_been(whole, tmp_path, every, after, in_save):
    folder, here = tmp_path / "killed", Path(__file__).parent
    code = _KILLED.format(
        tests=str(here.parent), learn=str(here), folder=str(folder),
        every=every, after=after, in_save=in_save,
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    _train(folder, resume=True)
    _assert_equal(folder, whole)


def test_more_episodes_can_be_added_later(whole, tmp_path):
    folder = tmp_path / "more"
    _train(folder, episodes=2)
    _train(folder, episodes=5, resume=True)
    _assert_equal(folder, whole)


def test_a_training_that_is_shorter_than_the_validation_interval_still_delivers(tmp_path):
    config = short_config(2, "validate_every=5")
    session.train(tmp_path / "short", "cosmo", short_runs(0), config)
    arrays = _contents(tmp_path / "short")[0]
    assert arrays["agents.npz/best_episode"].tolist() == [2]
    np.testing.assert_array_equal(arrays["state.npz/best_en"], arrays["state.npz/en/parameters"])


def test_before_the_first_validation_the_current_networks_are_delivered(tmp_path):
    trainer = Trainer(short_runs(0), short_config(3, "validate_every=5"))
    trainer.pretrain()
    trainer.train_episode()
    checkpoint.start(tmp_path, checkpoint.describe("cosmo", short_runs(0), trainer.config, "cpu"))
    checkpoint.save(tmp_path, trainer, checkpoint.Curves(short_runs(0)))
    layers = load_controller(tmp_path).agents.en
    current = trainer.agents().en
    for name, value in layers.items():
        np.testing.assert_array_equal(value, current[name])


def test_a_finished_training_resumes_to_nothing(whole):
    before = _contents(whole)[1]
    heard = []
    _train(whole, resume=True, on_episode=lambda episode, curves: heard.append(episode))
    assert heard == [0, 5]  # the work begins; resumed after the last episode
    assert _contents(whole)[1].equals(before)


def test_curves_have_a_row_for_every_run_and_episode(whole):
    curves = polars.read_parquet(whole / "curves.parquet")
    assert curves.select("seed", "episode").rows() == [(s, e) for e in range(1, 6) for s in (0, 1)]
    assert set(curves["rate"]) == {300.0}
    assert curves["epsilon"].is_between(0.05, 1.0).all()
    assert curves["success_rate"].is_between(0.0, 1.0).all()
    assert curves["validation_utility"].null_count() == 0


def test_tensorboard_can_read_the_logs(whole):
    from tensorboardX.proto.event_pb2 import Event

    found = {}
    for path in sorted((whole / "tensorboard").glob("*/events*")):
        data, place = path.read_bytes(), 0
        while place < len(data):  # length, its checksum, the record, its checksum
            size = int.from_bytes(data[place : place + 8], "little")
            event = Event.FromString(data[place + 12 : place + 12 + size])
            for value in event.summary.value:
                found[path.parent.name, value.tag, event.step] = value.simple_value
            place += 16 + size
    curves = polars.read_parquet(whole / "curves.parquet")
    for row in curves.iter_rows(named=True):
        key = f"poisson-300-seed{row['seed']}", "reward", row["episode"]
        assert found[key] == pytest.approx(row["reward"], rel=1e-6)


def test_the_controller_on_disk_acts_like_the_networks_in_memory(whole):
    controller = load_controller(whole)
    assert (controller.method, controller.seeds) == ("cosmo", (0, 1))
    scenario = trained_on(controller)[0]
    worlds = [episode(scenario, 7, number) for number in range(2)]
    with np.load(whole / "agents.npz") as file:
        best = file["best_episode"]
    assert ((best >= 1) & (best <= 5)).all()
    by_name = play(scenario, method(f"cosmo:checkpoint={whole},run=1"), worlds)
    by_seed = play(scenario, method(f"cosmo:checkpoint={whole}"), worlds, seeds=1)
    for one, other in zip(by_name, by_seed, strict=True):
        np.testing.assert_array_equal(one.action, other.action)


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda f: (f / "agents.npz").write_bytes(b"PK"), "damaged or cut short"),
        (
            lambda f: (f / "agents.npz").write_bytes((f / "agents.npz").read_bytes()[:9000]),
            "damaged or cut short",
        ),
        (lambda f: (f / "agents.npz").unlink(), "no checkpoint yet"),
        (lambda f: (f / "training.json").unlink(), "no trained controller"),
        (lambda f: (f / "training.json").write_text("{"), "not JSON"),
        (lambda f: (f / "training.json").write_text("[]"), "not written by cosmo"),
        (
            lambda f: (f / "training.json").write_text('{"format": 99, "version": "9.0"}'),
            "format 99, written by cosmo 9.0; this version reads format 2",
        ),
    ],
)
def test_what_is_damaged_or_foreign_is_refused_in_one_line(whole, tmp_path, damage, line):
    folder = tmp_path / "damaged"
    shutil.copytree(whole, folder)
    damage(folder)
    with pytest.raises(InputError, match=line):
        load_controller(folder)


def test_a_damaged_state_is_refused_and_left_alone(whole, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(whole, folder)
    (folder / "state.npz").write_bytes(b"PK half")
    with pytest.raises(InputError, match="damaged or cut short"):
        _train(folder, resume=True)
    assert (folder / "state.npz").read_bytes() == b"PK half"


def test_another_training_is_not_resumed(whole):
    with pytest.raises(InputError, match=r"was started with runs\.0\.seed = 0, not 3"):
        _train(whole, seeds=(3, 1), resume=True)
    with pytest.raises(InputError, match=r"training\.en\.batch = 32, not 8"):
        session.train(whole, "cosmo", short_runs(0, 1), short_config(5, "en.batch=8"), resume=True)
    with pytest.raises(InputError, match="method = 'cosmo', not 'cosmo-flat'"):
        session.train(whole, "cosmo-flat", short_runs(0, 1), short_config(), resume=True)


def test_a_training_names_its_device_and_goes_on_there_alone(whole, tmp_path):
    assert load_controller(whole).device == "cpu"
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(whole, elsewhere)
    told = json.loads((elsewhere / "training.json").read_text())
    checkpoint.start(elsewhere, {name: told[name] for name in told} | {"device": "gpu"})
    with pytest.raises(InputError, match="was started with device = 'gpu', not 'cpu'"):
        _train(elsewhere, resume=True)
    with pytest.raises(InputError, match="device = 'tpu': must be cpu or gpu"):
        _train(tmp_path / "new", device="tpu")


@pytest.mark.skipif(bool(_gpus()), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(InputError, match="device = 'gpu': JAX finds no GPU"):
        _train(tmp_path / "new", device="gpu")
    assert not (tmp_path / "new").exists()


def test_what_a_kill_left_half_written_is_no_obstacle(tmp_path):
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / ".training.json.ab12cd_e").write_text("{")
    _train(folder, episodes=1, seeds=(0,), resume=True)
    assert not list(folder.glob(".training*"))


def test_an_unknown_seed_gets_an_agent_of_its_load(whole):
    controller = load_controller(whole)
    rate = load("paper").workload.rate
    mixed = replace(
        controller, runs=(TrainedRun(0, rate, squared_variation=0.0), TrainedRun(1, rate, 1.0))
    )
    assert mixed.run_of(run_digest(7), site(load("paper"))) == 1
    assert mixed.run_of(run_digest(0), site(load("paper"))) == 0
    # A load that none was trained for: the nearest one, rounding aside.
    assert mixed.run_of(run_digest(7), site(load("paper", ["workload.rate=99"]))) == 1
    runs = (TrainedRun(0, 120.0, 1.0), TrainedRun(1, 320.0, 1.0), TrainedRun(2, 320.0, 0.0))
    others = replace(controller, runs=runs)
    assert others.run_of(run_digest(7), site(load("paper", ["workload.rate=130"]))) == 0
    assert others.run_of(run_digest(7), site(load("paper", ["workload.rate=300"]))) == 1
    assert others.run_of(run_digest(7), site(load("paper"), rate=320.0 * (1 + 1e-12))) == 1
    deterministic = load("paper", ["workload.arrivals=deterministic"])
    assert mixed.run_of(run_digest(7), site(deterministic)) == 0


def test_a_training_is_not_shortened_or_gone_on_with_by_another_version(whole, monkeypatch):
    with pytest.raises(InputError, match="is for 5 episodes already, more than 2"):
        _train(whole, episodes=2, resume=True)
    monkeypatch.setattr(cosmo, "__version__", "99.0")
    with pytest.raises(InputError, match=r"was started with version = '.*', not '99\.0'"):
        _train(whole, resume=True)


def test_a_trained_method_can_be_the_other_side_of_an_environment(whole):
    env = UpdateEnv(trained_on(load_controller(whole))[0], dispatcher=f"cosmo:checkpoint={whole}")
    env.reset(seed=1)
    over, steps = False, 0
    while not over:
        _, _, over, _, _ = env.step(0)
        steps += 1
    assert env.game.worlds.outcome(0).update_decisions == steps > 0


def test_a_folder_of_others_is_not_touched(whole, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="not empty and has no training"):
        _train(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match=r"^out = .*has a training in it; resume it"):
        _train(whole)
    with pytest.raises(InputError, match="cannot be made a folder"):
        _train(tmp_path / "mine.txt" / "below")


def test_agents_of_one_pair_act_on_a_larger_site_and_say_that_they_were_not_trained_there(whole):
    scenario = load("campus", ["episode.window_ms=300", "episode.warmup_ms=0"])
    made = method(f"cosmo:checkpoint={whole}")
    [outcome] = play(scenario, made, [episode(scenario, 0, 0)])
    assert (outcome.action >= 0).all()
    assert "trained where an EN reaches 1 SN(s); here it reaches 2" in made.notice(site(scenario))
    assert made.notice(site(load("paper"))) == ""


def test_a_checkpoint_of_another_method_is_refused(whole):
    with pytest.raises(InputError, match="holds cosmo, not cosmo-flat"):
        method(f"cosmo-flat:checkpoint={whole}")
    with pytest.raises(InputError, match="run = 8: must be one of 0, 1"):
        method(f"cosmo:checkpoint={whole},run=8")


def test_the_description_says_all_that_was_trained(whole):
    told = json.loads((whole / "training.json").read_text())
    assert told["training"]["en"]["hierarchical"] is True
    assert [run["seed"] for run in told["runs"]] == [0, 1]
    assert told["runs"][0]["scenario"]["workload"]["rate"] == 300
    assert told["format"] == checkpoint.FORMAT
