import os
import tempfile

import pytest
from hypothesis import settings

from commands import Cosmo

# The same examples in every run, and no limit of their time, which a busy machine exceeds: a red
# build must be red for everybody.
settings.register_profile("cosmo", derandomize=True, print_blob=True, deadline=None)
settings.load_profile("cosmo")

_CACHE = "JAX_COMPILATION_CACHE_DIR"


def pytest_configure(config):
    """What JAX compiles is kept for all processes of a run, which train the same small networks
    again and again: compiling takes longer than most of their work.
    """
    if _CACHE in os.environ:  # the user's own, or of the process that started this one
        return
    config.stash[_KEPT] = kept = tempfile.TemporaryDirectory(prefix="cosmo-tests-")
    os.environ[_CACHE] = kept.name
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"


_KEPT = pytest.StashKey[tempfile.TemporaryDirectory]()


def pytest_unconfigure(config):
    if _KEPT in config.stash:
        config.stash[_KEPT].cleanup()
        del os.environ[_CACHE]


# Files that take longest, these first: nobody waits for the last of them alone at the end. Those
# that start many processes at once are not the very first: machine code is then there for all.
_FIRST = (
    "test_docs.py",
    "test_batches.py",
    "test_compiled_rules.py",
    "test_cpus.py",
    "test_ray.py",
    "test_execution.py",
    "test_engine.py",
    "test_report.py",
    "test_next_training.py",
    "test_processes.py",
    "test_markup.py",
    "test_damage.py",
    "test_fifteen_minutes.py",
    "test_study.py",
    "test_session.py",
    "test_trainer.py",
    "test_updaters.py",
    "test_notebooks.py",
)


def pytest_collection_modifyitems(items):
    def place(item):
        return _FIRST.index(item.path.name) if item.path.name in _FIRST else len(_FIRST)

    items.sort(key=place)


@pytest.fixture(autouse=True, scope="session")
def one_process_for_a_study():
    """Where nobody says how many: two tests run at a time already, and to start a second process
    takes longer than what tests have for it to do.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cosmo.study.pool.cores", lambda: 1)
        yield


@pytest.fixture
def cosmo(monkeypatch, capsys):
    return Cosmo(monkeypatch, capsys)
