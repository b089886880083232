"""Worlds on a GPU: in Numba's simulator, which needs none, decision by decision as on the CPU."""

import json
import math
import os
import subprocess
import sys
from importlib import import_module
from math import exp2
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import numpy as np
import pytest

from cosmo import load, method, play, simulate
from cosmo.control import compiled, gpu
from cosmo.device import chosen_device
from cosmo.errors import InputError
from cosmo.node.guard import made_dispatcher
from cosmo.policy.rules import admission, estimate
from cosmo.workload import episode
from cosmo.world import site_of
from cosmo.world.compiled import inexact_in
from cosmo.world.device_code import MOST_ELEMENTS, NoGpuError, for_kernels

_SITE = (
    *("episode.window_ms=60", "episode.warmup_ms=10", "workload.rate=250", "en.count=2"),
    *("sn.count=2", "sn.slots=[1, 2]", "en.slots=1", "status.loss_probability=0.2"),
)
# More events at once than a world has room for at first, so that it stalls and goes on.
_CROWDED = (*_SITE, "workload.rate=3000", "en.storage_bytes=4e5", "sn.queue_capacity=99")
_SURPRISES = (
    *("sn.outage={up_ms = 20, down_ms = 10}", "workload.demand.spread=1.0"),
    *("sn.speed={factors = [1.0, 0.4], dwell_ms = [15, 10]}", "fading.factors=[0.3, 1.0]"),
)
CASES = (
    ("local-until-full", _CROWDED),
    ("full-information", _SITE),
    ("power-of-d:d=2,keep=2", _SITE),
    ("piggyback:numbers=4", _SITE),
    ("in-flight:hot_ms=3", (*_SITE, *_SURPRISES)),
    ("cosmo-next", (*_SITE, *_SURPRISES)),
)


