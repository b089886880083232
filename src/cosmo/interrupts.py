"""Interrupts of the user's, told apart from those that a policy raises by itself."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """The user's Ctrl-C: the signal came."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


@contextmanager
def marked() -> Iterator[None]:
    """Within the block the signal raises `Interrupted`, if it raised KeyboardInterrupt before.

    An interrupt that is ignored, as under nohup, stays so; threads beside the main one get none.
    """
    before = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if before is not signal.default_int_handler or not main:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def of_user(error: BaseException) -> bool:
    """Whether an error that came out of a policy is an interrupt of the user's.

    Without `marked`, as in a notebook, every KeyboardInterrupt is taken for one, unless the signal
    is ignored, as in a worker of a study.
    """
    if not isinstance(error, KeyboardInterrupt) or isinstance(error, Interrupted):
        return isinstance(error, KeyboardInterrupt)
    return signal.getsignal(signal.SIGINT) not in (_interrupt, signal.SIG_IGN)
