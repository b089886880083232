"""Processes of worlds, owned by this one: started when needed, reused, watched, and reaped."""

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO, NoReturn

from cosmo.errors import EngineError
from cosmo.ns3 import wire
from cosmo.scenario import Scenario
from cosmo.workload import Episode

# No wait is without a limit. The first step may have to compile the engine.
_BEGIN_LIMIT_S = 600.0
_STEP_LIMIT_S = 300.0
_END_LIMIT_S = 5.0


class Worker:
    """One process, one world at a time. What it is asked must be heard before it is asked again."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        self._complaints: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cosmo.ns3.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._complaints,
            )
        self._link = ours
        self._world = ""
        self.asked = False  # and not heard yet

    def begin(self, scenario: Scenario, episode: Episode, dimensions: int, rides: bool) -> None:
        """Ask for a world at the start of an episode."""
        self._world = f"network_seed = {episode.network_seed}"
        self.ask(wire.BEGIN, pickle.dumps((scenario, episode, dimensions, rides)))

    def ask(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a question to the process without waiting for its answer."""
        self.asked = True
        try:
            self._link.settimeout(_STEP_LIMIT_S)
            wire.send(self._link, kind, payload)
        except TimeoutError:
            self._give_up(_STEP_LIMIT_S)
        except OSError:
            self._fail()

    def hear(self, expected: bytes) -> bytes:
        """Its answer, which must be of this kind."""
        limit = _BEGIN_LIMIT_S if expected == wire.READY else _STEP_LIMIT_S
        try:
            self._link.settimeout(limit)
            kind, payload = wire.receive(self._link)
        except TimeoutError:
            self._give_up(limit)
        except (EOFError, OSError):
            self._fail()
        self.asked = False
        if kind == wire.ERROR:
            raise EngineError(f"ns-3 failed: {payload.decode()} ({self._world})")
        assert kind == expected
        return payload

    def _give_up(self, limit_s: float) -> NoReturn:
        self.close()
        raise EngineError(f"ns-3 gave no answer in {limit_s:g} s ({self._world})") from None

    def _fail(self) -> NoReturn:
        """The process does not talk any more: say why."""
        try:
            code = self._process.wait(_END_LIMIT_S)
            how = f"ended with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}"
        except subprocess.TimeoutExpired:
            how = "broke off the connection and was ended"
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        self.close()
        raise EngineError(
            f"ns-3's process {how} ({self._world}): {lines[-1] if lines else 'no word'}"
        ) from None

    def close(self) -> None:
        """End the process, by force if it must be."""
        self.asked = True  # never used again
        self._link.close()
        try:
            self._process.wait(_END_LIMIT_S if self._process.poll() is None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._complaints.close()

    @property
    def usable(self) -> bool:
        """Whether it waits for a question."""
        return not self.asked and self._process.poll() is None


_idle: list[Worker] = []
_lock = threading.Lock()


def take() -> Worker:
    """A worker that is free, or a new one."""
    with _lock:
        while _idle:
            worker = _idle.pop()
            if worker.usable:
                return worker
            worker.close()
    return Worker()


def give_back(workers: list[Worker]) -> None:
    """They may be used for other worlds; those in the middle of something are ended."""
    most = max(os.cpu_count() or 1, len(workers))
    for worker in workers:
        with _lock:
            keep = worker.usable and len(_idle) < most
            if keep:
                _idle.append(worker)
        if not keep:
            worker.close()
    workers.clear()


def close_idle() -> None:
    """End all that wait."""
    with _lock:
        workers, _idle[:] = list(_idle), []
    for worker in workers:
        worker.close()


atexit.register(close_idle)
os.register_at_fork(after_in_child=_idle.clear)  # they are the parent's