def test_a_simulated_gpu_plays_every_task_as_the_cpu(tmp_path):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed (the extra 'gpu')")
    out, seed = tmp_path / "gpu.npz", 3
    cases = [";".join([name, *settings]) for name, settings in CASES]
    script = Path(__file__).with_name("simulated_gpu.py")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    called = [sys.executable, str(script), str(out), str(seed), *cases]
    done = subprocess.run(called, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with np.load(out) as there:
        for number, (name, settings) in enumerate(CASES):
            scenario = load("campus", settings)
            episodes = [episode(scenario, seed, world) for world in range(3)]
            for world, each in enumerate(play(scenario, name, episodes, seed)):
                assert len(each.tasks) > 10
                for field in ("action", "outcome", "decided_ms", "finished_ms", "noticed_ms"):
                    got = there[f"{number}-{world}-{field}"]
                    np.testing.assert_array_equal(got, getattr(each, field), f"{name}: {field}")
                counted = [each.updates, each.rides, each.update_decisions, each.status_bytes]
                assert there[f"{number}-{world}-counted"].tolist() == counted, name


def test_without_a_gpu_the_cpu_plays_and_says_so(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    on_cpu = simulate("paper", "in-flight", rates=100)
    asked = simulate("paper", "in-flight", rates=100, device="gpu")
    assert asked.episodes[0] == pytest.approx(on_cpu.episodes[0], abs=0, nan_ok=True)
    [line] = [each for each in asked.remarks if "device = 'gpu'" in each]
    assert line.endswith("played on the CPU, with the same results")


def test_only_what_a_gpu_plays_is_planned_for_its_memory(monkeypatch):
    memory = SimpleNamespace(free=10**9)
    context = SimpleNamespace(get_memory_info=lambda: memory)
    monkeypatch.setattr(gpu, "cuda", lambda: SimpleNamespace(current_context=lambda: context))
    monkeypatch.setattr(gpu, "_free_here", lambda: 10**11)  # however busy this machine is
    campus = load("campus")
    first = episode(campus, 0, 0)
    fit = gpu.worlds_that_fit(campus, method("in-flight"), first)
    assert 100 < fit < 65_536
    memory.free = 10**8
    assert gpu.worlds_that_fit(campus, method("in-flight"), first) == pytest.approx(fit / 10, abs=1)
    assert gpu.worlds_that_fit(campus, method("admission-control"), first) == 0
    paper = load("paper")
    assert gpu.worlds_that_fit(paper, method("cosmo-next"), episode(paper, 0, 0)) == 0


class _FullLater:
    """Has room for some turns, of which rules remember what they have decided, and for no more."""

    def __init__(self, en, sn, en_state, sn_state, tally):
        self._play = compiled._player(en, sn)
        self._own = {"en": en_state, "sn": sn_state, "tally": tally}

    def __call__(self, constants, state, turn):
        fresh = turn.seen._replace(
            status=turn.seen.status.copy(), status_ms=turn.seen.status_ms.copy()
        )
        self._play(constants, state, turn, fresh=fresh, turns=300, **self._own)
        raise NoGpuError("its memory is full")


def test_a_gpu_that_is_full_later_leaves_nothing_behind(monkeypatch):
    scenario, name, seed = load("campus", _SITE), "in-flight:hot_ms=3", 3
    episodes, remarks = [episode(scenario, seed, world) for world in range(2)], set()
    monkeypatch.setattr(import_module("cosmo.control.play"), "GpuPlayer", _FullLater)
    found = play(scenario, name, episodes, seed, remarks=remarks, device="gpu")
    assert "its memory is full" in " ".join(remarks)
    for here, there in zip(play(scenario, name, episodes, seed), found, strict=True):
        np.testing.assert_array_equal(here.action, there.action)
        np.testing.assert_array_equal(here.outcome, there.outcome)


def test_commands_say_once_that_there_is_no_gpu(monkeypatch, cosmo):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    called = ["simulate", "-m", "in-flight", "--set", "episode.window_ms=3200", "--json"]
    code, out, err = cosmo(*called, "--device", "gpu")
    assert code == 0
    assert err.count("played on the CPU, with the same results") == 1
    assert json.loads(out)["method"] == "in-flight"
    assert chosen_device() == "cpu"


def test_the_environment_chooses_the_device(monkeypatch):
    monkeypatch.setenv("COSMO_DEVICE", "gpu")
    assert chosen_device() == "gpu"
    assert chosen_device("cpu") == "cpu"
    monkeypatch.setenv("COSMO_DEVICE", "tpu")
    with pytest.raises(InputError, match="device = 'tpu': must be cpu or gpu"):
        chosen_device()


def test_rules_whose_bits_depend_on_the_processor_are_found():
    assert inexact_in(estimate.choose) == set()
    assert inexact_in(admission.decide) == {"**"}

    def of_a_module(x):
        return math.hypot(x, math.sqrt(x))

    def by_its_name(x):
        return exp2(x) + math.floor(x)

    assert inexact_in(of_a_module) == {"hypot"}
    assert inexact_in(by_its_name) == {"exp2"}


def test_batches_are_planned_for_arrays_that_double(monkeypatch):
    plenty = SimpleNamespace(free=10**15)
    context = SimpleNamespace(get_memory_info=lambda: plenty)
    monkeypatch.setattr(gpu, "cuda", lambda: SimpleNamespace(current_context=lambda: context))
    monkeypatch.setattr(gpu, "_free_here", lambda: 10**15)
    district = load("district", ["workload.rate=182"])
    few, many = episode(district, 0, 0), episode(district, 0, 14)
    assert few.tasks.most_of_an_en <= 512 < many.tasks.most_of_an_en  # one needs twice the draws
    power = method("power-of-d")
    fit = gpu.worlds_that_fit(district, power, few)
    dispatcher = made_dispatcher(power, site_of(district, [(0, 0)]))
    draws = dispatcher.with_draws(many.tasks.most_of_an_en).draws
    assert 1000 < fit <= MOST_ELEMENTS / draws.size


def test_arrays_that_are_too_long_for_a_gpu_are_refused(monkeypatch):
    monkeypatch.setattr(gpu, "MOST_ELEMENTS", 1000)
    monkeypatch.setattr(gpu, "cuda", lambda: None)
    monkeypatch.setattr(gpu, "_player", lambda en, sn: None)
    remarks = set()
    scenario = load("campus", _SITE)
    play(scenario, "in-flight", [episode(scenario, 3, 0)], 3, remarks=remarks, device="gpu")
    assert "longer than its indices" in " ".join(remarks)


def test_threads_compile_for_a_gpu_one_after_the_other():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed (the extra 'gpu')")
    cgutils = import_module("numba.cuda.cgutils")
    usual, seen = cgutils.get_item_pointer2, []
    inside, entered = Event(), Event()

    def first():
        with for_kernels():
            inside.set()
            seen.append(entered.wait(0.3))  # the other must not come in, however long it waits
            seen.append(cgutils.get_item_pointer2 is usual)

    def second():
        inside.wait()
        with for_kernels():
            entered.set()
            seen.append(cgutils.get_item_pointer2 is usual)

    threads = [Thread(target=each) for each in (first, second)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert seen == [False, False, False]
    assert cgutils.get_item_pointer2 is usual


def test_a_numba_cuda_that_has_changed_is_no_gpu(monkeypatch):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed (the extra 'gpu')")
    monkeypatch.delattr(import_module("numba.cuda.cgutils"), "get_item_pointer2")
    with pytest.raises(NoGpuError, match=r"has no cgutils\.get_item_pointer2"), for_kernels():
        pass
