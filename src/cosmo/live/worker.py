"""A worker process: imports a user's function, and calls it for one task after another.

Light on purpose: it is started anew whenever the work on a task is cancelled.
"""

import importlib
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection

from cosmo.errors import InputError
from cosmo.interrupts import leave_with_parent

_LONGEST = 1000  # characters of what a function raises
Function = Callable[[str, bytes, float, float], bytes]


def function_of(target: str) -> Function:
    """A function by `module:name`; InputError in one line if there is none."""
    module, _, name = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # a user's module may raise anything
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        raise InputError(f"handler.target = {target!r}: cannot be imported ({text})") from None
    if not callable(found):
        raise InputError(f"handler.target = {target!r}: is not a function")
    checked: Function = found
    return checked


def too_much(most_bytes: int) -> str:
    """What is wrong with a longer output: no message could carry it."""
    return f"the output has more than {most_bytes} bytes"


def work(target: str, pipe: Connection, most_bytes: int) -> None:
    """The life of a worker process: ready, then a task and its output at a time."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its owner decides when it ends
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    leave_with_parent()  # also in the middle of a task: nobody waits for its end any more
    function = function_of(target)
    pipe.send((True, b""))
    while True:
        try:
            given = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            output = function(*given)
            if not isinstance(output, bytes):
                raise TypeError(f"the handler gave a {type(output).__name__}, must give bytes")
            fits = len(output) <= most_bytes
            pipe.send((True, output) if fits else (False, too_much(most_bytes).encode()))
        except Exception as error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            pipe.send((False, text[:_LONGEST].encode()))
