"""Same seed, same bits, however many CPUs a process may use, alone or in a worker.

Trainings have batches of 1024: long enough sums that XLA cuts them where it has several threads.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from cosmo.learn.next.returns import over_rows
from cosmo.study.pool import WORKER_ENVIRONMENT

WORLD = "episode.window_ms=1500 episode.warmup_ms=0 workload.rate=300"
TRAININGS = {
    "cosmo": "validate_every=1 encoder.collection_episodes=3 encoder.epochs=5 episodes=3"
    " en.batch=1024",
    "cosmo-next": "episodes=2 worlds=4 window_ms=800.0 en.steps=20 en.kept_rounds=2"
    " en.batch=1024 sn.from_share=0.3",
}
TRAIN = """
from pathlib import Path
from cosmo import load
from cosmo.learn import session
from cosmo.learn.trainer import Run

method, folder, world, settings = sys.argv[2:]
config = session.load_config_of(method, None, settings.split())
session.train(Path(folder), method, [Run(load("paper", world.split()), 0)], config)
"""
SUMS = """
import hashlib
import numpy as np
from cosmo.policy.next.sn import CHANGE_SIZE
from cosmo.learn.next.returns import baseline
from cosmo.learn.next.worth import Worth

random = np.random.default_rng(0)
load, news = random.standard_normal((60000, 5)), random.standard_normal((60000, CHANGE_SIZE))
earned, share = random.standard_normal(60000), np.full(60000, 0.5)
worth = Worth(1, 20.0, 1.0)
worth.add(0, news, random.random(60000) < share, share, earned)
found = baseline(load, earned), worth.square, worth.cross, worth.noise
print(hashlib.sha256(b"".join(each.tobytes() for each in found)).hexdigest())
"""
USED_BEFORE = """
import warnings
import jax.numpy as jnp

jnp.zeros(3).sum()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import cosmo.learn
print(*(str(each.message) for each in told))
"""

two_cpus = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two CPUs, and a system that can keep a process on one of them",
)


def _run(code, cpus, *arguments, **environment):
    """In a process that may use so many CPUs, from its first import on."""
    start = "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(',')))\n"
    ours = ("PJRT_NPROC", *WORKER_ENVIRONMENT)  # those who run the tests may have set them
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    chosen = ",".join(map(str, sorted(os.sched_getaffinity(0))[:cpus]))
    done = subprocess.run(
        [sys.executable, "-c", start + code, chosen, *map(str, arguments)],
        env=kept | environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@two_cpus
@pytest.mark.parametrize("method", TRAININGS)
def test_same_bits_on_one_cpu_on_two_and_in_a_worker(tmp_path, method):
    found = []
    for name, cpus, environment in (
        ("one", 1, {}),
        ("two", 2, {}),
        ("worker", 2, WORKER_ENVIRONMENT),
    ):
        _run(TRAIN, cpus, method, tmp_path / name, WORLD, TRAININGS[method], **environment)
        with np.load(tmp_path / name / "agents.npz") as file:
            found.append({layer: file[layer].tobytes() for layer in file.files})
    assert found[0] == found[1] == found[2]


@two_cpus
def test_what_is_summed_over_a_round_does_not_depend_on_cpus():
    assert _run(SUMS, 1) == _run(SUMS, 2)


def test_sums_over_rows_are_those_of_a_product():
    random = np.random.default_rng(1)
    left, right = random.standard_normal((500, 7)), random.standard_normal((500, 3))
    np.testing.assert_allclose(over_rows(left, right), left.T @ right, rtol=1e-10)
    np.testing.assert_allclose(over_rows(left, right[:, 0]), left.T @ right[:, 0], rtol=1e-10)


@two_cpus
def test_jax_used_before_is_said_unless_the_user_has_chosen():
    assert "import cosmo.learn first, or set PJRT_NPROC=1" in _run(USED_BEFORE, 2)
    assert _run(USED_BEFORE, 2, PJRT_NPROC="2").strip() == ""
