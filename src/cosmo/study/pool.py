"""The local executor: as many processes as cores, each single-threaded.

A worker that dies (killed, out of memory, a crash in compiled code) costs its unit another try in a
new worker, nothing else. Workers leave when their parent does, however it ends.
"""

import multiprocessing
import os
import signal
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any

from cosmo.control.arguments import whole_number
from cosmo.errors import EngineError, InputError
from cosmo.interrupts import leave_with_parent
from cosmo.study.executor import Event, Failed, Finished, Started, Work
from cosmo.study.units import Unit

_TRIES = 3  # of a unit whose worker dies; an error in Python is final at once

# XLA's threads are `cosmo.learn.device`'s to settle, for workers and lone processes alike.
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "JAX_PLATFORMS": "cpu",  # several workers would fight for a GPU's memory
}


def cores() -> int:
    """How many processes work at a time where nobody says."""
    return os.cpu_count() or 1


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """What processes that are started in the block will see."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def cause(error: BaseException) -> str:
    """What went wrong in one line; where, unless it is the user's to mend."""
    text = str(error).strip().splitlines()
    line = text[0] if text else ""
    if isinstance(error, InputError | EngineError):
        return line
    frames = traceback.extract_tb(error.__traceback__)
    place = f" (at {Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {line}{place}"


def _serve(pipe: Connection, work: Work) -> None:
    """A worker's life: one unit after the other until the parent says None or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle
    leave_with_parent()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        if job is None:
            return
        unit, folder = job
        try:
            work(unit, folder, lambda share: pipe.send(("share", share)))
        except BaseException as error:  # a policy may raise anything, SystemExit too
            pipe.send(("failed", cause(error)))
        else:
            pipe.send(("finished", None))


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    unit: Unit | None = None


class LocalExecutor:
    """Carries out units of work in processes of this machine.

    Args:
        workers: How many processes; as many as there are cores by default.

    """

    def __init__(self, workers: int | None = None) -> None:
        self._count = cores() if workers is None else whole_number("workers", workers)
        self._kept: list[_Worker] | None = None

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Processes that are started in the block serve all of its `run`s, and end with it."""
        self._kept = []
        try:
            yield
        finally:
            workers, self._kept = self._kept, None
            for worker in workers:
                _stop(worker)

    def run(self, units: Sequence[Unit], folder: Path, work: Work) -> Iterator[Event | Failed]:
        """Events as they happen, until every unit is finished or has failed."""
        context = multiprocessing.get_context("spawn")
        waiting, tries = deque(units), dict.fromkeys((unit.name for unit in units), 0)
        workers: list[_Worker] = [] if self._kept is None else self._kept
        try:
            while waiting or any(worker.unit for worker in workers):
                while waiting and len(workers) < min(self._count, len(units)):
                    workers.append(_started(context, work))
                for worker in workers:
                    if worker.unit is None and waiting:
                        worker.unit = waiting.popleft()
                        tries[worker.unit.name] += 1
                        try:
                            worker.pipe.send((worker.unit, folder / worker.unit.name))
                        except OSError:
                            continue  # it died; seen below
                        yield Started(worker.unit)
                busy = [worker for worker in workers if worker.unit is not None]
                ready: list[Any] = [worker.pipe for worker in busy]
                ready += [worker.process.sentinel for worker in busy]
                for what in wait(ready):
                    worker = next(one for one in busy if what in (one.pipe, one.process.sentinel))
                    if worker.unit is not None:
                        yield from self._heard(worker, workers, waiting, tries)
        finally:
            for worker in list(workers):
                if self._kept is None or worker.unit is not None:
                    workers.remove(worker)
                    _stop(worker)

    def _heard(
        self,
        worker: _Worker,
        workers: list[_Worker],
        waiting: deque[Unit],
        tries: dict[str, int],
    ) -> Iterator[Event | Failed]:
        unit = worker.unit
        assert unit is not None
        try:
            if not worker.pipe.poll():
                if worker.process.is_alive():
                    return
                raise EOFError
            kind, told = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            code, worker.unit = worker.process.exitcode, None
            workers.remove(worker)
            worker.pipe.close()
            if tries[unit.name] < _TRIES:
                waiting.appendleft(unit)
                yield Event(unit, 0.0)
            else:
                yield Failed(unit, f"its process died {_TRIES} times (exit code {code})")
            return
        if kind == "share":
            yield Event(unit, told)
            return
        worker.unit = None
        yield Finished(unit, 1.0) if kind == "finished" else Failed(unit, told)


def _started(context: SpawnContext, work: Work) -> _Worker:
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    with environment(WORKER_ENVIRONMENT):
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _stop(worker: _Worker) -> None:
    if worker.unit is None and worker.process.is_alive():
        try:
            worker.pipe.send(None)
        except OSError:
            worker.process.kill()
    else:
        worker.process.kill()
    worker.process.join(10)
    if worker.process.is_alive():
        worker.process.kill()
        worker.process.join()
    worker.pipe.close()
