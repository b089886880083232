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


# On a machine that has never run them, one process compiles the engine for a minute (first file)
# while the other has tests that do not need it (the next files): else both would compile it. Then
# files that take longest, so that nobody waits for the last of them alone at the end.
_FIRST = (
    "test_batches.py",
    "test_updates.py",
    "test_nodes.py",
    "test_faults.py",
    "test_machinery.py",
    "test_docs.py",
    "test_cpus.py",
    "test_ray.py",
    "test_execution.py",
    "test_engine.py",
    "test_compiled_rules.py",
    "test_next_training.py",
    "test_report.py",
    "test_updaters.py",
    "test_theory.py",
    "test_session.py",
    "test_finished.py",
    "test_fifteen_minutes.py",
    "test_study.py",
    "test_trainer.py",
    "test_markup.py",
    "test_notebooks.py",
)


def pytest_collection_modifyitems(items):
    def place(item):
        return _FIRST.index(item.path.name) if item.path.name in _FIRST else len(_FIRST)

    items.sort(key=place)


@pytest.fixture(autouse=True, scope="session")
def studies_in_this_process():
    """Units of a study are carried out in this process unless a test says how many processes it
    wants: to start one, to import everything and to compile again takes much longer than the work.
    What processes do is claimed in `study/test_execution.py`, and by commands that tests start.
    """
    from cosmo.study import LocalExecutor  # not before JAX is told of its cache

    in_processes = LocalExecutor.run

    def run(self, units, folder, work):
        return (in_processes if self.asked_for else _run_here)(self, units, folder, work)

    def remember(self, workers=None):
        self.asked_for = workers is not None
        made(self, workers or 1)

    made = LocalExecutor.__init__
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LocalExecutor, "__init__", remember)
        patched.setattr(LocalExecutor, "run", run)
        yield


def _run_here(_executor, units, folder, work):
    from cosmo.study.executor import Event, Failed, Finished, Started
    from cosmo.study.pool import cause

    for unit in units:
        yield Started(unit)
        shares = []
        try:
            work(unit, folder / unit.name, shares.append)
        except BaseException as error:  # as in a worker
            yield Failed(unit, cause(error))
        else:
            yield from (Event(unit, share) for share in shares)
            yield Finished(unit)


@pytest.fixture
def cosmo(monkeypatch, capsys):
    return Cosmo(monkeypatch, capsys)
