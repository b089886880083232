"""A pytest plugin: a test that computes for longer than COSMO_LIMIT_S has failed, and no further
test is started after COSMO_SESSION_S of computing: a busy machine takes longer, and gets it.
"""

import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

import pytest

_LIMIT_S = float(os.environ["COSMO_LIMIT_S"])
_END_S = time.process_time() + float(os.environ["COSMO_SESSION_S"])


class _TooLongError(BaseException):
    """Not an Exception: code under test must not take it for one of its own."""


def _ended(_signal: int, _frame: FrameType | None) -> None:
    raise _TooLongError(f"more than {_LIMIT_S:.0f} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Fixtures have as long as they like: many tests share them."""
    before = signal.signal(signal.SIGPROF, _ended)
    signal.setitimer(signal.ITIMER_PROF, _LIMIT_S)
    try:
        return (yield)
    except _TooLongError as error:
        pytest.fail(str(error))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """The session ends as if there were no more tests: what it has found so far is kept."""
    if time.process_time() > _END_S:
        item.session.shouldstop = "out of time"
