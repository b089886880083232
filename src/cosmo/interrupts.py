"""Interrupts of the user's, distinguished from those that a policy raises; parents that end."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupted(KeyboardInterrupt):
    """The user's Ctrl-C: the signal came."""


class Terminated(Interrupted):
    """SIGTERM, as from a service manager or a batch system, or SIGHUP, as from a terminal that is
    closed: it ends a command in the same way.
    """


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


# By signal: what Python does if nobody has said otherwise, and what is done instead.
_OURS: dict[int, tuple[Any, Any]] = {
    signal.SIGINT: (signal.default_int_handler, _interrupt),
    signal.SIGTERM: (signal.SIG_DFL, _terminate),
    signal.SIGHUP: (signal.SIG_DFL, _terminate),  # of a terminal that closes; daemons read again
}


def leave_with_parent() -> None:
    """Have this process of `multiprocessing` end when its parent does, however that ends."""
    import multiprocessing  # which policies alone do not need
    from multiprocessing.connection import wait

    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave() -> None:
        wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


@contextmanager
def marked() -> Iterator[None]:
    """Within the block Ctrl-C raises `Interrupted`, SIGTERM and SIGHUP `Terminated`.

    Only where they have their usual effect: an interrupt that is ignored, as under nohup, stays so.
    Threads beside the main one get none.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number, (usual, ours) in _OURS.items():
            if signal.getsignal(number) is usual:
                before[number] = signal.signal(number, ours)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def of_user(error: BaseException) -> bool:
    """Whether an error that came out of a policy is an interrupt of the user's.

    Without `marked`, as in a notebook, every KeyboardInterrupt is taken for one, unless the signal
    is ignored, as in a worker of a study.
    """
    if not isinstance(error, KeyboardInterrupt) or isinstance(error, Interrupted):
        return isinstance(error, KeyboardInterrupt)
    return signal.getsignal(signal.SIGINT) not in (_interrupt, signal.SIG_IGN)
