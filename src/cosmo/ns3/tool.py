"""Tools of others, run with a limit: with them ends all that they have started."""

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from types import FrameType
from typing import Any

_END_LIMIT_S = 5.0


def run_tool(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """What it said and its exit code.

    A compiler is several processes. If it takes too long (TimeoutExpired) or we are interrupted or
    terminated, none of them stays behind: it has a session, hence a process group, of its own, and
    a signal that comes while it is started or ended waits until that is done.
    """
    with (
        _Signals() as signals,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as tool,
    ):
        try:
            try:
                signals.let_through()
                out, err = tool.communicate(timeout=limit_s)
            finally:
                signals.hold()
        except BaseException:
            _end_group(tool)
            raise
    return subprocess.CompletedProcess(command, tool.returncode, out, err)


class _Terminated(BaseException):
    """A signal that would have ended this process on the spot."""


class _Signals:
    """Signals that end a process: held at first, and again after the first that got through.

    They are held by handlers that remember, not by a mask: a child would inherit the mask, while
    handlers are its parent's alone. Python runs handlers in the main thread only; in others there
    is nothing to hold.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._held: list[int] = []
        self._holding = True

    def __enter__(self) -> "_Signals":
        with ExitStack() as undo:
            undo.callback(self._raise_held)
            if threading.current_thread() is threading.main_thread():
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    handler = signal.getsignal(number)
                    # Ignored signals stay so; None is a handler that is not Python's.
                    if handler is not None and handler != signal.SIG_IGN:
                        self._before[number] = handler
                        undo.callback(signal.signal, number, handler)
                        signal.signal(number, self._handle)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._undo.close()
        if isinstance(error, _Terminated):  # and we are still here, as process 1 of a container
            raise SystemExit(128 + signal.SIGTERM) from None

    def hold(self) -> None:
        """From now on signals are remembered; those left over are raised again at the end."""
        self._holding = True

    def let_through(self) -> None:
        """From now on signals do what they did before; at once for those that were held."""
        self._holding = False
        self._raise_held()

    def _raise_held(self) -> None:
        while self._held:
            signal.raise_signal(self._held.pop(0))

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._holding:
            self._held.append(number)
            return
        self._holding = True  # a second Ctrl-C must not disturb the end that the first one makes
        before = self._before[number]
        if before == signal.SIG_DFL:
            self._held.append(number)
            raise _Terminated
        before(number, frame)
        self._holding = False  # it took note and wants to go on


def _end_group(leader: subprocess.Popen[str]) -> None:
    """Ask a group to end; what is there when its leader has gone, or after a while, is killed."""
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        leader.wait(_END_LIMIT_S)
    with suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)
    leader.wait()
